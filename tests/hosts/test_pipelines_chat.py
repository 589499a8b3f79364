"""The agents in a real Open WebUI, which is connected to a Pipelines server."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json, OpenWebUIError
from hosts.people.questions import calling
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
    connected,
    install_pipeline,
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
ASKING: Json = {
    **WITH_TOOLS,
    "params": {"model_controls": {}, "tool_approval_mode": "ask"},
}

OLDER_MODE: Json = {"function_calling": "legacy"}
CHOICE = {"tool_calls": [{"name": "get_weather", "parameters": {"city": "Bern"}}]}
CHOOSING = f"sim:chat {json.dumps(CHOICE)}"
WHERE_OLDER_MODE_IS_SET = pytest.mark.parametrize(
    "is_stored", [False, True], ids=["chat", "model"]
)


@pytest_asyncio.fixture(scope="module")
async def agents(
    admin: User, running_simulator: Simulator, toolkit: None
) -> AsyncIterator[PipelinesServer]:
    """The server of the agents, connected."""
    async with PipelinesServer() as server:
        upstream = running_simulator
        valves = {
            "BASE_URL": upstream.base_url,
            "API_KEY": upstream.api_key,
            "MODEL": "gpt-6.2-sol",
        }
        await install_pipeline(server, valves)
        async with connected(admin, server):
            yield server


async def resolve(tab: Tab, turn: Turn, call: Json, **answer: object) -> None:
    """Answer it, and wait for the end of the message."""
    turn.events.clear()
    turn.finished.clear()
    path = f"/api/v1/chats/{turn.chat_id}/messages/{turn.message_id}/resolve"
    await tab.user.call("POST", path, {"call_id": call["call_id"], **answer})
    await turn.until(lambda seen: seen.finished.is_set(), seconds=PATIENCE)
    await tab.settle(turn)


@pytest.mark.parametrize("model", [FUNCTION_CALLING, REACT])
async def test_a_chat_looks_like_the_hosts_own(
    tab: Tab, simulator: Simulator, model: str
) -> None:
    """Reasoning and text arrive as native events, and are what is stored (R29)."""
    turn = await tab.send(model, "hello")

    native = {e["data"].get("type") for e in turn.of_type("response:completion")}
    assert "response.reasoning_summary_text.delta" in native
    assert "response.output_text.delta" in native
    stored = await tab.message(turn)
    assert [item["type"] for item in stored["output"]] == ["reasoning", "message"]
    assert "That is all for now." in stored["content"]
    assert stored["usage"]["output_tokens"] > 0
    assert turn.error is None


async def test_the_second_turn_replays_the_reasoning(
    tab: Tab, simulator: Simulator
) -> None:
    """It rides in the host's own messages, byte for byte, without a marker."""
    first = await tab.send(FUNCTION_CALLING, "hello")
    second = await tab.send(FUNCTION_CALLING, "again", chat_id=first.chat_id)

    assert second.error is None
    assert_each_continues(simulator)
    before, after = chat_bodies(simulator)
    assert before["instructions"] == after["instructions"]
    assert before.get("tools") == after.get("tools")
    assert "[openai_responses" not in (await tab.message(first))["content"]


@pytest.mark.parametrize(
    "change", [{"API_KEY": OTHERS_KEY}, {"ORGANIZATION": "org-of-others"}], ids=str
)
async def test_reasoning_goes_only_to_the_account_that_made_it(
    tab: Tab, agents: PipelinesServer, simulator: Simulator, change: Json
) -> None:
    """What anybody can read goes on; back with its maker, so does the rest.

    With another key nothing is signed: commentary, which only the entries hold, is not
    sent either.
    """
    text = "sim:tool-after-text weather?"
    first = await tab.send(FUNCTION_CALLING, text, body=WITH_TOOLS)
    async with agent_valves_changed(agents, **change):
        second = await tab.send(FUNCTION_CALLING, "again", chat_id=first.chat_id)
    third = await tab.send(FUNCTION_CALLING, "and again", chat_id=first.chat_id)

    assert first.error is second.error is third.error is None
    elsewhere, back = [kinds(body["input"]) for body in chat_bodies(simulator)[-2:]]
    commentary = [] if "API_KEY" in change else ["assistant"]
    calls = ("function_call", "function_call_output")
    assert elsewhere == ["user", *commentary, *calls, "assistant", "user"]
    assert [kind for kind in back if kind != "reasoning"] == [
        *("user", "assistant", *calls, "assistant", "user", "assistant", "user")
    ]
    assert back.count("reasoning") == 2
    assert [r.status for r in simulator.requests if r.status != 200] == []


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


