"""Chats of earlier versions, which declared many tools in namespaces and searched."""

from typing import Any

import pytest

from calls.sample import TOOL
from calls.turns import answered, asked_as, row_of
from openai_responses.items import Item
from openai_responses.requests.turns import Turn
from openai_responses.transport.connections import Connections
from owui_chat.input.prefix import SentContext
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import message_key, read_records, write_records
from simulator import Simulator
from stand_in.host import StandInHost
from stand_in.signing import SIGN, with_sent

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
KEY = message_key("a0")
QUESTION = "sim:tool one"
SPACE: Item = {
    "type": "namespace",
    "name": "a_1",
    "description": "Functions: a",
    "tools": [{"type": "function", "name": "a", "defer_loading": True}],
}
SEARCHED: list[Item] = [
    {"type": "tool_search_call", "execution": "server", "arguments": {}},
    {"type": "tool_search_output", "execution": "server", "tools": [SPACE]},
]
TOOLS: list[Item] = [{"type": "function", "name": "b"}, {"type": "tool_search"}, SPACE]


def as_stored_before(item: Item) -> list[Item]:
    """An item with the search that found its tool, and the namespace of that."""
    if item["type"] != "function_call":
        return [item]
    return [*SEARCHED, {**item, "namespace": "a_1"}]


def named(name: str) -> Json:
    """A function of the host."""
    function: Any = TOOL["function"]
    return {"type": "function", "function": {**function, "name": name}}


def let_it_have_searched(host: StandInHost, model: str) -> str:
    """Let the first answer of the chat be one of an earlier version: its marker."""
    [(ulid, record)] = read_records(host.kept, SIGN).items()
    payload = [one for item in record.payload for one in as_stored_before(item)]
    records = {ulid: record._replace(payload=tuple(payload))}
    turn = Turn(model, base={"tools": TOOLS, "reasoning": {}, "text": {}})
    value = with_sent(write_records(records, SIGN), SentContext(turn=turn), KEY)
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, KEY: value}
    return format_marker(record.kind, ulid)


def messages_behind(call: Item) -> list[Json]:
    """What the host returns of the first answer."""
    function = {"name": call["name"], "arguments": call["arguments"]}
    made = {"id": call["call_id"], "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": call["call_id"], "content": "Rain."},
    ]


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-5.5"])
async def test_chat_that_searched_for_tools_goes_on(
    model: str, sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """With the call and what came of it, in the form of today's tools."""
    first = [named("a"), named("b")]
    more: Json = {"model": f"f.{model}", "body": {"tools": first}}
    row_of(host, QUESTION)
    await answered(asked_as(sim, "S", QUESTION, **more), connections)
    response = sim.requests[0].response
    assert response
    marker = let_it_have_searched(host, model)
    row_of(host, QUESTION, "two", "three")
    sim.forget()

    said = ["S", QUESTION, f"{marker}Yes.", "two"]
    for tools in (first, [*first, named("c")]):
        more = {"model": f"f.{model}", "body": {"tools": tools}}
        asked = asked_as(sim, *said, **more)
        asked.body["messages"][2:2] = messages_behind(response["output"][-1])
        await answered(asked, connections)
        said += ["Yes.", "three"]

    assert [request.status for request in sim.requests] == [200, 200]
    second, third = (request.body for request in sim.requests)
    kinds = [item["type"] for item in second["input"]]
    place = kinds.index("function_call")
    assert kinds[place - 1] == "reasoning"
    assert kinds[place + 1] == "function_call_output"
    assert "namespace" not in str((second, third))
    assert "tool_search" not in str((second, third))
    assert [tool["name"] for tool in second["tools"]] == ["a", "b"]
    assert third["input"][: len(second["input"])] == second["input"]
