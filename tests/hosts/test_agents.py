"""Agents of the pipe in the real Open WebUI: its tools, approvals, switch, Stop."""

import asyncio
import json

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, new_user
from hosts.sent import (
    answered,
    assert_nothing_dropped,
    chat_bodies,
    instructions_of,
    kinds,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import COUNTED, administration, counted_requests
from hosts.setup.pipes import install_pipe, valves_changed
from hosts.setup.switches import AGENT, switches, workspace_model
from simulator import Simulator

pytestmark = pytest.mark.host

PIPE = "agents"
OLDER = f"{PIPE}.gpt-5.2"
NEWER = f"{PIPE}.gpt-6.1-sol"
AGENT_MODEL = f"{PIPE}.gpt5_function_calling"
REACT = f"{PIPE}.gpt5_react"
USED: Json = {"tool_ids": ["toolkit"]}
ASKS: Json = {**USED, "params": {"model_controls": {}, "tool_approval_mode": "ask"}}
FULL: Json = {**USED, "params": {"model_controls": {}, "tool_approval_mode": "full"}}
SETTINGS: Json = {"model": "gpt-6.1-sol", "maximum_iterations": 4}


@pytest_asyncio.fixture(scope="module", autouse=True)
async def agents(
    admin: User, toolkit: None, pipe_source: str, pipe_valves: Json
) -> list[str]:
    """A copy of the pipe that lists models and both strategies, next to the toolkit."""
    names = "gpt-5.2, gpt-6.1-sol, gpt5_function_calling, gpt5_react"
    valves = {**pipe_valves, "MODEL_ID": names, "AGENT_JSON": json.dumps(SETTINGS)}
    return await install_pipe(admin, PIPE, pipe_source, valves)


def metadata_of(message: Json) -> Json:
    """What the host stored with the last status line of an answer."""
    lines = [line for line in message["statusHistory"] if "execution_metadata" in line]
    [last] = lines
    metadata: Json = last["execution_metadata"]
    return metadata


@pytest.mark.asyncio
async def test_both_strategies_are_listed(
    agents: list[str], tab: Tab, simulator: Simulator
) -> None:
    """Under names that say what they do; they answer with the model of AGENT_JSON."""
    names = {row["id"]: row["name"] for row in await tab.user.models()}
    for model in (AGENT_MODEL, REACT):
        turn = await tab.send(model, "sim:short hello")
        assert turn.error is None

    assert agents == [OLDER, NEWER, AGENT_MODEL, REACT]
    assert names[AGENT_MODEL] == "GPT agent (plans, uses tools)"
    assert names[REACT] == "GPT agent (ReAct)"
    for body in chat_bodies(simulator):
        assert body["model"] == "gpt-6.1-sol"
        assert "<persistence>" in instructions_of(body)


@pytest.mark.asyncio
async def test_work_of_several_rounds(tab: Tab, simulator: Simulator) -> None:
    """A tool that fails is not called twice; the next turn sends all of it again (R21)."""
    first = await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=USED)
    second = await tab.send(
        AGENT_MODEL, "sim:chat thanks", chat_id=first.chat_id, body=USED
    )

    assert first.error is second.error is None
    *_, last, later = chat_bodies(simulator)
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
async def test_hidden_steps_keep_the_prefix(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """What the model wrote between its tools is not shown, but sent again."""
    settings = json.dumps({**SETTINGS, "emit_intermediate_thoughts": False})
    async with valves_changed(admin, PIPE, AGENT_JSON=settings):
        first = await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=USED)
        await tab.send(AGENT_MODEL, "sim:chat thanks", chat_id=first.chat_id, body=USED)

    *_, last, later = chat_bodies(simulator)
    assert "I ask another one." in str(last["input"])
    assert later["input"][: len(last["input"])] == last["input"]
    message = await tab.message(first)
    visible = [i for i in message["output"] if not i["type"].endswith(":kept")]
    assert "I ask another one." not in str(visible)


