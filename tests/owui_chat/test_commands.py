"""Commands and their answers, which no model is told."""

import time

import pytest

from openai_responses.items import text_message
from owui_chat.commands import without_commands, without_quoted_commands
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    StoredMessage,
    UserMessage,
    parse_messages,
)
from owui_chat.wording import CHECK_HEADING, USAGE_HEADING

CHECKED = f"{CHECK_HEADING}tested with gpt-5.2 at api.openai.com:\n\n- fine"
USED = f"{USAGE_HEADING}\n\n| ann@school.example | 5 |"


def said(*texts: str) -> list[ChatPart]:
    """A chat of the user and the assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return parse_messages(messages)[1]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("/check", CHECKED),
        ("/usage", USED),
        ("/usage 90d csv", USED),
        (" /Usage ann@school.example\n", f"\n{USED}"),  # as phones write it
        ("/usage", "| Your use (UTC) | US dollars |"),  # of version 1.0.0
    ],
)
def test_a_command_and_its_answer_are_left_out(command: str, answer: str) -> None:
    parts = said("Hi", "Hello.", command, answer, "And now?")

    assert without_commands(parts) == said("Hi", "Hello.", "And now?")


def test_a_command_is_known_before_an_instruction_of_a_filter() -> None:
    """Some filters put one after each question."""
    told: ChatPart = UserMessage(text_message("developer", "Be brief."))
    hello, question = said("Hi", "Hello."), said("And now?")
    command, answer = said("/usage", USED)

    parts = [*hello, command, told, answer, *question, told]

    assert without_commands(parts) == [*hello, told, *question, told]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("/check", "There is nothing to check."),
        ("/usage", "What do you mean?"),
        ("What does /usage say?", USED),
        ("/usages", USED),
        ("Quote it.", f"It said: {USED}"),
    ],
)
def test_what_a_model_answered_stays(words: str, answer: str) -> None:
    """Whoever may not use a command has sent it to the model."""
    parts = said(words, answer, "And now?")

    assert without_commands(parts) == parts


def test_the_last_command_stays_for_its_answer() -> None:
    """A command that no answer follows is a question like others."""
    answers = [AssistantText(USED), AssistantText(USED)]  # in front of each question
    for parts in (said("/usage"), [*said("/usage"), *said("Hi")], [*answers]):
        assert without_commands(parts) == parts


def test_what_the_user_wrote_is_what_the_chat_stores() -> None:
    """The host puts more around it."""
    stored = StoredMessage({"content": "/usage"}, "a-1")
    around = UserMessage(text_message("user", "Time: 12:00\n/usage"), stored)

    assert without_commands([around, AssistantText(USED)]) == []


PROMPT = "Write a title.\n<chat_history>\n{}\n</chat_history>\nAnswer in JSON."


def quoted(*texts: str) -> str:
    """The form of Open WebUI's `get_messages_content`."""
    roles = ("USER", "ASSISTANT")
    return "\n".join(f"{roles[n % 2]}: {text}" for n, text in enumerate(texts))


@pytest.mark.parametrize("answer", [CHECKED, USED, f"{USED}\nmore\n\n- lines"])
def test_tasks_are_told_nothing_of_them(answer: str) -> None:
    """In the middle, or as the last of what is quoted."""
    command = "/check" if answer == CHECKED else "/usage 7d"
    last = PROMPT.format(quoted("Hi", "Hello.", command, answer))

    left = PROMPT.format(quoted("Hi", "Hello.", "Why?", "So."))
    for written in (command, f" {command}", command.title()):  # as phones write it
        asked = PROMPT.format(quoted("Hi", "Hello.", written, answer, "Why?", "So."))
        assert without_quoted_commands(asked) == left
    assert "school.example" not in without_quoted_commands(last)
    assert without_quoted_commands(last).endswith("</chat_history>\nAnswer in JSON.")


FIRST_IS_AN_ANSWER = f"ASSISTANT: {USED}\nUSER: Why?\nASSISTANT: So."
TOOL_PROMPT = "History:\n{}\nQuery: And now?"
TOOL_CHAT = 'USER: """Why?"""\nASSISTANT: """So."""'
TOOL_COMMAND = f'USER: """/usage"""\nASSISTANT: """{USED}"""'
REVIEW = "Existing memories:\n(none)\n\nConversation:\n{}\n"
REVIEWED = "user: Hi\n\nassistant: Hello.\n\n"


@pytest.mark.parametrize(
    ("form", "told", "left"),
    [
        # The first of the last five messages is an answer, with or without a prompt.
        (PROMPT, FIRST_IS_AN_ANSWER, quoted("Why?", "So.")),
        ("{}", FIRST_IS_AN_ANSWER, quoted("Why?", "So.")),
        # A command of several lines.
        (PROMPT, quoted("/usage\n90d\n\ncsv", USED, "Why?"), quoted("Why?")),
        # The choice of a tool.
        (TOOL_PROMPT, f"{TOOL_COMMAND}\n{TOOL_CHAT}", TOOL_CHAT),
        (TOOL_PROMPT, f"{TOOL_CHAT}\n{TOOL_COMMAND}", TOOL_CHAT),
        # The review of memories.
        (REVIEW, f"{REVIEWED}user: /usage\n\nassistant_final: {USED}", REVIEWED),
        (REVIEW, f"assistant: {USED}\n\n{REVIEWED}", REVIEWED),
    ],
)
def test_no_form_of_a_quote_tells_a_task_of_them(
    form: str, told: str, left: str
) -> None:
    """What a follow-up, a tool or a memory is made of."""
    prompt = without_quoted_commands(form.format(told))

    assert prompt.split() == form.format(left).split()


@pytest.mark.parametrize(
    "prompt",
    [
        PROMPT.format(quoted("What was it?", USED)),
        PROMPT.format(quoted("/usage", "What do you mean?", "Cost?", USED)),
        TOOL_PROMPT.format(f'USER: """Cost?"""\nASSISTANT: """{USED}"""'),
    ],
)
def test_quoted_answer_of_a_model_stays(prompt: str) -> None:
    """Nobody has asked a command right before it."""
    assert without_quoted_commands(prompt) == prompt


def test_a_long_prompt_takes_no_time() -> None:
    """A user writes what looks like a thousand commands that have no end."""
    prompt = f"USER: /usage\nASSISTANT: {USAGE_HEADING}\n" * 20_000
    begin = time.process_time()
    without_quoted_commands(prompt)
    without_quoted_commands(f"USER: /usage\nASSISTANT: {USAGE_HEADING}{'x' * 10**6}")
    without_quoted_commands("USER: /usage\n\n" * 20_000 + "\n" * 10**6)
    without_quoted_commands(f"USER: /usage\n{'x' * 10**6}")
    assert time.process_time() - begin < 1
