"""How a scenario is chosen, and what it says of the request."""

import json
from typing import Any

import pytest

from simulator.options import UnknownOption, find_spec, parse_spec
from simulator.scenarios.builders import build_message, build_url_citation
from simulator.scenarios.made import MADE_SCENARIOS
from simulator.wire.response import fill_placeholders
from upstream.simulated import Client, bare

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "count_boats",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "how_many": {"type": "integer"},
            "kind": {"enum": ["sail", "motor"]},
        },
        "required": ["city", "how_many", "kind"],
        "additionalProperties": False,
    },
    "strict": True,
}
USER = {"role": "user", "content": "sim:tool"}


def kinds(reply: Any) -> list[str]:
    return [item["type"] for item in reply.body["output"]]


async def test_the_request_is_echoed(client: Client) -> None:
    reply = await client.ask(
        model="gpt-5.5",
        instructions="Be kind.",
        tools=[FUNCTION],
        text={"verbosity": "low"},
        metadata={"chat": "1"},
        service_tier="fast",
        max_output_tokens=500,
    )
    body = reply.body

    assert body["model"] == "gpt-5.5-2026-04-23"
    assert body["instructions"] == "Be kind."
    assert body["tools"] == [{**FUNCTION, "description": None}]
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert (body["metadata"], body["service_tier"]) == ({"chat": "1"}, "priority")
    assert body["max_output_tokens"] == 500
    assert body["reasoning"]["effort"] == "medium"


async def test_a_tool_is_called_then_its_output_is_used(client: Client) -> None:
    first = await client.ask([USER], tools=[FUNCTION])
    *_, call = first.body["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"]}
    sent = [*bare(first.body["output"]), {**output, "output": "three boats"}]
    second = await client.ask([USER, *sent], tools=[FUNCTION])
    third = await client.ask([USER, *sent, USER], tools=[FUNCTION])

    arguments = {"city": "Zürich", "how_many": 3, "kind": "sail"}
    assert json.loads(call["arguments"]) == arguments
    assert second.text == "I called `count_boats`. It said: three boats"
    assert kinds(third) == ["reasoning", "function_call"]


@pytest.mark.parametrize("name", [scenario.name for scenario in MADE_SCENARIOS])
async def test_tool_that_is_not_offered_is_not_used(client: Client, name: str) -> None:
    assert kinds(await client.ask(f"sim:{name}")) == ["message"]


TASKS = {
    "title": '### Task:\nGenerate a title.\n### Output:\n{ "title": "your title" }\n',
    "tags": '### Task:\nTags.\n\n### Output:\nJSON format: { "tags": ["a"] }\n\n',
    "follow_ups": '### Task:\nNext.\n### Output:\nJSON: { "follow_ups": ["Q?"] }\n',
}


async def test_tasks_get_their_json(client: Client) -> None:
    """Whatever the chat in them says; retrieved context begins like one and is a chat."""
    history = "### Chat History:\nUSER: sim:failed please give me a title"
    for field, prompt in TASKS.items():
        assert list(json.loads((await client.ask(prompt + history)).text)) == [field]
    chat = await client.ask("### Task:\nRespond to the query.\n\nHow deep is it?")

    assert chat.text.startswith("This is turn 1.")


async def test_a_header_wins_over_a_word(client: Client) -> None:
    client.simulator.default_scenario = "short"
    await client.ask("Hi")
    await client.ask("please sim:refusal now")
    client.headers = {"X-Simulator-Scenario": "incomplete"}
    await client.ask("sim:refusal")
    client.headers = {}

    chosen = [request.scenario for request in client.simulator.requests]
    assert chosen == ["short", "refusal", "incomplete"]
    for text in ("sim:no-such", "sim:chat,louder"):
        reply = await client.post(client.body(text))
        assert (reply.status, reply.error["code"]) == (400, "no_scenario")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("do sim:tool, please", "tool"),
        ("sim:tool,cut=5,crlf and more", "tool,cut=5,crlf"),
        ("sim:a then sim:b", "b"),
        ("http://sim:tool", None),
        ("simulate", None),
    ],
)
async def test_spec_is_found_anywhere_in_a_text(text: str, spec: str | None) -> None:
    assert find_spec(text) == spec


async def test_options_of_a_scenario_can_be_overridden() -> None:
    name, options = parse_spec("cut,cut=3", "cut=60")

    assert (name, options.number("cut")) == ("cut", 3)
    with pytest.raises(UnknownOption):
        parse_spec("chat,color=red")


async def test_citations_follow_the_filled_text() -> None:
    draft = "They said: $output It rains (a link)."
    page = build_url_citation(draft, "(a link)", "https://a.example", "A")
    file = {"type": "file_citation", "file_id": "f", "index": draft.index(" It")}
    drafted = build_message(draft, annotations=[page, file])

    [part] = fill_placeholders(drafted, {"output": "Sunshine, all day."})["content"]

    text = part["text"]
    page, file = part["annotations"]
    assert text[page["start_index"] : page["end_index"]] == "(a link)"
    assert text[: file["index"]].endswith("all day.")
