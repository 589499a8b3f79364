"""Agents of the pipe in the real Open WebUI: its tools, approvals, switch, Stop."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import ASKS, calling
from hosts.people.tabs import PATIENCE, Tab, Turn, is_question
from hosts.people.users import User, new_user
from hosts.sent import (
    answered,
    chat_bodies,
    instructions_of,
    kinds,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import COUNTED, administration, counted_requests
from hosts.setup.pipes import PLUGINS, install_pipe, install_tools, valves_changed
from hosts.setup.switches import AGENT, switches, workspace_model
from simulator import Simulator

pytestmark = pytest.mark.host

PIPE = "agents"
OLDER = f"{PIPE}.gpt-5.2"
NEWER = f"{PIPE}.gpt-6.1-sol"
AGENT_MODEL = f"{PIPE}.gpt5_function_calling"
REACT = f"{PIPE}.gpt5_react"
USED: Json = {"tool_ids": ["toolkit"]}
ASKING = USED | ASKS
FULL: Json = {**USED, "params": {"model_controls": {}, "tool_approval_mode": "full"}}
SETTINGS: Json = {"model": "gpt-6.1-sol", "maximum_iterations": 4}


FAILED = "tool invoke error: failed to execute tool"
QUIET_SECONDS = 1.0


@pytest_asyncio.fixture(scope="module", autouse=True)
async def agents(
    admin: User, toolkit: None, pipe_source: str, pipe_valves: Json
) -> list[str]:
    """A copy of the pipe that lists models and both strategies, next to the toolkit."""
    names = "gpt-5.2, gpt-6.1-sol, gpt5_function_calling, gpt5_react"
    valves = {**pipe_valves, "MODEL_ID": names, "AGENT_JSON": json.dumps(SETTINGS)}
    return await install_pipe(admin, PIPE, pipe_source, valves)


@pytest_asyncio.fixture
async def storm(admin: User) -> AsyncIterator[None]:
    await install_tools(admin, "storm", (PLUGINS / "storm.py").read_text())
    yield
    await admin.call("DELETE", "/api/v1/tools/id/storm/delete")


def metadata_of(message: Json) -> Json:
    """What the host stored with the last status line of an answer."""
    lines = [line for line in message["statusHistory"] if "execution_metadata" in line]
    [last] = lines
    metadata: Json = last["execution_metadata"]
    return metadata


@pytest.mark.asyncio
async def test_work_of_several_rounds(
    agents: list[str], tab: Tab, simulator: Simulator
) -> None:
    """Listed under names that say what they do; the model is that of AGENT_JSON.

    A tool that fails is not called twice; the next turn sends all of it again (R21).
    """
    names = {row["id"]: row["name"] for row in await tab.user.models()}
    assert agents == [OLDER, NEWER, AGENT_MODEL, REACT]
    assert names[AGENT_MODEL] == "GPT Agent"
    assert names[REACT] == "GPT Agent (ReAct)"

    first = await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=USED)
    second = await tab.send(
        AGENT_MODEL, "sim:chat hi", chat_id=first.chat_id, body=USED
    )

    assert first.error is second.error is None
    *_, last, later = bodies = chat_bodies(simulator)
    for body in bodies:
        assert body["model"] == "gpt-6.1-sol"
        assert "<persistence>" in instructions_of(body)
    failed, repeated, output = tool_outputs(last)
    first_line, cause = failed.split("\n")
    assert first_line == "tool invoke error: failed to execute tool"
    assert cause.startswith("ValueError: canary-of-the-exception for ")
    assert "repeated failure detected" in repeated
    assert output.startswith("Sunny in")
    assert later["input"][: len(last["input"])] == last["input"]
    message = await tab.message(first)
    metadata = metadata_of(message)
    assert (metadata["rounds"], metadata["tool_calls"]) == (4, 3)
    assert metadata["ending"] == "completed"
    assert "4 rounds · 3 tool calls" in message["statusHistory"][-1]["description"]


@pytest.mark.asyncio
async def test_thirty_calls_of_tools_that_fail_hang_and_die(
    tab: Tab, admin: User, server: OpenWebUI, storm: None, simulator: Simulator
) -> None:
    """Each call has its output, in the order of the calls; the server lives on."""
    changes = {
        "TOOL_TIMEOUTS": "default: 120, hanging: 0.3",
        "AGENT_JSON": json.dumps({**SETTINGS, "maximum_iterations": 8}),
    }
    tools = {"tool_ids": ["storm"]}
    async with valves_changed(admin, PIPE, **changes):
        turn = await tab.send(AGENT_MODEL, "sim:agent-storm", body=tools)

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
    assert by_tool["hanging"] == ["Error: hanging did not finish within 0.3 s."] * 6
    assert by_tool["steady"] == [f"Calm in Town {number}." for number in range(6)]
    assert max(map(len, by_tool["endless"])) < 150_000
    metadata = metadata_of(await tab.message(turn))
    assert (metadata["rounds"], metadata["tool_calls"]) == (7, 30)
    assert server.is_running


@pytest.mark.asyncio
async def test_approvals_are_those_of_the_page(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """One question a call, none with full access in the chat (R33).

    A person decides also whether a call is made again that failed. A rule of the
    administrator asks in the dialog; there the second call of the broken tool is not put
    to the person if the first one failed.
    """
    calls = ["broken_weather", "broken_weather", "get_weather"]
    dialogs = tab.answer_questions(True)
    for body, action, count, words in (
        (ASKING, "approve", 3, "Sunny in"),
        (ASKING, "reject", 3, "rejected by user"),
        (FULL, "approve", 0, "Sunny in"),
    ):
        turn = await tab.begin(AGENT_MODEL, "sim:agent-work weather?", body=body)
        asked = await tab.decide(turn, action)

        assert turn.error is None
        assert dialogs == []
        assert asked == calls[:count]
        assert words in tool_outputs(chat_bodies(simulator)[-1])[-1]
        assert metadata_of(await tab.message(turn))["ending"] == "completed"

    for answer, count in ((True, 2), (False, 3)):
        dialogs = tab.answer_questions(answer)
        async with valves_changed(admin, PIPE, TOOL_APPROVAL="*_weather=ask"):
            turn = await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=ASKING)

        assert turn.error is None
        names = [question["tool_call"]["name"] for question in dialogs]
        assert names == calls[3 - count :]


def is_writing(turn: Turn) -> bool:
    return bool(turn.text.strip())


def has_begun(turn: Turn) -> bool:
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
    simulator.default_scenario = "agent-crew,delay=60"
    yield
    simulator.default_scenario = before


@pytest.mark.asyncio
@pytest.mark.usefixtures("sub_agents", "slow_crew")
async def test_nothing_is_sent_after_stop(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """In no phase; the page is told what the answer took, and the chat goes on.

    All are stopped together, each in a chat of its own.
    """
    asked = asyncio.Event()
    never = asyncio.Event()

    async def think_for_ever() -> None:
        asked.set()
        await never.wait()

    def answer(payload: Json) -> Any:
        return think_for_ever() if is_question(payload) else None

    tab.answer = answer
    async with valves_changed(admin, PIPE, TOOL_APPROVAL="take_note=ask"):
        turns: dict[str, Turn] = {}
        for phase, (text, body, _) in PHASES.items():
            turns[phase] = await tab.begin(AGENT_MODEL, text, body=body)
        for phase, sign in SIGNS.items():
            await turns[phase].until(sign)
        await asyncio.wait_for(asked.wait(), PATIENCE)
        requests = sum(count for _, _, count in PHASES.values())
        async with asyncio.timeout(PATIENCE):
            while len(answered(simulator)) < requests:  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # no event says that a request has come
        await asyncio.gather(*(tab.stop(turn) for turn in turns.values()))
        for turn in turns.values():
            await tab.settle(turn)
        sent = len(answered(simulator))
        simulator.release()
        await asyncio.sleep(QUIET_SECONDS)
        never.set()

    assert len(answered(simulator)) == sent == requests
    await simulator.all_ended()
    for turn in turns.values():
        await turn.until(lambda seen: "execution_metadata" in json.dumps(seen.statuses))
        [metadata] = [
            line["execution_metadata"]
            for line in turn.statuses
            if "execution_metadata" in line
        ]
        assert metadata["ending"] == "cancelled"
        assert turn.error is None
    tab.answer = lambda _: None
    for turn in turns.values():
        after = await tab.send(AGENT_MODEL, "sim:chat go on", chat_id=turn.chat_id)
        assert after.error is None
    assert {request.status for request in answered(simulator)} == {200}


CONTEXT = [{"title": "Office", "content": "Open 9 to 17."}, "It froze in 1963."]


@pytest.mark.asyncio
async def test_a_workspace_model_is_an_agent_of_its_own(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Its system prompt is the instruction; its parameters hold.

    Its context, which no request replaces (R8), is read and stored as sources.
    """
    params = {
        "system": "You are the harbor master.",
        "reasoning_effort": "low",
        "custom_params": {
            "maximum_iterations": "5",
            "context": json.dumps(CONTEXT),
        },
    }
    async with workspace_model(admin, AGENT_MODEL, params) as model:
        worked = await tab.send(model, "sim:agent-steps weather?", body=USED)
        rounds = len(chat_bodies(simulator))
        cited = await tab.send(model, "sim:annotations hello")
        message = await tab.message(cited)
        own: Json = {"context": "Closed."}
        replaced = await tab.send(model, "sim:short hello", body=own)

    assert worked.error is cited.error is replaced.error is None
    assert rounds == 6
    for body in chat_bodies(simulator):
        assert body["model"] == "gpt-6.1-sol"
        assert body["reasoning"]["effort"] == "low"
        text = instructions_of(body)
        assert text.index("harbor master") < text.index("<persistence>")
        assert '<entry name="Office">\nOpen 9 to 17.\n</entry>' in text
        assert "It froze in 1963." in text
        assert "Closed." not in str(body)
    names = [source["source"]["name"] for source in message["sources"]]
    assert names == ["Office", "Context 2", "The chronicle"]
    assert "the town's chronicle[3]" in message["content"]


