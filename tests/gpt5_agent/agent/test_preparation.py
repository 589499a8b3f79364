"""What the first round of an agent's question begins with."""

import json

from agents.sample import question
from gpt5_agent.agent.preparation import prepare_run
from owui_chat.wording import USAGE_HEADING


def test_commands_of_the_pipe_are_left_out() -> None:
    """A chat may have begun with the pipe, whose answers name other people."""
    told = f"{USAGE_HEADING}\n\n| ann@school.example | 5 |"
    texts = ("Hi", "Hello.", "/usage", told, "And now?")
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": text}
        for number, text in enumerate(texts)
    ]

    request = prepare_run(question(messages=messages, query="")).request

    sent = json.dumps(request.input)
    assert "Hello." in sent
    assert "And now?" in sent
    assert "/usage" not in sent
    assert "ann@school.example" not in sent