async def test_open_webui_runs_its_tools(tab: Tab, simulator: Simulator) -> None:
    """Each round sends all that came before; the calls are the host's own cards."""
    turn = await tab.send(FUNCTION_CALLING, "sim:tool-twice weather?", body=WITH_TOOLS)

    assert turn.error is None
    assert len(chat_bodies(simulator)) == 3
    assert_each_continues(simulator)
    types = [item["type"] for item in (await tab.message(turn))["output"]]
    assert types.count("function_call") == types.count("function_call_output") == 2
    assert types[-1] == "message"
    assert_nothing_dropped(simulator)


async def ask_in_older_mode(tab: Tab, admin: User, *, is_stored: bool) -> Turn:
    """Function Calling is set to Legacy in a model, or in the chat's controls."""
    if not is_stored:
        body = {"tool_ids": ["toolkit"], "params": OLDER_MODE}
        return await tab.send(FUNCTION_CALLING, CHOOSING, body=body)
    async with workspace_model(admin, FUNCTION_CALLING, OLDER_MODE) as model:
        return await tab.send(model, CHOOSING, body={"tool_ids": ["toolkit"]})


@WHERE_OLDER_MODE_IS_SET
async def test_older_mode_runs_tools_before_the_agent_is_asked(
    tab: Tab, admin: User, simulator: Simulator, *, is_stored: bool
) -> None:
    """The agent chooses tools in a task, and is offered none for its answer."""
    turn = await ask_in_older_mode(tab, admin, is_stored=is_stored)

    assert turn.error is None
    choosing, answering = (request.body for request in answered(simulator))
    assert "get_weather" in json.dumps(choosing["input"][0])
    assert "Sunny in Bern" not in json.dumps(choosing)
    assert "Sunny in Bern" in json.dumps(answering["input"][-1])
    assert [sent.get("tools", []) for sent in (choosing, answering)] == [[], []]
    output = (await tab.message(turn))["output"]
    assert "function_call" not in {item["type"] for item in output}


@pytest.mark.parametrize(
    ("action", "words"), [("approve", "Sunny"), ("reject", "rejected by user")]
)
async def test_an_approval_is_answered(
    tab: Tab, simulator: Simulator, action: str, words: str
) -> None:
    """Open WebUI asks before a tool; either way the agent goes on (R34)."""
    turn = await tab.begin(FUNCTION_CALLING, "sim:tool weather?", body=ASKING)
    call = await pending(tab, turn)
    assert len(chat_bodies(simulator)) == 1

    await resolve(tab, turn, call, action=action)

    assert turn.error is None
    first, second = chat_bodies(simulator)
    assert second["input"][: len(first["input"])] == first["input"]
    assert kinds(second["input"])[-2:] == ["function_call", "function_call_output"]
    assert words in json.dumps(second["input"][-1])
    assert (await tab.message(turn))["output"][-1]["type"] == "message"