@pytest.mark.asyncio
async def test_the_switch_makes_an_agent_of_a_model(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """For the messages that it is on for."""
    async with switches(admin, OLDER) as model:
        off = await tab.send(model, "sim:short hello", body=USED)
        more: Json = {"chat_id": off.chat_id}
        body = {**USED, "filter_ids": [AGENT]}
        on = await tab.send(model, "sim:agent-work weather?", body=body, **more)
        again = await tab.send(model, "sim:short thanks", body=USED, **more)

    assert off.error is on.error is again.error is None
    plain, *_, worked, after = chat_bodies(simulator)
    assert worked["model"] == "gpt-5.2"
    assert "<persistence>" not in str(plain)
    assert "<persistence>" in instructions_of(worked)
    assert kinds(worked["input"])[-1] == "function_call_output"
    assert "<persistence>" not in str(after["input"][0])
    assert metadata_of(await tab.message(on))["model"] == "gpt-5.2"


@pytest.mark.asyncio
async def test_limits_are_about_the_model_that_works(
    admin: User, simulator: Simulator
) -> None:
    """The name of an agent opens no other model, and neither does the switch."""
    rule = {"role": "user", "models": ["gpt-5.2*", "gpt5_*", "thoughtful"]}
    async with (
        administration(admin, USER_LIMITS_JSON=json.dumps([rule])),
        switches(admin, OLDER) as model,
        new_user(admin) as asker,
        Tab(asker) as tab,
    ):
        listed = [
            await tab.send(name, "sim:short hello") for name in (AGENT_MODEL, REACT)
        ]
        body = {**USED, "filter_ids": [AGENT]}
        switched = await tab.send(model, "sim:agent-work weather?", body=body)

    for turn in listed:
        assert "GPT-6.1 Sol is not available to you" in str(turn.error)
    assert switched.error is None
    assert {sent["model"] for sent in chat_bodies(simulator)} == {"gpt-5.2"}


@pytest.mark.asyncio
async def test_older_mode_evades_neither_limits_nor_rules(
    tab: Tab, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """Open WebUI chooses the tools in a request of its own, which counts as well.

    Where there are rules for tools, it is not answered, and no tool runs.
    """
    body = {"tool_ids": ["toolkit"], "params": {"function_calling": "legacy"}}
    choice = {"tool_calls": [{"name": "get_weather", "parameters": {"city": "Bern"}}]}
    question = f"sim:chat {json.dumps(choice)}"
    async with (
        administration(admin, USER_LIMITS_JSON=COUNTED),
        new_user(admin) as asker,
        Tab(asker) as own,
    ):
        turn = await own.send(AGENT_MODEL, question, body=body)
        requests = len(answered(simulator))
        counted = counted_requests(server, asker)
        async with valves_changed(admin, PIPE, TOOL_APPROVAL="get_*=deny"):
            denied = await own.send(AGENT_MODEL, question, body=body)

    assert turn.error is denied.error is None
    assert counted == requests == 2
    assert len(answered(simulator)) == requests + 1
    assert "Sunny in" not in json.dumps(answered(simulator)[-1].body)
