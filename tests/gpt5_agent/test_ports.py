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

from agents.sample import ScriptedProvider, calls, question
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.agent.provider import ResponsesProvider
from gpt5_agent.events import (
    AgentEvent,
    AgentState,
    NewMessage,
    ReadyForInput,
    StateChanged,
    ToolCallRequested,
)
from gpt5_agent.ports import (
    AgentContext,
    ModelAnswer,
    Provider,
    notify_interface,
)
from gpt5_agent.shell.presets import find_preset
from gpt5_agent.shell.views import HostRenderer
from gpt5_agent.terminal.interface import Terminal
from gpt5_agent.terminal.session import Session
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item
from openai_responses.requests.replay import Origin
from openai_responses.transport.connections import Connections
from runs.sample import message, reasoning
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
    """What stands on the screen."""
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


@pytest.mark.parametrize("told", [told_by_host, told_by_terminal])
async def test_user_interface_shows_every_event(
    told: Callable[[AgentEvent], str],
) -> None:
    """With all that a person needs to know of it."""
    for event, words in TELLING:
        assert all(word in told(event) for word in words), event
    assert told(ReadyForInput()).strip("[]")


# ---------------------------------------------------------------- provider


@asynccontextmanager
async def api_provider() -> AsyncIterator[Provider]:
    """The Responses API."""
    connections = Connections()
    async with Simulator() as simulator:
        endpoint = Endpoint(simulator.base_url, simulator.api_key)
        tool = {"name": "look", "parameters": CITY}
        request = question(
            body={"tools": [{"type": "function", "function": tool}]},
            endpoint=endpoint,
            connections=connections,
        )
        yield ResponsesProvider(request, prepare_run(request))
    await connections.close()


@asynccontextmanager
async def written_provider() -> AsyncIterator[Provider]:
    """A model whose answers are written down."""
    yield ScriptedProvider([reasoning("1"), calls("look", 1)], [SAID])


MakeProvider = Callable[[], AbstractAsyncContextManager[Provider]]


@pytest.mark.parametrize("make", [api_provider, written_provider])
async def test_provider_calls_then_answers(make: MakeProvider) -> None:
    """The last thing that it yields says what it came to."""
    asked: Item = {"type": "message", "role": "user", "content": "sim:tool"}
    tools: list[Item] = [{"type": "function", "name": "look", "parameters": CITY}]
    async with make() as provider:
        called = await generation(provider, [asked], tools)
        [call] = called.tool_calls
        output = {"type": "function_call_output", "call_id": call["call_id"]}
        replay_output = [
            {k: v for k, v in item.items() if k not in ("id", "status")}
            for item in called.run_end.output
        ]
        history = [asked, *replay_output, {**output, "output": "Rain."}]
        said = await generation(provider, history, [])

    assert not called.is_final
    assert call["name"] == "look"
    assert said.is_final
    assert said.tool_calls == ()
    assert said.text_content
    assert not said.run_end.ending.is_failure


async def generation(
    provider: Provider, history: list[Item], tools: list[Item]
) -> ModelAnswer:
    """What an answer came to; nothing comes after it."""
    *events, last = [event async for event in provider.generate(history, tools)]
    assert isinstance(last, ModelAnswer)
    assert not any(isinstance(event, ModelAnswer) for event in events)
    return last


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
