"""Every provider goes on with a history in the same way."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from agents.sample import CITY, ScriptedProvider, host_tool, question
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.agent.provider import ResponsesProvider
from gpt5_agent.ports import ModelAnswer, Provider
from openai_responses.items import Item
from openai_responses.loop.events import ResponseDone, RunEvent
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from runs.against_server import limits, simulated
from runs.sample import call, message
from simulator import Simulator

pytestmark = pytest.mark.asyncio

FUNCTION: Item = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather.",
    "parameters": CITY,
    "strict": False,
}
Make = Callable[[Simulator, Connections, str], Provider]


def over_the_wire(sim: Simulator, connections: Connections, said: str) -> Provider:
    """The Responses API."""
    request = question(
        said=said,
        model="gpt-5.2",
        body={"tools": [host_tool("get_weather")]},
        endpoint=simulated(sim),
        connections=connections,
        limits=limits(),
    )
    return ResponsesProvider(request, prepare_run(request))


def written_down(_sim: Simulator, _connections: Connections, said: str) -> Provider:
    """A model of the tests."""
    if said == "sim:tool":
        return ScriptedProvider([call("1", '{"city":"Zürich"}')])
    return ScriptedProvider([message("1", "It rains, you say.")])


def asking(said: str) -> list[Item]:
    """A history of one question."""
    return [{"role": "user", "content": said}]


async def generated(
    provider: Provider, said: str
) -> tuple[list[RunEvent], ModelAnswer]:
    """What happened, and what it came to."""
    found: list[Any] = []
    events = provider.generate(asking(said), [FUNCTION])
    async with aclosing(events):
        found = [event async for event in events]
    *before, last = found
    assert isinstance(last, ModelAnswer)
    assert not any(isinstance(event, ModelAnswer) for event in before)
    return before, last


@pytest.mark.parametrize("make", [over_the_wire, written_down])
async def test_final_answer_is_a_text(
    make: Make, sim: Simulator, connections: Connections
) -> None:
    """It came in pieces, as events."""
    said = "It rains."
    events, last = await generated(make(sim, connections, said), said)

    grown = "".join(
        e.text for e in events if isinstance(e, TextDelta) and e.kind == "text"
    )
    assert last.is_final
    assert last.tool_calls == ()
    assert last.text_content == grown.strip() != ""
    assert last.run_end.usage
    assert any(isinstance(event, ResponseDone) for event in events)


@pytest.mark.parametrize("make", [over_the_wire, written_down])
async def test_answer_that_asks_for_tools_is_not_final(
    make: Make, sim: Simulator, connections: Connections
) -> None:
    """The calls are whole."""
    _, last = await generated(make(sim, connections, "sim:tool"), "sim:tool")

    assert not last.is_final
    [asked] = last.tool_calls
    assert (asked["name"], asked["arguments"]) == ("get_weather", '{"city":"Zürich"}')
    assert last.run_end.ending.kind == "completed"
