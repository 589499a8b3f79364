"""Where a port has two implementations, one test runs over both of them.

Those of the listeners are in test_listeners.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from agents.sample import calls, question
from gpt5_agent.events import (
    AgentEvent,
    AgentState,
    NewMessage,
    ReadyForInput,
    StateChanged,
    ToolCallRequested,
)
from gpt5_agent.ports import AgentContext, notify_interface
from gpt5_agent.shell.presets import find_preset
from gpt5_agent.shell.views import HostRenderer
from gpt5_agent.terminal.interface import Terminal
from gpt5_agent.terminal.session import Session
from openai_responses.items import Item, is_call, message_text
from openai_responses.loop.attempts import Attempts
from openai_responses.loop.events import ModelAnswer, RunEvent
from openai_responses.loop.run import Provider
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import Origin, replay_output
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from runs.against_server import asking, limits, simulated
from runs.sample import message, reasoning
from runs.scripted import ScriptedProvider
from simulator import Simulator
from stand_in.signing import SIGN
from strategies.guide import Guide

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]
SAID = message("9", "It rains.")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


# ---------------------------------------------------------------- user interface


def told_by_host(event: AgentEvent) -> str:
    """What Open WebUI is told."""
    host = HostRenderer(True, Origin("gpt-5", "here"), SIGN)
    return json.dumps(list(host.show(event)))


def told_by_terminal(event: AgentEvent) -> str:
    """What is on the screen."""
    written: list[str] = []
    terminal = Terminal(written.append, emits_thoughts=True)
    notify_interface(event, terminal)
    terminal.show(event)
    return "".join(written)


REQUEST = ToolCallRequested("delete_it", {"n": 7}, "c-1", {"reason": "It can harm."})
TELLING: list[tuple[AgentEvent, tuple[str, ...]]] = [
    (NewMessage("It rains."), ("It rains.",)),
    (REQUEST, ("delete_it", "It can harm.", "n", "7")),
    *((StateChanged(state), (state,)) for state in get_args(AgentState)),
]


@pytest.mark.parametrize("shown", [told_by_host, told_by_terminal])
async def test_user_interface_shows_every_event(
    shown: Callable[[AgentEvent], str],
) -> None:
    """With all that a person needs to know of it."""
    for event, words in TELLING:
        assert all(word in shown(event) for word in words), event
    assert shown(ReadyForInput()).strip("[]")


# ---------------------------------------------------------------- provider


TOOLS: list[Item] = [{"type": "function", "name": "look", "parameters": CITY}]


@asynccontextmanager
async def api_provider() -> AsyncIterator[Provider]:
    """The Responses API."""
    connections = Connections()
    async with Simulator() as simulator:
        yield Attempts(simulated(simulator), connections, limits())
    await connections.close()


@asynccontextmanager
async def written_provider() -> AsyncIterator[Provider]:
    """A model whose answers are written down."""
    yield ScriptedProvider([reasoning("1"), calls("look", 1)], [SAID])


MakeProvider = Callable[[], AbstractAsyncContextManager[Provider]]


@pytest.mark.parametrize("make", [api_provider, written_provider])
async def test_provider_calls_then_answers(make: MakeProvider) -> None:
    """The last thing that it yields says what it came to."""
    request = asking("sim:tool").model_copy(update={"tools": TOOLS})
    async with make() as provider:
        _, called = await generation(provider, request)
        [call] = [item for item in called.output if is_call(item)]
        output = {"type": "function_call_output", "call_id": call["call_id"]}
        received = replay_output(called.output, with_reasoning=True)
        items = [*request.input, *received, {**output, "output": "Rain."}]
        request = request.model_copy(update={"input": items})
        events, answer = await generation(provider, request, first_index=7)

    assert call["name"] == "look"
    assert not any(is_call(item) for item in answer.output)
    grown = "".join(event.text for event in events if isinstance(event, TextDelta))
    text = message_text(answer.output[-1])
    assert text
    assert grown.endswith(text)
    assert answer.usages == (answer.last_usage,)
    assert min(index for index, _ in answer.items) == 7
    assert not answer.ending.is_failure


async def generation(
    provider: Provider, request: ResponsesRequest, first_index: int = 0
) -> tuple[list[RunEvent], ModelAnswer]:
    """What happened, and what an answer came to; nothing comes after it."""
    parts = [part async for part in provider.generate(request, first_index)]
    events = [part for part in parts if not isinstance(part, ModelAnswer)]
    *_, last = parts
    assert isinstance(last, ModelAnswer)
    assert len(events) == len(parts) - 1
    return events, last


# ---------------------------------------------------------------- the others


@pytest.mark.parametrize("kind", ["session", "terminal"])
async def test_agent_answers_what_a_listener_hears(kind: str) -> None:
    """It says so by coming back."""
    written: list[str] = []
    terminal = Terminal(written.append, emits_thoughts=True)
    provider = ScriptedProvider([SAID])
    session = Session(
        question(messages=[]), terminal, terminal.show, lambda *_: provider
    )
    conversation = asyncio.create_task(terminal.converse(session))
    context: AgentContext = session if kind == "session" else terminal

    await context.emit_input("Weather?")

    assert "It rains.\n" in written
    terminal.end()
    await conversation


@pytest.mark.parametrize("kind", ["built in", "file"])
async def test_guide_says_who_the_agent_is(kind: str, tmp_path: Path) -> None:
    """A file in the folder wins over one that is built in."""
    own = {
        "systemPrompt": "You find things out.",
        "temperature": 0.5,
        "memoryPolicy": "sliding-window",
        "initialMemories": ["It rained."],
    }
    if kind == "file":
        (tmp_path / "researcher.json").write_text(json.dumps(own), "utf-8")

    guide: Guide = find_preset("researcher", str(tmp_path))

    assert guide.system_prompt.startswith("You find things out.")
    assert guide.temperature == (0.5 if kind == "file" else None)
    assert guide.memory_policy == ("sliding-window" if kind == "file" else "")
    assert list(guide.initial_memories) == (["It rained."] if kind == "file" else [])
