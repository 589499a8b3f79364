"""A chat begins as its last request did, whatever the host makes of it now."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from call_sample import TOOL
from long_chat import long_chat
from openai_responses.items import Item, open_calls
from openai_responses.transport.connections import Connections
from owui_manifold.chat import build_chat_request
from owui_manifold.rounds import load_round
from simulator import Simulator
from stand_in_host import Row, StandInHost
from turn_sample import answered, asked_as, row_of

pytestmark = pytest.mark.asyncio

BOUND, FREE = "f.gpt-6.2-sol", "f.gpt-5.5"
Json = dict[str, Any]


def texts(item: Item) -> str:
    """The text of an input message."""
    return "".join(part.get("text", "") for part in item["content"])


def said_to(sim: Simulator) -> list[tuple[str, list[str]]]:
    """Of each request: its instructions, and what else no model wrote."""
    told = [
        [texts(i) for i in r.body["input"] if i.get("role") in ("user", "developer")]
        for r in sim.requests
    ]
    return [(first, rest) for first, *rest in told]


async def test_what_was_around_an_earlier_message_is_sent_again(
    sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """Until a person edits it."""
    row_of(host, "rain?", "and snow?")
    await answered(asked_as(sim, "S", "<c/>\nrain?"), connections)
    await answered(asked_as(sim, "S", "rain?", "No.", "<d/>\nand snow?"), connections)
    row_of(host, "hail?", "and snow?")
    await answered(asked_as(sim, "S", "hail?", "No.", "and snow?"), connections)

    assert said_to(sim) == [
        ("S", ["<c/>\nrain?"]),
        ("S", ["<c/>\nrain?", "<d/>\nand snow?"]),
        ("S", ["hail?", "<d/>\nand snow?"]),
    ]


@pytest.mark.parametrize(
    ("model", "valve", "is_stable"),
    [
        (BOUND, "auto", True),
        ("f.gpt-5.6-sol", "auto", True),
        (FREE, "auto", False),
        (FREE, "on", True),
        (BOUND, "off", False),
    ],
)
async def test_instructions_stay_as_first_given(
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
    model: str,
    valve: str,
    is_stable: bool,
) -> None:
    """What is new is told with the message that it came with, now and later."""
    row_of(host, "one", "two", "three")
    given: Json = {"model": model, "STABLE_INSTRUCTIONS": valve}
    await answered(asked_as(sim, "A\nat 1", "one", **given), connections)
    chat = ["one", "x", "two"]
    await answered(asked_as(sim, "A\nat 2", *chat, **given), connections)
    await answered(asked_as(sim, "A\nat 2", *chat, "y", "three", **given), connections)

    first, second, third = said_to(sim)
    assert first == ("A\nat 1", ["one"])
    if is_stable:
        assert second[0] == third[0] == "A\nat 1"
        assert second[1][1].splitlines()[2::2] == ["at 2", "at 1"]
        assert third[1] == [*second[1], "three"]
    else:
        assert second == ("A\nat 2", ["one", "two"])
        assert third == ("A\nat 2", ["one", "two", "three"])
        assert "A\\nat" not in json.dumps(host.kept)


@pytest.mark.parametrize(
    ("model", "context", "writes"),
    [(BOUND, "<c/>\n", 1), ("f.gpt-4.1", "<c/>\n", 1), ("f.gpt-4.1", "", 0)],
)
async def test_key_of_a_message_is_written_once(
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
    model: str,
    context: str,
    writes: int,
) -> None:
    """With its record or without one; and not where there is nothing to keep."""
    row_of(host, "sim:short rain?")
    call = asked_as(sim, "S", f"{context}sim:short rain?", model=model)

    await answered(call, connections)

    assert len(host.chats.writes) == writes


async def test_rounds_of_the_hosts_tools_are_one_run(
    sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """The host takes the retrieved text out between them, and its clock goes on."""
    row_of(host, "sim:tool rain?", "and snow?")
    state = SimpleNamespace()
    given: Json = {"TOOL_EXECUTION": "open_webui", "body": {"tools": [TOOL]}}
    words = "sim:tool rain?"
    call = asked_as(sim, "S\nat 1", f"<c/>\n{words}", state=state, **given)
    await answered(call, connections)
    ended = load_round(state, "a0")
    assert ended
    [opened] = open_calls(ended.received)
    function = {"name": opened["name"], "arguments": opened["arguments"]}
    given["body"] = {"tools": [TOOL]}
    again = asked_as(sim, "S\nat 2", words, state=state, **given)
    again.body["messages"].extend(
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": opened["call_id"], "function": function}],
            },
            {"role": "tool", "tool_call_id": opened["call_id"], "content": "Rain."},
        ]
    )
    await answered(again, connections)
    await answered(asked_as(sim, "S\nat 1", words, "Yes.", "and snow?"), connections)

    first, second, third = said_to(sim)
    assert first == second == ("S\nat 1", [f"<c/>\n{words}"])
    assert third == ("S\nat 1", [f"<c/>\n{words}", "and snow?"])


async def test_answer_that_goes_on_is_no_new_question(
    sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """What changed meanwhile is told with the next one."""
    row_of(host, "rain?", "snow?")
    chat = ["<c/>\nrain?", "No.", "snow?"]
    await answered(asked_as(sim, "S\nat 1", chat[0]), connections)
    await answered(asked_as(sim, "S\nat 1", *chat), connections)
    goes_on = {"assistant_message_id": "a1"}
    call = asked_as(sim, "S\nat 2", "rain?", *chat[1:], metadata=goes_on)
    call.body["messages"].append({"role": "assistant", "content": "No, be"})
    await answered(call, connections)

    _, second, third = said_to(sim)
    assert second == third == ("S\nat 1", ["<c/>\nrain?", "snow?"])


async def test_long_chat_is_read_once(sim: Simulator, host: StandInHost) -> None:
    """Four hundred turns, a thousand kept items: one look at the database."""
    chat, said = long_chat(turns=400)
    host.chats.rows["chat-1"] = Row("user-1", chat)

    metadata = {"user_message_id": "q399", "message_id": "a399"}
    call = asked_as(sim, "S", "?", metadata=metadata)
    call.body["messages"][1:] = said
    prepared = await build_chat_request(call)

    assert host.chats.reads == ["chat-1"]
    assert len(prepared.request.input) == 399 * 6 + 2
