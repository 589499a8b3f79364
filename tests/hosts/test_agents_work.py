"""Agents at longer work in the real Open WebUI: data, many calls, Stop, a restart."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import PATIENCE, Tab, Turn, is_question
from hosts.people.users import User
from hosts.sent import (
    answered,
    chat_bodies,
    host_items,
    instructions_of,
    outputs,
    stripped,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, install_tools, valves_changed
from owui_chat.storage.markers import strip_markers
from simulator import Simulator

pytestmark = pytest.mark.host

PIPE = "agents_at_work"
AGENT = f"{PIPE}.gpt5_function_calling"
STORM = Path(__file__).parent / "plugins/storm.py"
USED: Json = {"tool_ids": ["toolkit"]}
SETTINGS: Json = {"model": "gpt-6.1-sol", "maximum_iterations": 8}
FAILED = "tool invoke error: failed to execute tool"
QUIET_SECONDS = 2.0


@pytest_asyncio.fixture(scope="module", autouse=True)
async def agents(
    admin: User, toolkit: None, pipe_source: str, pipe_valves: Json
) -> AsyncIterator[None]:
    """A copy of the pipe with an agent that may take eight rounds."""
    valves = {
        "MODEL_ID": "gpt-6.1-sol, gpt5_function_calling",
        "AGENT_JSON": json.dumps(SETTINGS),
        "TOOL_APPROVAL": "take_note=ask",
    }
    await install_pipe(admin, PIPE, pipe_source, pipe_valves | valves)
    yield
    await admin.delete_function(PIPE)


@pytest_asyncio.fixture
async def storm(admin: User) -> AsyncIterator[None]:
    """Tools that fail in different ways, for everybody."""
    await install_tools(admin, "storm", STORM.read_text())
    yield
    await admin.call("DELETE", "/api/v1/tools/id/storm/delete")


def metadata_of(lines: list[Json]) -> Json:
    """The figures of an answer, which come once."""
    [metadata] = [
        line["execution_metadata"] for line in lines if "execution_metadata" in line
    ]
    figures: Json = metadata
    return figures


@pytest.mark.asyncio
async def test_thirty_calls_of_tools_that_fail_hang_and_die(
    tab: Tab, admin: User, server: OpenWebUI, storm: None, simulator: Simulator
) -> None:
    """Each call has its output, in the order of the calls; the server lives on."""
    limits = {"TOOL_TIMEOUTS": "default: 120, hanging: 1"}
    async with valves_changed(admin, PIPE, **limits):
        turn = await tab.send(AGENT, "sim:agent-storm", body={"tool_ids": ["storm"]})

    assert turn.error is None
    assert turn.text.endswith("30 outputs came, 12 of them good.")
    last = chat_bodies(simulator)[-1]["input"]
    calls = [item["call_id"] for item in last if item["type"] == "function_call"]
    outputs = [item for item in last if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in outputs] == calls
    assert len(calls) == 30
    texts = [item["output"] for item in outputs]
    names = [item["name"] for item in last if item["type"] == "function_call"]
    by_tool = {
        name: [text for named, text in zip(names, texts, strict=True) if named == name]
        for name in names
    }
    for name, cause in (
        ("failing", "ValueError: canary-of-the-exception for Town 1"),
        ("dying", "SystemExit: canary-of-the-exit for Town 1"),
    ):
        assert by_tool[name][1] == f"{FAILED}\n{cause}"
        assert {text.splitlines()[0] for text in by_tool[name]} == {FAILED}
    assert by_tool["hanging"] == ["Error: hanging did not finish within 1 s."] * 6
    assert by_tool["steady"] == [f"Calm in Town {number}." for number in range(6)]
    assert max(map(len, by_tool["endless"])) < 150_000
    metadata = metadata_of((await tab.message(turn))["statusHistory"])
    assert (metadata["rounds"], metadata["tool_calls"]) == (7, 30)
    assert server.is_running


@pytest.mark.asyncio
async def test_thoughts_in_tags_go_back_to_the_model(
    tab: Tab, simulator: Simulator
) -> None:
    """The page stores them as reasoning; the model gets its bytes (R14)."""
    first = await tab.send(AGENT, "sim:agent-tags how high?")
    more: Json = {"chat_id": first.chat_id, "body": USED}
    second = await tab.send(AGENT, "sim:agent-silent weather?", **more)
    third = await tab.send(AGENT, "sim:chat thanks", **more)

    assert first.error is second.error is third.error is None
    items = [host_items(await tab.message(turn)) for turn in (first, second)]
    assert "think>" not in json.dumps(items)
    assert "I know this." in json.dumps(items[0])
    assert "I am going to use" in json.dumps(items[1])
    assert strip_markers((await tab.message(first))["content"]) == "It is `408 m`."
    asked, *_, last = chat_bodies(simulator)
    expected = [*asked["input"], *map(stripped, outputs(simulator)[0])]
    assert last["input"][: len(expected)] == expected
    assert "<think>I know this.</think>" in json.dumps(expected)


def is_writing(turn: Turn) -> bool:
    """Text has come."""
    return bool(turn.text.strip())


def has_begun(turn: Turn) -> bool:
    """The page knows of a call."""
    return "function_call" in json.dumps(turn.events)


CREW = "Compare the years."
"""Answered by the simulator's default scenario."""
PHASES: dict[str, tuple[str, Json, int]] = {
    "the model is silent": ("sim:chat,hold=1", USED, 1),
    "the model writes": ("sim:long,deltas=5000,delay=20", USED, 1),
    "a tool runs": ("sim:tool weather?", calling("slow_weather", "toolkit"), 1),
    "an approval waits": ("sim:tool", calling("take_note", "toolkit"), 1),
    "sub-agents work": (CREW, USED, 4),
}
"""What is asked, and how many requests are sent until the phase is reached."""
SIGNS: dict[str, Callable[[Turn], bool]] = {
    "the model writes": is_writing,
    "a tool runs": has_begun,
    "an approval waits": has_begun,
}