@pytest.mark.asyncio
async def test_the_limit_of_rounds_ends_in_an_answer(
    tab: Tab, simulator: Simulator
) -> None:
    """The model hears of it, and answers without tools (R10)."""
    turn = await tab.send(AGENT_MODEL, "sim:agent-steps weather?", body=USED)

    assert turn.error is None
    assert "This is what I have so far" in turn.text
    bodies = chat_bodies(simulator)
    assert len(bodies) == SETTINGS["maximum_iterations"] + 1
    assert bodies[-1]["tool_choice"] == "none"
    assert "Maximum iteration limit (4)" in tool_outputs(bodies[-1])[-1]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "action", "count", "words"),
    [
        (ASKS, "approve", 3, "Sunny in"),
        (ASKS, "reject", 3, "rejected by user"),
        (FULL, "approve", 0, "Sunny in"),
    ],
    ids=["each call", "denied", "the whole chat"],
)
async def test_approvals_are_those_of_the_page(
    tab: Tab, simulator: Simulator, body: Json, action: str, count: int, words: str
) -> None:
    """One question a call, none with full access in the chat (R33).

    A person decides also whether a call is made again that failed.
    """
    dialogs = tab.answer_questions(True)
    turn = await tab.begin(AGENT_MODEL, "sim:agent-work weather?", body=body)
    asked = await tab.decide(turn, action)

    assert turn.error is None
    assert dialogs == []
    assert asked == ["broken_weather", "broken_weather", "get_weather"][:count]
    assert words in tool_outputs(chat_bodies(simulator)[-1])[-1]
    assert metadata_of(await tab.message(turn))["ending"] == "completed"


@pytest.mark.asyncio
@pytest.mark.parametrize(("answer", "count"), [(True, 2), (False, 3)])
async def test_approvals_of_a_rule_are_asked_for_in_the_dialog(
    tab: Tab, admin: User, simulator: Simulator, answer: bool, count: int
) -> None:
    """The second call of the broken tool is not put to the person if the first failed."""
    dialogs = tab.answer_questions(answer)
    async with valves_changed(admin, PIPE, TOOL_APPROVAL="*_weather=ask"):
        turn = await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=ASKS)

    assert turn.error is None
    names = [question["tool_call"]["name"] for question in dialogs]
    expected = ["broken_weather", "broken_weather", "get_weather"]
    assert names == expected[3 - count :]