@pytest.mark.parametrize(
    ("label", "words"), [("Allow for this chat", "Sunny"), ("Deny", "not approve")]
)
async def test_an_approval_of_ours_is_answered(
    tab: Tab, agents: PipelinesServer, simulator: Simulator, label: str, words: str
) -> None:
    """A rule of the valves asks in the chat; the model is not asked again (R33, R34).

    After a yes for the chat no one is asked in the next answer.
    """
    async with agent_valves_changed(agents, TOOL_APPROVAL="get_weather=ask"):
        turn = await tab.begin(FUNCTION_CALLING, "sim:tool weather?", body=WITH_TOOLS)
        card = await pending(tab, turn)
        (question,) = json.loads(card["arguments"])["questions"]
        assert "May get_weather be called?" in question["question"]
        assert len(chat_bodies(simulator)) == 1

        answers = {question["id"]: {"label": label}}
        await resolve(tab, turn, card, action="answer", answers=answers)
        first, second = chat_bodies(simulator)
        if label != "Deny":
            again = "sim:tool and now?"
            told_again = await tab.send(
                FUNCTION_CALLING, again, body=WITH_TOOLS, chat_id=turn.chat_id
            )
            assert told_again.error is None
            assert "Sunny" in json.dumps(chat_bodies(simulator)[-1]["input"][-1])

    assert turn.error is None
    assert second["input"][: len(first["input"])] == first["input"]
    assert kinds(second["input"])[-2:] == ["function_call", "function_call_output"]
    assert words in json.dumps(second["input"][-1])
    assert (await tab.message(turn))["output"][-1]["type"] == "message"


