"""What the first round of an agent's question begins with."""

import json

import pytest

from agents.sample import host_tool, question
from calls.sample import chat
from gpt5_agent.agent.preparation import prepare_run
from openai_responses.errors import InvalidRequest
from owui_chat.wording import USAGE_HEADING
from strategies.guide import Guide
from strategies.policy import build_system_instruction


def test_commands_of_the_pipe_are_left_out() -> None:
    """A chat may have begun with the pipe, whose answers name other people."""
    told = f"{USAGE_HEADING}\n\n| ann@school.example | 5 |"
    messages = chat("Hi", "Hello.", "/usage", told, "And now?")["messages"]

    sent = json.dumps(prepare_run(question(messages=messages)).request.input)

    assert "Hello." in sent
    assert "And now?" in sent
    assert "/usage" not in sent
    assert "ann@school.example" not in sent


def test_more_images_than_a_request_takes_leave_a_note() -> None:
    """Of the oldest; the server would refuse the whole chat."""
    image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    content = [{"type": "text", "text": "Which is it?"}, *[image] * 1501]
    messages = [{"role": "user", "content": content}]

    [asked] = prepare_run(question(messages=messages)).request.input

    assert sum(part["type"] == "input_image" for part in asked["content"]) == 1500
    assert "1500 images" in asked["content"][1]["text"]


def test_model_without_functions_is_for_an_administrator_to_replace() -> None:
    """Nothing is wrong with the question."""
    with pytest.raises(InvalidRequest, match="cannot call functions") as refused:
        prepare_run(question(model="gpt-image-1.5"))

    assert refused.value.remedy == "setup"


def test_open_webuis_own_tools_are_named_where_it_offers_them() -> None:
    """A tool of another client may have the same name and do something else."""
    tools = [host_tool("create_tasks"), host_tool("weather")]

    in_open_webui = prepare_run(question(chat="u-1/c-1", body={"tools": tools}))
    of_client = prepare_run(question(body={"tools": tools}))

    assert "`create_tasks`" in str(in_open_webui.request.instructions)
    assert "`ask_user`" not in str(in_open_webui.request.instructions)
    assert "<host_tools>" not in str(of_client.request.instructions)


def test_r8_request_says_who_the_agent_is() -> None:
    """Guide, valve, chat; policies, overrides; then what there is to read."""
    overrides = '{"extra_policy": "Last."}'
    messages = chat("Weather?")["messages"]
    messages.insert(0, {"role": "system", "content": "In German."})

    prepared = prepare_run(
        question(
            model="gpt-4.1",
            guide=Guide(system_prompt="You sail.", temperature=0.5),
            instruction="Be brief.",
            prompt_policy_overrides=overrides,
            context="It froze.",
            messages=messages,
        )
    )

    base = "You sail.\n\nBe brief.\n\nIn German."
    policies = build_system_instruction(base, overrides)
    entry = '<entry name="Context 1">\nIt froze.\n</entry>'
    told = f"{policies}\n\n<context>\n{entry}\n</context>"
    assert prepared.request.instructions == told
    assert prepared.request.temperature == 0.5
    assert [source.name for source in prepared.sources] == ["Context 1"]


def test_what_an_answer_carries_is_signed_for_one_chat_of_one_user() -> None:
    """A call that waits, or a style, of another chat is not gone on with."""
    chats = ("u-1/c-1", "u-1/c-2", "u-2/c-1")

    assert len({question(chat=chat).sign("notes", False) for chat in chats}) == 3


@pytest.mark.parametrize(
    ("kind", "system", "told"),
    [
        ("json_object", "Answer with JSON.", ["developer", "user"]),
        ("json_object", "Be brief.", ["user"]),
        ("json_schema", "Answer with JSON.", ["user"]),
    ],
)
def test_json_that_the_instructions_ask_for_is_in_the_input_too(
    kind: str, system: str, told: list[str]
) -> None:
    """OpenAI looks for the word there alone, and refuses the format without it."""
    messages = [{"role": "system", "content": system}, *chat("Rain?")["messages"]]
    form = {"type": kind, "name": "answer", "schema": {"type": "object"}}

    asked = question(messages=messages, body={"text": {"format": form}})

    assert [item["role"] for item in prepare_run(asked).request.input] == told