@pytest.mark.asyncio
async def test_a_rule_of_the_administrator_denies(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """TOOL_APPROVAL holds, whatever the chat allows."""
    asked = tab.answer_questions(True)
    async with valves_changed(admin, PIPE, TOOL_APPROVAL="get_*=deny"):
        await tab.send(AGENT_MODEL, "sim:agent-work weather?", body=FULL)

    assert asked == []
    assert "does not allow get_weather" in tool_outputs(chat_bodies(simulator)[-1])[-1]


@pytest.mark.asyncio
async def test_stop_in_a_round_asks_nothing_more(
    tab: Tab, simulator: Simulator
) -> None:
    """The tool that runs is stopped, and the page is told what the answer took."""
    body = calling("slow_weather", "toolkit")
    turn = await tab.begin(AGENT_MODEL, "sim:tool weather?", body=body)
    await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
    await tab.stop(turn)
    await tab.settle(turn)
    await turn.until(lambda seen: "execution_metadata" in json.dumps(seen.statuses))

    assert len(chat_bodies(simulator)) == 1
    assert turn.error is None
    metadata = turn.statuses[-1]["execution_metadata"]
    assert (metadata["ending"], metadata["rounds"]) == ("cancelled", 1)
    after = await tab.send(AGENT_MODEL, "sim:chat go on", chat_id=turn.chat_id)
    assert after.error is None
    assert len(chat_bodies(simulator)) == 2


@pytest.mark.asyncio
async def test_two_people_at_once(tab: Tab, admin: User, simulator: Simulator) -> None:
    """Each has rounds, failures and figures of their own."""
    async with Tab(admin) as other:
        both: list[Turn] = await asyncio.gather(
            *(
                page_tab.send(AGENT_MODEL, "sim:agent-work hi", body=USED)
                for page_tab in (tab, other)
            )
        )
        messages = [await tab.message(both[0]), await other.message(both[1])]

    for message in messages:
        assert (metadata_of(message)["rounds"], message.get("error")) == (4, None)
    assert len(chat_bodies(simulator)) == 8


@pytest.mark.asyncio
async def test_a_workspace_model_is_an_agent_of_its_own(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Its system prompt is the instruction; its parameters hold."""
    params = {
        "system": "You are the harbor master.",
        "reasoning_effort": "low",
        "custom_params": {"maximum_iterations": "7"},
    }
    async with workspace_model(admin, AGENT_MODEL, params) as model:
        turn = await tab.send(model, "sim:agent-steps weather?", body=USED)

    assert turn.error is None
    *_, last = bodies = chat_bodies(simulator)
    assert len(bodies) == 8
    assert last["model"] == "gpt-6.1-sol"
    assert last["reasoning"]["effort"] == "low"
    text = instructions_of(last)
    assert text.index("harbor master") < text.index("<persistence>")


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
async def test_the_switch_keeps_the_beginning_of_a_chat(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """With models that append: the policies come after what was sent before."""
    async with switches(admin, NEWER) as model:
        off = await tab.send(model, "sim:short hello", body=USED)
        more: Json = {"chat_id": off.chat_id}
        body = {**USED, "filter_ids": [AGENT]}
        await tab.send(model, "sim:agent-work weather?", body=body, **more)
        await tab.send(model, "sim:short thanks", body=USED, **more)

    bodies = chat_bodies(simulator)
    inputs = [body["input"] for body in (bodies[0], bodies[-2], bodies[-1])]
    assert "<persistence>" not in str(inputs[0])
    assert "<persistence>" in str(inputs[1][len(inputs[0]) :])
    assert inputs[1][: len(inputs[0])] == inputs[0]
    assert inputs[2][: len(inputs[1])] == inputs[1]
    assert_nothing_dropped(simulator)


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
        assert "gpt-6.1-sol is not available to you" in str(turn.error)
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


@pytest.mark.asyncio
@pytest.mark.usefixtures("sub_agents")
async def test_sub_agents_are_those_of_the_host(tab: Tab, simulator: Simulator) -> None:
    """The policy names them, and one that is called is an agent, too."""
    turn = await tab.send(AGENT_MODEL, "sim:tool", body=calling("delegate_task"))

    assert turn.error is None
    first, *_, last = chat_bodies(simulator)
    assert "`delegate_task`" in instructions_of(first)
    assert tool_outputs(last)[0].startswith("This is turn 1.")
    assert all("<persistence>" in str(body["input"]) for body in chat_bodies(simulator))


CONTEXT = [{"title": "Office", "content": "Open 9 to 17."}, "It froze in 1963."]


@pytest.mark.asyncio
async def test_context_is_read_and_stored_as_sources(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """That of a workspace model, which no request replaces (R8)."""
    params: Json = {"custom_params": {"context": json.dumps(CONTEXT)}}
    async with workspace_model(admin, AGENT_MODEL, params) as model:
        turn = await tab.send(model, "sim:annotations hello")
        message = await tab.message(turn)
        own: Json = {"context": "Closed."}
        replaced = await tab.send(model, "sim:short hello", body=own)

    assert turn.error is replaced.error is None
    for body in chat_bodies(simulator):
        text = instructions_of(body)
        assert '<entry name="Office">\nOpen 9 to 17.\n</entry>' in text
        assert "It froze in 1963." in text
        assert "Closed." not in str(body)
    names = [source["source"]["name"] for source in message["sources"]]
    assert names == ["Office", "Context 2", "The chronicle"]
    assert "the town's chronicle[3]" in message["content"]
