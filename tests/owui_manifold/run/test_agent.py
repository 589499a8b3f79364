"""The end of an agent's answer."""

from contextlib import aclosing
from typing import Any

import pytest

from calls.sample import TOOL, call_of, chat, host_context, valves_for
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.loop.spending import EarlierSpending
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from owui_manifold.call.context import Caller
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run.agent import run_agent
from owui_manifold.run.spending import begin_spending
from simulator import Simulator
from stand_in.host import StandInHost, host_callable

Json = dict[str, Any]
AGENT = "my_pipe.gpt5_function_calling"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("is_stopped", "shows_cost"), [(True, True), (True, False), (False, True)]
)
async def test_only_a_stopped_run_reports_itself_to_the_page(
    is_stopped: bool,
    shows_cost: bool,
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
) -> None:
    """What it took is counted without what came before it."""
    told: list[Json] = []

    async def emit(event: Json) -> None:
        told.append(event)

    def get_weather(city: str) -> str:
        return f"Rain in {city}."

    tool = {"callable": host_callable(get_weather), "spec": TOOL["function"]}
    call = call_of(
        chat("sim:tool", model=AGENT, tools=[TOOL]),
        valves_for(sim, SHOW_COST=shows_cost),
        Caller(AGENT, "user-1", "chat-1", "m-1", streams=True),
        host=host_context({"get_weather": tool}, event_emitter=emit),
    )
    prepared = await build_chat_request(call)
    assert call.agent
    shown: list[RunEvent] = []
    spending = begin_spending(prepared)
    spending.add_earlier(EarlierSpending(rounds=3, calls=2))
    run = run_agent(prepared, call.agent, prepared.limits, connections, spending)
    async with aclosing(run) as events:
        async for event in events:
            shown.append(event)
            if is_stopped and isinstance(event, TextDelta) and event.kind == "text":
                break
    await connections.close()  # what is told meanwhile arrives

    assert len(told) == is_stopped
    assert ("execution_metadata" in call.log.text()) is is_stopped
    for report in told:
        metadata = report["data"]["execution_metadata"]
        assert (metadata["rounds"], metadata["tool_calls"]) == (2, 1)
        assert bool(metadata["total_price"]) == shows_cost
        assert metadata["ending"] == "cancelled"
        assert report["data"]["description"].startswith("Stopped after")
    ends = [event for event in shown if isinstance(event, RunDone)]
    assert len(ends) == (not is_stopped)
    assert (spending.own_rounds, spending.own_calls) == (2, 1)
