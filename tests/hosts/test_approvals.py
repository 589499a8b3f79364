"""Approvals at the host's own cards, stored with the chat; and those of the pipe."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, waiting_calls
from hosts.people.users import User, settings_changed
from hosts.sent import (
    assert_each_continues,
    assert_nothing_dropped,
    chat_bodies,
    kinds,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
AGENTS = "asking_agents"
AGENT = f"{AGENTS}.gpt5_function_calling"
TOOL = "blocking_weather"  # the first one that the toolkit offers
USED: Json = {"tool_ids": ["toolkit"]}
ASKING: Json = {"params": {"model_controls": {}, "tool_approval_mode": "ask"}}
ASKS = USED | ASKING
CHATS = "/api/v1/chats/config"


@pytest_asyncio.fixture(scope="module")
async def agents(
    admin: User, toolkit: None, pipe_source: str, pipe_valves: Json
) -> AsyncIterator[None]:
    """A copy of the pipe with an agent that may take three rounds."""
    settings = {"model": "gpt-6.1-sol", "maximum_iterations": 3}
    names = "gpt-6.1-sol, gpt5_function_calling"
    valves = {**pipe_valves, "MODEL_ID": names, "AGENT_JSON": json.dumps(settings)}
    await install_pipe(admin, AGENTS, pipe_source, valves)
    yield
    await admin.delete_function(AGENTS)


CASES = {
    "one": ("tool", [TOOL]),
    "two at once": ("parallel", [TOOL] * 2),
    "after text": ("tool-after-text", [TOOL]),
    "two rounds": ("tool-twice", [TOOL] * 2),
    "text in each round": ("remarks", [TOOL] * 2),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("action", ["approve", "reject"])
@pytest.mark.parametrize("carrier", ["output", "markers"])
@pytest.mark.parametrize("case", CASES)
async def test_answer_goes_on_with_its_reasoning(
    tab: Tab, admin: User, simulator: Simulator, case: str, carrier: str, action: str
) -> None:
    """Each request is the one before it and what that received, byte for byte."""
    scenario, names = CASES[case]
    dialogs = tab.answer_questions(True)
    async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
        first = await tab.begin(MODEL, f"sim:{scenario} how?", body=ASKS)
        asked = await tab.decide(first, action)
        second = await tab.send(
            MODEL, "sim:chat thanks", chat_id=first.chat_id, body=ASKS
        )

    assert asked == names
    assert dialogs == []
    assert first.error is second.error is None
    outputs = tool_outputs(chat_bodies(simulator)[-1])
    words = "Heavy sun in" if action == "approve" else "tool call rejected by user"
    assert len(outputs) == len(names)
    assert all(words in output for output in outputs)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") >= 2
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_decision_waits_for_another_device(
    member: User, simulator: Simulator
) -> None:
    """No one has the page open, and the answer is not over; then it is."""
    async with Tab(member) as tab:
        turn = await tab.begin(MODEL, "sim:tool how?", body=ASKS)
        await tab.settle(turn)
    async with Tab(member) as other:
        waiting = await other.message(turn)
        assert await other.decide(turn) == [TOOL]
        ended = await other.message(turn)

    assert (waiting["done"], len(waiting_calls(waiting))) == (False, 1)
    assert "statusHistory" not in waiting  # it does not say "Finished"
    assert ended["done"]
    assert "It said: Heavy sun in" in ended["content"]
    assert [line["description"][:11] for line in ended["statusHistory"]] == [
        "Finished in"
    ]


@pytest.mark.asyncio
async def test_server_may_restart_before_the_decision(
    server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """The question and the reasoning are in the chat."""
    async with Tab(member) as tab:
        turn = await tab.begin(MODEL, "sim:tool how?", body=ASKS)
        await tab.settle(turn)
    await server.crash_and_restart()
    async with Tab(member) as tab:
        assert await tab.decide(turn) == [TOOL]
        ended = await tab.message(turn)

    assert "It said: Heavy sun in" in ended["content"]
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)


QUESTION = {
    "id": "lake",
    "header": "Lake",
    "question": "Which lake?",
    "options": [
        {"label": "Zürich", "description": "The long one"},
        {"label": "Zug", "description": "The deep one"},
    ],
}
ASK_USER = json.dumps({"questions": [QUESTION]}, ensure_ascii=False)
WAITING = {
    "an approval": ("sim:tool how?", ASKS),
    "a question": (f"sim:tool {ASK_USER}", USED | calling("ask_user", "toolkit")),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("what", WAITING)
async def test_stop_ends_the_waiting(tab: Tab, simulator: Simulator, what: str) -> None:
    """Nothing is made, and the chat goes on without the call."""
    text, body = WAITING[what]
    turn = await tab.begin(MODEL, text, body=body)
    await tab.settle(turn)
    await tab.stop(turn)
    stopped = await tab.message(turn)
    after = await tab.send(MODEL, "sim:chat go on", chat_id=turn.chat_id, body=ASKS)

    assert stopped["done"]
    assert after.error is None
    assert tool_outputs(chat_bodies(simulator)[-1]) == []
    assert_nothing_dropped(simulator)


# ---------------------------------------------------------------- what the pipe asks


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", [True, False])
async def test_rule_of_the_administrator_is_asked_about_once(
    tab: Tab, admin: User, simulator: Simulator, answer: bool
) -> None:
    """In the dialog, also where the chat asks: its user can switch that off."""
    dialogs = tab.answer_questions(answer)
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        turn = await tab.send(MODEL, "sim:parallel how?", body=ASKS)

    [dialog] = dialogs
    assert turn.error is None
    assert list(dialog["tool_call"]["arguments"]) == [f"1. {TOOL}", f"2. {TOOL}"]
    words = "Heavy sun in" if answer else "did not approve"
    outputs = tool_outputs(chat_bodies(simulator)[-1])
    assert [words in output for output in outputs] == [True, True]


@pytest.mark.asyncio
async def test_rule_that_allows_a_tool_asks_nobody(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The others of the same response are left to the host."""
    dialogs = tab.answer_questions(False)
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=auto"):
        turn = await tab.begin(MODEL, "sim:tool how?", body=ASKS)
        asked = await tab.decide(turn)

    assert (dialogs, asked) == ([], [])
    [output] = tool_outputs(chat_bodies(simulator)[-1])
    assert "Heavy sun in" in output


