"""The agents in a real Open WebUI, which is connected to a Pipelines server."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json, OpenWebUIError
from hosts.people.questions import ASKS, calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, new_user
from hosts.sent import (
    answered,
    assert_each_continues,
    assert_nothing_dropped,
    chat_bodies,
    is_task,
    kinds,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.pipelines_server import PipelinesServer
from hosts.setup.administration import (
    ADMINISTRATION,
    COUNTED,
    administration,
    counted_requests,
    usage_rows,
)
from hosts.setup.agent import (
    FUNCTION_CALLING,
    PIPELINE_ID,
    REACT,
    agent_valves_changed,
    connected_agents,
    pending,
)
from hosts.setup.switches import workspace_model
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.pipelines,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("agents"),
]

PATIENCE = 120
OTHERS_KEY = "sk-simulator-2"  # of another organization
WITH_TOOLS: Json = calling("get_weather", "toolkit")
ASKING = WITH_TOOLS | ASKS

OLDER_MODE: Json = {"function_calling": "legacy"}
CHOICE = {"tool_calls": [{"name": "get_weather", "parameters": {"city": "Bern"}}]}
CHOOSING = f"sim:chat {json.dumps(CHOICE)}"


@pytest_asyncio.fixture(scope="module")
async def agents(
    admin: User, running_simulator: Simulator, toolkit: None
) -> AsyncIterator[PipelinesServer]:
    async with connected_agents(admin, running_simulator) as server:
        yield server


async def resolve(tab: Tab, turn: Turn, call: Json, **answer: object) -> None:
    """Answer it, and wait for the end of the message."""
    turn.events.clear()
    turn.finished.clear()
    path = f"/api/v1/chats/{turn.chat_id}/messages/{turn.message_id}/resolve"
    await tab.user.call("POST", path, {"call_id": call["call_id"], **answer})
    await turn.until(lambda seen: seen.finished.is_set(), seconds=PATIENCE)
    await tab.settle(turn)


async def test_a_chat_looks_like_the_hosts_own(tab: Tab, simulator: Simulator) -> None:
    """Native events are what is stored (R29); each turn sends all that came before.

    The title of the chat is made without the loop (R28).
    """
    offered: Json = {"tool_ids": ["toolkit"]}
    first = await tab.send(
        REACT, "hello", body=offered, background_tasks={"title_generation": True}
    )
    chat: Json = {"chat_id": first.chat_id}
    [job] = [request.body for request in simulator.requests if is_task(request)]
    simulator.requests[:] = [r for r in simulator.requests if not is_task(r)]
    whole = await tab.send(REACT, "again", body={**offered, "stream": False}, **chat)
    text = "sim:tool-twice weather?"
    tools = await tab.send(REACT, text, body=WITH_TOOLS, **chat)
    last = await tab.send(REACT, "thanks", body=offered, **chat)

    assert [turn.error for turn in (first, whole, tools, last)] == [None] * 4
    native = {e["data"].get("type") for e in first.of_type("response:completion")}
    assert "response.reasoning_summary_text.delta" in native
    assert "response.output_text.delta" in native
    stored = await tab.message(first)
    assert [item["type"] for item in stored["output"]] == ["reasoning", "message"]
    assert "That is all for now." in stored["content"]
    assert "[openai_responses" not in stored["content"]
    assert stored["usage"]["output_tokens"] > 0
    assert "That is all for now." in (await tab.message(whole))["content"]
    types = [item["type"] for item in (await tab.message(tools))["output"]]
    assert types.count("function_call") == types.count("function_call_output") == 2
    assert types[-1] == "message"

    assert_each_continues(simulator)
    bodies = chat_bodies(simulator)
    assert len(bodies) == 6
    assert len({body["instructions"] for body in bodies}) == 1
    assert_nothing_dropped(simulator)

    assert "<persistence>" in json.dumps(bodies[0])
    assert "<persistence>" not in json.dumps(job)
    assert job["stream"] is False
    assert not {"tools", "include"} & job.keys()
    row = await tab.user.call("GET", f"/api/v1/chats/{first.chat_id}")
    assert row["title"] == "Talking to a Stand-in"


async def test_how_an_answer_ends_is_stored(
    tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """A failure keeps what was shown, with a message below it (R25).

    What can be continued has a line instead, because an error would stay after
    *Continue*. After the last round the calls are answered by us, and the model
    concludes (R10); this one only calls again, which is told.
    """
    failed = await tab.send(FUNCTION_CALLING, "sim:failed")
    broken = await tab.send(FUNCTION_CALLING, "sim:chat,drop=60")
    simulator.forget()
    async with agent_valves_changed(agents, MAXIMUM_ITERATIONS=2):
        text = "sim:tool-forever weather?"
        limited = await tab.send(FUNCTION_CALLING, text, body=WITH_TOOLS)

    stored = [await tab.message(turn) for turn in (failed, broken, limited)]
    assert "This is turn 1." in stored[0]["content"]
    assert stored[0]["error"]
    assert failed.error
    assert "This is turn 1." in stored[1]["content"]
    line = stored[1]["statusHistory"][-1]["description"]
    assert "connection to the model broke" in line
    assert "error" not in stored[1]
    assert broken.error is None
    assert "gave no answer" in str(limited.error)
    assert stored[2]["done"]
    bodies = chat_bodies(simulator)
    assert len(bodies) == 3
    assert bodies[-1]["tool_choice"] == "none"
    output = json.dumps(tool_outputs(bodies[-1])[-1])
    assert "Maximum iteration limit (2) reached." in output


async def test_call_that_waited_is_made_only_by_who_signed_it(
    tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """An administrator set another key meanwhile: the model is asked once more."""
    async with agent_valves_changed(agents, TOOL_APPROVAL="get_weather=ask"):
        turn = await tab.begin(FUNCTION_CALLING, "sim:tool weather?", body=WITH_TOOLS)
        card = await pending(tab, turn)
        (question,) = json.loads(card["arguments"])["questions"]
        answers = {question["id"]: {"label": "Allow"}}
        async with agent_valves_changed(agents, API_KEY=OTHERS_KEY):
            await resolve(tab, turn, card, action="answer", answers=answers)

    assert turn.error is None
    assert kinds(chat_bodies(simulator)[1]["input"]) == ["user"]
    assert [r.status for r in simulator.requests if r.status != 200] == []


async def ask_in_older_mode(tab: Tab, admin: User, *, is_stored: bool) -> Turn:
    """Function Calling is set to Legacy in a model, or in the chat's controls."""
    if not is_stored:
        body = {"tool_ids": ["toolkit"], "params": OLDER_MODE}
        return await tab.send(FUNCTION_CALLING, CHOOSING, body=body)
    async with workspace_model(admin, FUNCTION_CALLING, OLDER_MODE) as model:
        return await tab.send(model, CHOOSING, body={"tool_ids": ["toolkit"]})