@pytest.mark.usefixtures("twin")
async def test_rule_holds_for_a_tool_that_open_webui_renamed(
    tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """It has the name of another toolkit's tool, so its own id is in front."""
    body = calling("twin_get_weather", "toolkit", "twin")
    async with agent_valves_changed(agents, TOOL_APPROVAL="get_*=deny"):
        turn = await tab.send(FUNCTION_CALLING, "sim:tool weather?", body=body)

    assert turn.error is None
    output = json.dumps(chat_bodies(simulator)[-1]["input"][-1])
    assert "does not allow twin_get_weather" in output


async def test_rule_that_cannot_be_read_is_told_to_administrators(
    tab: Tab, admins_tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """Others are asked about the call, and the answer goes on.

    What an administrator reads is in the last line, which is the one that is shown.
    """
    async with agent_valves_changed(agents, TOOL_APPROVAL="get_*:auto"):
        turn = await tab.begin(FUNCTION_CALLING, "sim:tool weather?", body=WITH_TOOLS)
        await pending(tab, turn)
        first = await admins_tab.send(FUNCTION_CALLING, "sim:short")
        again = await admins_tab.send(FUNCTION_CALLING, "sim:short")

    sentence = "'get_*:auto', which is not a rule"
    assert sentence in json.dumps(first.statuses[-1:])
    assert sentence not in json.dumps([*turn.statuses, *again.statuses])


async def test_a_limit_ends_with_an_answer(
    tab: Tab, agents: PipelinesServer, simulator: Simulator
) -> None:
    """After the last round the calls are answered by us, and the model concludes (R10).

    This one only calls again, which is told.
    """
    async with agent_valves_changed(agents, MAXIMUM_ITERATIONS=2):
        turn = await tab.send(
            FUNCTION_CALLING, "sim:tool-forever weather?", body=WITH_TOOLS
        )

    assert "gave no answer" in str(turn.error)
    bodies = chat_bodies(simulator)
    assert len(bodies) == 3
    assert [body.get("tool_choice") for body in bodies][-1] == "none"
    last = tool_outputs(bodies[-1])[-1]
    assert "Maximum iteration limit (2) reached." in json.dumps(last)
    stored = await tab.message(turn)
    assert stored["done"]


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


async def test_a_title_is_made_without_the_loop(tab: Tab, simulator: Simulator) -> None:
    """One short request without tools or policies (R28)."""
    tasks = {"title_generation": True}

    turn = await tab.send(FUNCTION_CALLING, "hello", background_tasks=tasks)

    (chat,) = chat_bodies(simulator)
    (job,) = [request.body for request in simulator.requests if is_task(request)]
    assert "<persistence>" in json.dumps(chat)
    assert "<persistence>" not in json.dumps(job)
    assert job["stream"] is False
    assert not {"tools", "include"} & job.keys()
    row = await tab.user.call("GET", f"/api/v1/chats/{turn.chat_id}")
    assert row["title"] == "Talking to a Stand-in"


async def test_page_without_streaming_stores_and_replays_the_answer(
    tab: Tab, simulator: Simulator
) -> None:
    """The answer is stored whole, with its items, and the next turn replays it (R27)."""
    first = await tab.send(FUNCTION_CALLING, "hello", body={"stream": False})
    second = await tab.send(FUNCTION_CALLING, "again", chat_id=first.chat_id)

    stored = await tab.message(first)
    assert "That is all for now." in stored["content"]
    assert second.error is None
    assert "reasoning" in kinds(chat_bodies(simulator)[-1]["input"])


async def test_an_error_keeps_what_was_shown(tab: Tab, simulator: Simulator) -> None:
    """A failure leaves the text, with a message below it (R25)."""
    turn = await tab.send(FUNCTION_CALLING, "sim:failed")

    stored = await tab.message(turn)
    assert "This is turn 1." in stored["content"]
    assert stored["error"]
    assert turn.error


async def test_answer_that_can_be_continued_has_a_line(
    tab: Tab, simulator: Simulator
) -> None:
    """A connection that breaks leaves no error, which would stay after *Continue*."""
    turn = await tab.send(FUNCTION_CALLING, "sim:chat,drop=60")

    stored = await tab.message(turn)
    assert "This is turn 1." in stored["content"]
    assert "connection to the model broke" in stored["statusHistory"][-1]["description"]
    assert "error" not in stored
    assert turn.error is None


async def test_the_stored_valves_show_no_secret_to_the_page(
    admin: User, simulator: Simulator
) -> None:
    """Open WebUI's settings page passes on what the server shows (R30)."""
    listed = await admin.call("GET", "/api/v1/pipelines/list")
    index = listed["data"][0]["idx"]

    path = f"/api/v1/pipelines/{PIPELINE_ID}/valves?urlIdx={index}"
    valves = await admin.call("GET", path)

    assert valves["BASE_URL"] == simulator.base_url
    assert simulator.api_key not in json.dumps(valves)


async def test_a_plain_caller_of_open_webui_gets_chunks(
    member: User, simulator: Simulator
) -> None:
    """Without a chat nothing is stored, so the answer is plain (R29)."""
    chunks = [chunk async for chunk in member.chunks(FUNCTION_CALLING, "hello")]

    assert not [chunk for chunk in chunks if "type" in chunk]
    deltas = [c["choices"][0]["delta"] for c in chunks if c.get("choices")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert "That is all for now." in text


async def test_a_context_that_a_user_writes_names_nobody(
    member: User, simulator: Simulator
) -> None:
    """Open WebUI's own route for its connections passes a body on past the inlet."""
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


@pytest.mark.parametrize("value", ["no", None], ids=repr)
async def test_no_word_for_a_stream_evades_a_limit(
    admin: User, member: User, simulator: Simulator, value: object
) -> None:
    """Open WebUI takes some for a yes, and the Pipelines server answers without one."""
    asked = [{"role": "user", "content": "sim:short hello"}]
    async with administration(admin, USER_LIMITS_JSON=COUNTED):
        await admin.set_global(ADMINISTRATION)
        with pytest.raises(OpenWebUIError, match="counted only in a stream"):
            await member.completion(FUNCTION_CALLING, asked, stream=value)

    assert chat_bodies(simulator) == []


@WHERE_OLDER_MODE_IS_SET
async def test_older_mode_evades_no_limit(
    admin: User, simulator: Simulator, *, is_stored: bool
) -> None:
    """Open WebUI chooses the tools in a task, which is not counted."""
    async with (
        administration(admin, USER_LIMITS_JSON=COUNTED),
        new_user(admin) as asker,
        Tab(asker) as tab,
    ):
        await admin.set_global(ADMINISTRATION)
        turn = await ask_in_older_mode(tab, admin, is_stored=is_stored)

    assert "Function Calling" in str(turn.error)
    assert answered(simulator) == []


async def test_a_word_for_a_stream_streams_and_counts(
    admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """All who read the body after the filter read the same."""
    async with (
        administration(admin, USER_LIMITS_JSON=COUNTED),
        new_user(admin) as asker,
    ):
        await admin.set_global(ADMINISTRATION)
        chunks = [
            c async for c in asker.chunks(FUNCTION_CALLING, "hello", stream="yes")
        ]

    assert any(chunk.get("usage") for chunk in chunks)
    assert counted_requests(server, asker) == len(chat_bodies(simulator)) == 1


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