@pytest.mark.asyncio
async def test_temporary_chat_asks_once_in_the_dialog(
    tab: Tab, simulator: Simulator
) -> None:
    """The host stores nothing of it."""
    dialogs = tab.answer_questions(True)
    turn = await tab.send(MODEL, "sim:parallel how?", body=ASKS, temporary=[])

    [dialog] = dialogs
    assert turn.error is None
    assert len(dialog["tool_call"]["arguments"]) == 2
    assert len(tool_outputs(chat_bodies(simulator)[-1])) == 2


@pytest.mark.asyncio
async def test_call_with_hidden_characters_is_not_left_to_the_card(
    tab: Tab, simulator: Simulator
) -> None:
    """The host's card would show it as they want it; the dialog has escapes."""
    dialogs = tab.answer_questions(True)
    call = json.dumps({"city": "Bern\u202e\u200b\U000e0041"})
    body = ASKS | calling("get_weather", "toolkit")
    turn = await tab.send(MODEL, f"sim:tool {call}", body=body)

    [dialog] = dialogs
    assert turn.error is None
    assert dialog["tool_call"]["arguments"] == {
        "city": "Bern\\u202e\\u200b\\udb40\\udc41"
    }
    [output] = tool_outputs(chat_bodies(simulator)[-1])
    assert output == "Sunny in Bern\u202e\u200b\U000e0041."


@pytest.mark.asyncio
async def test_call_tool_is_asked_about_by_what_it_runs(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The card has that tool's name; the model is sent its own call again."""
    search = {"ENABLE_TOOL_SEARCH": True, "TOOL_SEARCH_DEFER_THRESHOLD": 0}
    call = json.dumps({"tool_name": "get_weather", "params": '{"city": "Bern"}'})
    body = ASKS | calling("call_tool", "toolkit")
    async with settings_changed(admin, CHATS, search):
        turn = await tab.begin(MODEL, f"sim:tool {call}", body=body)
        asked = await tab.decide(turn)
        after = await tab.send(MODEL, "sim:chat on", chat_id=turn.chat_id, body=body)

    assert asked == ["get_weather"]
    assert after.error is None
    assert tool_outputs(chat_bodies(simulator)[-1]) == ["Sunny in Bern."]
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_output_of_an_approved_call_is_limited(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Open WebUI made the call, and knows no limit."""
    call = json.dumps({"city": "B" * 3_000})
    body = ASKS | calling("get_weather", "toolkit")
    async with valves_changed(admin, PIPE, TOOL_OUTPUT_CHARACTERS=1_000):
        turn = await tab.begin(MODEL, f"sim:tool {call}", body=body)
        await tab.decide(turn)
        after = await tab.send(MODEL, "sim:chat on", chat_id=turn.chat_id, body=body)

    assert after.error is None
    [output] = tool_outputs(chat_bodies(simulator)[-1])
    assert 1_000 < len(output) < 1_060
    assert "characters are cut here" in output
    assert_each_continues(simulator)


# ---------------------------------------------------------------- agents, questions


@pytest.mark.asyncio
@pytest.mark.usefixtures("agents")
async def test_agent_keeps_its_limits_between_approvals(
    tab: Tab, simulator: Simulator
) -> None:
    """Three rounds, whoever makes their calls; then it has to answer without tools."""
    turn = await tab.begin(AGENT, "sim:tool-forever how?", body=ASKS)
    asked = await tab.decide(turn)

    assert asked == [TOOL] * 2
    bodies = chat_bodies(simulator)
    assert [body.get("tool_choice") for body in bodies] == [None, None, None, "none"]
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_question_to_the_user_is_stored(
    member: User, simulator: Simulator
) -> None:
    """In any mode: it is answered from another device, too."""
    text, body = WAITING["a question"]
    async with Tab(member) as tab:
        turn = await tab.begin(MODEL, text, body=body)
        await tab.settle(turn)
    async with Tab(member) as other:
        asked = await other.decide(turn, "answer", answers={"lake": "Zug"})
        ended = await other.message(turn)

    assert asked == ["ask_user"]
    assert ended["done"]
    [output] = tool_outputs(chat_bodies(simulator)[-1])
    assert json.loads(output) == {"status": "answered", "answers": {"lake": "Zug"}}
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)