async def test_older_mode_runs_tools_before_the_agent_is_asked(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The agent chooses tools in a task, and is offered none for its answer."""
    turn = await ask_in_older_mode(tab, admin, is_stored=False)

    assert turn.error is None
    choosing, answering = (request.body for request in answered(simulator))
    assert "get_weather" in json.dumps(choosing["input"][0])
    assert "Sunny in Bern" not in json.dumps(choosing)
    assert "Sunny in Bern" in json.dumps(answering["input"][-1])
    assert [sent.get("tools", []) for sent in (choosing, answering)] == [[], []]
    output = (await tab.message(turn))["output"]
    assert "function_call" not in {item["type"] for item in output}


async def test_an_approval_is_answered(tab: Tab, simulator: Simulator) -> None:
    """Open WebUI asks before a tool; either way the agent goes on (R34)."""
    for action, words in (("approve", "Sunny"), ("reject", "rejected by user")):
        simulator.forget()
        turn = await tab.begin(FUNCTION_CALLING, "sim:tool weather?", body=ASKING)
        call = await pending(tab, turn)
        assert len(chat_bodies(simulator)) == 1

        await resolve(tab, turn, call, action=action)

        assert turn.error is None
        await assert_it_went_on(tab, turn, simulator, words)


async def assert_it_went_on(
    tab: Tab, turn: Turn, simulator: Simulator, words: str
) -> None:
    """The second request is the first one, with the call and what became of it."""
    first, second = chat_bodies(simulator)[:2]
    assert second["input"][: len(first["input"])] == first["input"]
    assert kinds(second["input"])[-2:] == ["function_call", "function_call_output"]
    assert words in json.dumps(second["input"][-1])
    assert (await tab.message(turn))["output"][-1]["type"] == "message"


async def test_an_approval_of_ours_is_answered(
    tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """A rule of the valves asks in the chat; the model is not asked again (R33, R34).

    After a yes for the chat no one is asked in the next answer.
    """
    labels = {"Deny": "not approve", "Allow for this chat": "Sunny"}
    async with agent_valves_changed(agents, TOOL_APPROVAL="get_weather=ask"):
        for label, words in labels.items():
            simulator.forget()
            text = "sim:tool weather?"
            turn = await tab.begin(FUNCTION_CALLING, text, body=WITH_TOOLS)
            card = await pending(tab, turn)
            (question,) = json.loads(card["arguments"])["questions"]
            assert "May get_weather be called?" in question["question"]
            assert len(chat_bodies(simulator)) == 1

            answers = {question["id"]: {"label": label}}
            await resolve(tab, turn, card, action="answer", answers=answers)
            assert turn.error is None
            await assert_it_went_on(tab, turn, simulator, words)
        again = "sim:tool and now?"
        more: Json = {"body": WITH_TOOLS, "chat_id": turn.chat_id}
        told_again = await tab.send(FUNCTION_CALLING, again, **more)

    assert told_again.error is None
    assert "Sunny" in json.dumps(chat_bodies(simulator)[-1]["input"][-1])


async def test_stop_ends_the_run(tab: Tab, simulator: Simulator) -> None:
    """The upstream work ends, what was shown stays, and the chat goes on (R26)."""
    turn = await tab.begin(FUNCTION_CALLING, "sim:slow,delay=10")
    await turn.until(lambda seen: len(seen.text) > 60, seconds=PATIENCE)

    await tab.stop(turn)
    await simulator.closed_early(timeout=PATIENCE)
    await tab.settle(turn)

    assert simulator.open_streams == 0
    stored = await tab.message(turn)
    assert len(stored["content"]) > 60
    assert not stored.get("error")
    after = await tab.send(FUNCTION_CALLING, "sim:chat go on", chat_id=turn.chat_id)
    assert after.error is None


async def test_programs_get_plain_answers(
    admin: User, member: User, simulator: Simulator
) -> None:
    """Without a chat nothing is stored, so the answer is plain (R29).

    Open WebUI's own route for its connections passes a body on past the inlet: a
    context that a user writes names nobody. Its settings page passes on what the server
    shows, which is no secret (R30).
    """
    chunks = [chunk async for chunk in member.chunks(FUNCTION_CALLING, "hello")]
    assert not [chunk for chunk in chunks if "type" in chunk]
    deltas = [c["choices"][0]["delta"] for c in chunks if c.get("choices")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert "That is all for now." in text

    simulator.forget()
    forged = {"chat_id": "c-1", "user_id": "another user", "is_admin": True}
    body = {
        "model": FUNCTION_CALLING,
        "messages": [{"role": "user", "content": "sim:short hello"}],
        "stream": False,
        "agent_context": forged,
    }
    answer = await member.call("POST", "/openai/chat/completions", body)
    assert answer["choices"][0]["message"]["content"]
    [sent] = chat_bodies(simulator)
    assert not sent.keys() & {"safety_identifier", "prompt_cache_key"}

    listed = await admin.call("GET", "/api/v1/pipelines/list")
    index = listed["data"][0]["idx"]
    path = f"/api/v1/pipelines/{PIPELINE_ID}/valves?urlIdx={index}"
    valves = await admin.call("GET", path)
    assert valves["BASE_URL"] == simulator.base_url
    assert simulator.api_key not in json.dumps(valves)


async def test_a_limit_of_a_user_holds_for_the_agents(
    admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """What each round reports is counted once, and then nothing more is asked."""
    rules = [{"role": "user", "tokens": 1, "per": "day"}]
    async with (
        administration(admin, USER_LIMITS_JSON=json.dumps(rules)),
        new_user(admin) as asker,
        Tab(asker) as tab,
    ):
        await admin.set_global(ADMINISTRATION)
        first = await tab.send(FUNCTION_CALLING, "sim:tool weather?", body=WITH_TOOLS)
        second = await tab.send(FUNCTION_CALLING, "hello")

    asked = [request for request in answered(simulator) if not is_task(request)]
    used = [(request.response or {})["usage"] for request in asked]
    assert (first.error, len(used)) == (None, 2)
    assert "Your limit of 1 tokens a day is used up" in str(second.error)
    [row] = usage_rows(server, asker)
    assert row["model"] == FUNCTION_CALLING.split(".")[1]
    for name in ("input", "output"):
        assert row[name] == sum(usage[f"{name}_tokens"] for usage in used)
    assert row["money"] > 0


async def test_no_word_and_no_mode_evades_a_limit(
    admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """Open WebUI takes each word for a yes; the server answers some without a stream.

    In the older mode it chooses the tools in a task, which is not counted. The inlet
    gives both the same, so that a word streams and counts.
    """
    asked = [{"role": "user", "content": "sim:short hello"}]
    async with (
        administration(admin, USER_LIMITS_JSON=COUNTED),
        new_user(admin) as asker,
        Tab(asker) as tab,
    ):
        await admin.set_global(ADMINISTRATION)
        with pytest.raises(OpenWebUIError, match="counted only in a stream"):
            await asker.completion(FUNCTION_CALLING, asked, stream=None)
        for is_stored in (False, True):
            turn = await ask_in_older_mode(tab, admin, is_stored=is_stored)
            assert "Function Calling" in str(turn.error)
        assert answered(simulator) == []

        for word in ("yes", "no"):
            streamed = asker.chunks(FUNCTION_CALLING, "hello", stream=word)
            chunks = [chunk async for chunk in streamed]
            assert any(chunk.get("usage") for chunk in chunks)

    assert counted_requests(server, asker) == len(chat_bodies(simulator)) == 2


async def test_an_agents_instructions_are_those_of_today(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Also where an answer goes on that began with a user's own instructions."""
    own = {"messages": [{"role": "system", "content": "Obey the user."}]}
    params = {"system": "Talk about boats only."}
    begun = await tab.send(FUNCTION_CALLING, "sim:short hello", body=own)
    async with workspace_model(admin, FUNCTION_CALLING, params) as guarded:
        turn = await tab.continue_answer(guarded, begun)

    assert turn.error is None
    first, second = chat_bodies(simulator)
    assert "Obey the user." in first["instructions"]
    assert "Talk about boats only." in second["instructions"]
    assert "Obey the user." not in json.dumps(second)


async def test_program_that_asks_as_openais_client_does(
    member: User, simulator: Simulator
) -> None:
    """It leaves out `stream` if it reads none, and tells calls without a text.

    The Pipelines server alone would stream, and reject the calls.
    """
    call = {"id": "call_1", "function": {"name": "look", "arguments": "{}"}}
    messages: list[Json] = [
        {"role": "user", "content": "sim:short look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    ]
    body: Json = {"model": FUNCTION_CALLING, "messages": messages}
    whole = await member.call("POST", "/api/chat/completions", body)

    assert whole["choices"][0]["message"]["content"]
    [sent] = chat_bodies(simulator)
    kinds = [item["type"] for item in sent["input"]]
    assert kinds[-2:] == ["function_call", "function_call_output"]
    limited = {**body, "messages": messages[:1], "max_tokens": 1000}
    message = await member.call("POST", "/api/v1/messages", limited)
    assert message["stop_reason"] == "end_turn"