@pytest.fixture
def slow_crew(simulator: Simulator) -> Iterator[None]:
    """Sub-agents that take seconds to answer."""
    before = simulator.default_scenario
    simulator.default_scenario = "agent-crew,delay=200"
    yield
    simulator.default_scenario = before


@pytest.mark.asyncio
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.usefixtures("sub_agents", "slow_crew")
async def test_nothing_is_sent_after_stop(
    tab: Tab, simulator: Simulator, phase: str
) -> None:
    """In no phase; the page is told what the answer took, and the chat goes on."""
    text, body, requests = PHASES[phase]
    asked = asyncio.Event()
    never = asyncio.Event()

    async def think_for_ever() -> None:
        asked.set()
        await never.wait()

    def answer(payload: Json) -> Any:
        return think_for_ever() if is_question(payload) else None

    tab.answer = answer
    turn = await tab.begin(AGENT, text, body=body)
    if phase in SIGNS:
        await turn.until(SIGNS[phase])
    if phase.endswith("waits"):
        await asyncio.wait_for(asked.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while len(answered(simulator)) < requests:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # no event says that a request has come
    await tab.stop(turn)
    await tab.settle(turn)
    sent = len(answered(simulator))
    simulator.release()
    await asyncio.sleep(QUIET_SECONDS)
    never.set()

    assert len(answered(simulator)) == sent == requests
    await simulator.all_ended()
    await turn.until(lambda seen: "execution_metadata" in json.dumps(seen.statuses))
    assert metadata_of(turn.statuses)["ending"] == "cancelled"
    after = await tab.send(AGENT, "sim:chat go on", chat_id=turn.chat_id)
    assert after.error is None
    assert {request.status for request in answered(simulator)} == {200}


@pytest.mark.asyncio
async def test_a_restart_in_the_middle(
    server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """The server was killed in the third round; the chat goes on as an agent's."""
    async with Tab(member) as tab:
        turn = await tab.begin(AGENT, "sim:agent-work,delay=100 weather?", body=USED)
        await turn.until(lambda seen: "Another one" in json.dumps(seen.events))
        before = len(chat_bodies(simulator))
        await server.crash_and_restart()
    async with Tab(member) as tab:
        after = await tab.send(AGENT, "sim:chat go on", chat_id=turn.chat_id)

    assert before == 3
    assert after.error is None
    last = chat_bodies(simulator)[-1]
    assert len(chat_bodies(simulator)) == 4
    assert "<persistence>" in instructions_of(last)
    assert "weather?" in str(last["input"])
    assert {request.status for request in answered(simulator)} == {200}
