"""The end of an agent's answer."""

from contextlib import aclosing
from typing import Any

import pytest

from calls.sample import call_of, chat, host_context, valves_for
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from owui_manifold.call.context import Caller
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run.agent import run_agent
from simulator import Simulator
from stand_in.host import StandInHost

Json = dict[str, Any]


@pytest.mark.asyncio
@pytest.mark.parametrize("is_stopped", [True, False])
async def test_only_a_stopped_run_reports_itself_to_the_page(
    is_stopped: bool, sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """One that ends tells what it took as its end."""
    told: list[Json] = []

    async def emit(event: Json) -> None:
        told.append(event)

    valves = valves_for(sim)
    text = "sim:stall" if is_stopped else "sim:short"
    call = call_of(
        chat(text, model="my_pipe.gpt5_function_calling"),
        valves,
        Caller(
            "my_pipe.gpt5_function_calling", "user-1", "chat-1", "m-1", streams=True
        ),
        host=host_context(event_emitter=emit),
    )
    prepared = await build_chat_request(call)
    assert prepared.toolset
    ended: list[RunEvent] = []
    run = run_agent(prepared, prepared.toolset, prepared.limits, connections)
    async with aclosing(run) as events:
        async for event in events:
            ended.append(event)
            if is_stopped and isinstance(event, TextDelta):
                break
    await connections.close()

    assert len(told) == is_stopped
    works = [event.work for event in ended if isinstance(event, RunDone)]
    assert [work is not None for work in works] == [True] * (not is_stopped)
