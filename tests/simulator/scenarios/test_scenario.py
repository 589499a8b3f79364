"""What the stand-in says; how a scenario is chosen."""

import json
from typing import Any

import pytest

from simulator.options import UnknownOption, find_spec, parse_spec
from upstream.simulated import Client, bare

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
    """Return the types of the items of an answer."""
    return [item["type"] for item in reply.body["output"]]


@pytest.mark.asyncio
async def test_the_default_answer(client: Client) -> None:
    """A chat gets reasoning, then a message that says what it was given."""
    reply = await client.ask("Hello there", reasoning={"summary": "auto"})
    reasoning, message = reply.body["output"]

    assert reply.text.startswith(
        "This is turn 1. I was given 0 reasoning items back. You said: Hello there\n\n"
    )
    assert len(reasoning["summary"]) == 2
    assert message["phase"] == "final_answer"


@pytest.mark.asyncio
async def test_no_summary_unless_asked(client: Client) -> None:
    """Without reasoning.summary the summary is empty."""
    reply = await client.ask()

    assert reply.body["output"][0]["summary"] == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "effort"),
    [("gpt-5.6-sol", "none"), ("gpt-5.2", None), ("gpt-4.1", None)],
)
async def test_no_reasoning_where_none_is_made(
    client: Client, model: str, effort: str | None
) -> None:
    """Effort none, a default of none, a plain model: a message alone."""
    reasoning = {"effort": effort} if effort else None
    reply = await client.ask(model=model, reasoning=reasoning)

    assert kinds(reply) == ["message"]
    assert reply.body["usage"]["output_tokens_details"]["reasoning_tokens"] == 0


@pytest.mark.asyncio
async def test_the_effort_in_force_is_echoed(client: Client) -> None:
    """The response names the default effort when none was asked for."""
    default = await client.ask()
    asked = await client.ask(reasoning={"effort": "high"})

    assert default.body["reasoning"]["effort"] == "medium"
    assert asked.body["reasoning"]["effort"] == "high"


@pytest.mark.asyncio
async def test_the_request_is_echoed(client: Client) -> None:
    """The response repeats what was asked, and names the dated model."""
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


@pytest.mark.asyncio
async def test_a_tool_is_called_then_its_output_is_used(client: Client) -> None:
    """The request that carries the outputs gets the second response."""
    first = await client.ask([USER], tools=[FUNCTION])
    reasoning, call = first.body["output"]
    sent = bare([reasoning, call])
    output = {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": "three boats",
    }
    second = await client.ask([USER, *sent, output], tools=[FUNCTION])

    assert call["name"] == "count_boats"
    assert json.loads(call["arguments"]) == {
        "city": "Zürich",
        "how_many": 3,
        "kind": "sail",
    }
    assert second.text == "I called `count_boats`. It said: three boats"


@pytest.mark.asyncio
async def test_rounds_are_counted_since_the_last_user_message(client: Client) -> None:
    """A second turn of the tool scenario calls again."""
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    reply = await client.ask([USER, call, output, USER], tools=[FUNCTION])

    assert kinds(reply) == ["reasoning", "function_call"]


TASKS = {
    "title": '### Task:\nGenerate a title.\n### Output:\n{ "title": "your title" }\n',
    "tags": '### Task:\nTags.\n\n### Output:\nJSON format: { "tags": ["a"] }\n\n',
    "follow_ups": '### Task:\nNext.\n### Output:\nJSON: { "follow_ups": ["Q?"] }\n',
}


@pytest.mark.asyncio
@pytest.mark.parametrize("field", TASKS)
async def test_tasks_get_their_json(client: Client, field: str) -> None:
    """A task's prompt is answered with its JSON, whatever the chat in it says."""
    history = "### Chat History:\nUSER: sim:failed please give me a title"
    reply = await client.ask(TASKS[field] + history)

    assert list(json.loads(reply.text)) == [field]


@pytest.mark.asyncio
async def test_a_prompt_with_retrieved_context_is_no_task(client: Client) -> None:
    """The template of retrieved context starts like a task and is a chat."""
    reply = await client.ask("### Task:\nRespond to the query.\n\nHow deep is it?")

    assert reply.text.startswith("This is turn 1.")


@pytest.mark.asyncio
async def test_a_header_wins_over_a_word(client: Client) -> None:
    """The header chooses, then the word, then the default of the simulator."""
    client.simulator.default_scenario = "short"
    by_default = await client.ask("Hi")
    by_word = await client.ask("please sim:refusal now")
    client.headers = {"X-Simulator-Scenario": "incomplete"}
    await client.ask("sim:refusal")

    assert by_default.text == "Turn 1. I was given 0 reasoning items back."
    assert by_word.body["output"][1]["content"][0]["type"] == "refusal"
    assert [request.scenario for request in client.simulator.requests] == [
        "short",
        "refusal",
        "incomplete",
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["sim:no-such", "sim:chat,louder"])
async def test_a_misspelt_scenario(client: Client, text: str) -> None:
    """A scenario or an option that does not exist is refused."""
    reply = await client.post(client.body(text))

    assert (reply.status, reply.error["code"]) == (400, "no_scenario")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("sim:tool", "tool"),
        ("do sim:tool, please", "tool"),
        ("sim:tool,cut=5,crlf and more", "tool,cut=5,crlf"),
        ("sim:a then sim:b", "b"),
        ("sim:429,times=2,retry-after=0.5", "429,times=2,retry-after=0.5"),
        ("http://sim:tool", None),
        ("simulate", None),
    ],
)
def test_spec_is_found_anywhere_in_a_text(text: str, spec: str | None) -> None:
    """The word may be anywhere; punctuation after it is no option."""
    assert find_spec(text) == spec


def test_options_of_a_scenario_can_be_overridden() -> None:
    """What the request says wins over what the scenario has by itself."""
    name, options = parse_spec("cut,cut=3", "cut=60")

    assert (name, options.number("cut")) == ("cut", 3)
    with pytest.raises(UnknownOption):
        parse_spec("chat,color=red")
