"""Two processes of Open WebUI on one PostgreSQL and one Redis.

They also put what they retrieve, and what they cite, into the instructions, tell servers
who asks, and have a managed identity of Azure, which no other server of the tests does.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from aiohttp import web

from calls.valves import expert
from hosts.chats.at_once import AT_ONCE, Crowd
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, make_group, settings_changed
from hosts.sent import (
    answered,
    assert_each_continues,
    chat_bodies,
    kinds,
    tool_outputs,
)
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.shared import shared_servers
from hosts.setup.administration import administration
from hosts.setup.pipes import (
    MODEL,
    PIPE,
    install_copy,
    install_pipe,
    install_toolkit,
    install_tools,
    valves_changed,
)
from hosts.setup.sandbox_tool import BUILT_TOOL
from marking import require_mark
from simulator import Simulator
from upstream.server import Upstream

pytestmark = [pytest.mark.host, pytest.mark.databases, pytest.mark.asyncio]

OTHER_KEY = "sk-simulator-2"
NOBODYS_KEY = "sk-of-nobody"
QUESTIONS = 20
THINKING = [f"{PIPE}.{name}" for name in ("gpt-6.1-sol", "gpt-6.2-sol", "gpt-5.2-high")]


@dataclass(frozen=True)
class Pair:
    """One Open WebUI as two servers; the pipe was installed on the left one."""

    admin: User
    right: OpenWebUI
    members: tuple[User, User]
    copy: list[str]
    azure: Upstream
    """Gives tokens to both."""


@pytest_asyncio.fixture(scope="module")
async def pair(
    pipe_source: str, pipe_valves: dict[str, str], forks: ForkServer
) -> AsyncIterator[Pair]:
    """Both, with a member who is signed in on either."""
    async with AsyncExitStack() as stack:
        azure = await stack.enter_async_context(Upstream(_token))
        variables = {
            "RAG_SYSTEM_CONTEXT": "true",
            "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
            "IDENTITY_ENDPOINT": azure.base_url,
            "IDENTITY_HEADER": "proof",
        }
        left, right = await stack.enter_async_context(
            shared_servers(env=variables, forks=forks)
        )
        email = f"{uuid4().hex}@example.com"
        member = await stack.enter_async_context(
            await left.admin.add_user(email, "member")
        )
        same = await stack.enter_async_context(User(right.url, email, "member"))
        await install_pipe(left.admin, PIPE, pipe_source, pipe_valves)
        copy = await install_copy(left.admin, pipe_source, pipe_valves)
        yield Pair(left.admin, right, (member, await same.sign_in()), copy, azure)


async def _token(request: web.Request) -> web.Response:
    """Answer as the endpoint for managed identities of Azure's App Service does."""
    assert request.headers["X-IDENTITY-HEADER"] == "proof"
    end = int(time.time()) + 3600
    given = {"access_token": OTHER_KEY, "expires_on": str(end), "token_type": "Bearer"}
    return web.json_response({**given, "resource": request.query["resource"]})


@pytest_asyncio.fixture
async def tabs(pair: Pair) -> AsyncIterator[tuple[Tab, Tab]]:
    left, right = pair.members
    async with Tab(left) as here, Tab(right) as there:
        yield here, there


async def test_chat_continues_on_the_other_server(
    tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """And back: every request begins with the one before and what that received."""
    chat_id = None
    for tab in (*tabs, *tabs):
        turn = await tab.send(MODEL, "sim:commentary go on", chat_id=chat_id)
        assert turn.error is None
        chat_id = turn.chat_id

    assert_each_continues(simulator)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 6


async def test_stop_on_the_other_server(
    tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """The upstream work ends where it runs, and the chat goes on elsewhere."""
    left, right = tabs
    turn = await left.begin(MODEL, "sim:slow,delay=10")
    await turn.until(lambda seen: len(seen.text) > 60)

    await right.stop(turn)
    await simulator.closed_early()

    assert len((await right.ended_message(turn))["content"]) > 60
    after = await right.send(MODEL, "sim:chat go on", chat_id=turn.chat_id)
    assert after.error is None
    assert "I was given 1 reasoning item back" in after.text


async def test_many_answers_at_once_lose_nothing(
    pair: Pair, tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """Half of them on each server; each goes on on the other one."""
    crowd = Crowd(tabs, [*THINKING, *pair.copy], simulator)
    first = await tabs[0].send(MODEL, "sim:short hello")

    turns = await crowd.asks_after(first)
    later = await crowd.goes_on(turns)

    assert len(turns) == AT_ONCE
    assert {turn.error for turn in (*turns, *later)} == {None}
    assert await crowd.lost([first, *turns, *later]) == []
    assert crowd.forgotten(turns) == []


async def test_many_answers_are_counted_exactly(
    pair: Pair, simulator: Simulator
) -> None:
    """Half of them on each server, which make the table at the same moment."""
    async with administration(pair.admin, USER_LIMITS_JSON="[]"):
        asked = (
            pair.members[n % 2].complete(MODEL, "sim:short") for n in range(QUESTIONS)
        )
        await asyncio.gather(*asked)
        tables = [await usage_of_answers(member, QUESTIONS) for member in pair.members]

    used = [(request.response or {})["usage"] for request in answered(simulator)]
    given, made = (
        sum(usage[f"{kind}_tokens"] for usage in used) for kind in ("input", "output")
    )
    assert len(used) == QUESTIONS
    counts = rf"{QUESTIONS} \| {given:,} \| 0 \| {made:,} \|"
    for text in tables:
        assert re.search(rf"^\| today \| [\d.]+ \| {counts}", text, re.MULTILINE)


async def usage_of_answers(member: User, count: int) -> str:
    """Return what `/usage` says as soon as so many answers are written, or after 30 s.

    A server that gets many questions at once loads the filter more than once; it asks
    only the last one to write what it has counted, the others write when they can.
    """
    deadline = time.monotonic() + 30
    while True:
        text = await member.complete(MODEL, "/usage")
        if f"| {count} |" in text or time.monotonic() > deadline:
            return text
        await asyncio.sleep(0.2)


async def test_limit_of_an_agent_holds_on_the_other_server(
    pair: Pair, simulator: Simulator
) -> None:
    """It ends between two rounds on one, and begins no answer on the other."""
    agent = f"{PIPE}.gpt5_function_calling"
    valves = await pair.admin.valves(PIPE)
    changes = {
        "MODEL_ID": f"{valves['MODEL_ID']}, gpt5_function_calling",
        "AGENT_JSON": json.dumps({"model": "gpt-6.2-sol"}),
    }
    rules = json.dumps([{"role": "user", "tokens": 1, "per": "day"}])
    email = f"{uuid4().hex}@example.com"
    await install_toolkit(pair.admin, "weather")
    async with (
        valves_changed(pair.admin, PIPE, **changes),
        administration(pair.admin, USER_LIMITS_JSON=rules),
        await pair.admin.add_user(email, "limited") as here,
        User(pair.members[1].url, email, "limited") as there,
    ):
        await pair.admin.models()
        await pair.admin.share_model(agent, "agent")
        async with Tab(here) as left, Tab(await there.sign_in()) as right:
            body = {"tool_ids": ["weather"]}
            turns = [
                await left.send(agent, "sim:agent-work weather?", body=body),
                await right.send(agent, "sim:agent-work weather?", body=body),
                await right.send(MODEL, "sim:short hello"),
            ]

    for turn in turns:
        assert "Your limit of 1 tokens a day is used up" in str(turn.error)
    assert len(answered(simulator)) == 1


async def test_approval_is_given_at_the_other_server(
    pair: Pair, tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """The page is connected to one, and the answer runs on the other."""
    left, right = tabs
    asked = left.answer_questions(True)
    right.answer_questions(False)
    await install_toolkit(pair.admin, "asking")
    body = calling("get_weather", "asking") | {"session_id": left.session_id}
    async with valves_changed(pair.admin, PIPE, TOOL_APPROVAL="get_weather=ask"):
        turn = await right.send(MODEL, "sim:tool weather?", body=body)

    assert turn.error is None
    assert [question["tool_call"]["name"] for question in asked] == ["get_weather"]
    [output] = tool_outputs(chat_bodies(simulator)[-1])
    assert output.startswith("Sunny in")


WRITER = """
import time
begin = time.time()
time.sleep(0.7)
open('turns', 'a').write(f'{begin} {time.time()}\\n')
print(open('turns').read())
"""


@pytest.mark.sandbox
async def test_workspace_is_used_by_one_server_at_a_time(
    pair: Pair, tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """Two questions of one chat at once, one on each: their code takes turns."""
    require_mark("sandbox")
    await install_tools(pair.admin, "sandbox", BUILT_TOOL.read_text())
    first = await tabs[0].send(MODEL, "sim:short hello")
    body = calling("python_execute", "sandbox")
    question = f"sim:tool {json.dumps({'code': WRITER})}"
    branch: dict[str, Any] = {"chat_id": first.chat_id, "parent_id": first.message_id}
    turns = await asyncio.gather(
        *(tab.send(MODEL, question, body=body, **branch) for tab in tabs)
    )

    printed = [
        json.loads(output)["stdout"]
        for sent in chat_bodies(simulator)
        for output in tool_outputs(sent)
    ]
    lines = max(printed, key=len).splitlines()
    times = sorted([float(word) for word in line.split()] for line in lines if line)
    assert [turn.error for turn in turns] == [None, None]
    assert len(times) == 2
    assert times[0][1] <= times[1][0]


def about_the_user(headers: Mapping[str, str]) -> dict[str, str]:
    """What Open WebUI says of a user; the chat is another each time."""
    fields = {k: v for k, v in headers.items() if k.lower().startswith("x-openwebui-")}
    return {k: "a chat" if k.endswith("Chat-Id") else v for k, v in fields.items()}


async def test_gateway_learns_who_asks(
    pair: Pair, tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """As from Open WebUI's own connection, for chats and tasks; or not at all.

    Half a character in the id of a chat ends no answer.
    """
    own = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [simulator.base_url],
        "OPENAI_API_KEYS": [simulator.api_key],
        "OPENAI_API_CONFIGS": {"0": {"api_type": "responses", "prefix_id": "own"}},
    }
    async with settings_changed(pair.admin, "/openai/config", own, update="/update"):
        await pair.admin.models()
        await pair.admin.share_model("own.gpt-6.2-sol", "own")
        turn = await tabs[0].send("own.gpt-6.2-sol", "sim:short hello")
        assert turn.error is None
        [native] = [about_the_user(r.headers) for r in answered(simulator)][:1]
        simulator.forget()
        titles = {"title_generation": True}
        turn = await tabs[0].send(MODEL, "sim:short hello", background_tasks=titles)
        half = await pair.members[0].complete(
            MODEL, "sim:short hello", chat_id="local:\ud800"
        )
        async with valves_changed(pair.admin, PIPE, FORWARD_USER_INFO="never"):
            await tabs[0].send(MODEL, "sim:short hello")

    assert "Turn 1" in half
    *forwarded, silent = [about_the_user(r.headers) for r in answered(simulator)]
    assert native["X-OpenWebUI-User-Email"] == pair.members[0].email
    assert len(native) >= 5
    assert forwarded == [native] * len(forwarded)
    assert len(forwarded) == 3
    assert silent == {}


async def test_managed_identity_takes_the_place_of_a_key(
    pair: Pair, tabs: tuple[Tab, Tab], simulator: Simulator
) -> None:
    """One token serves all; a chat goes on, because the account stays the same."""
    changes = {"API_KEY": "", "AUTH": "entra_id"}
    async with (
        administration(pair.admin),
        valves_changed(pair.admin, PIPE, **changes),
    ):
        first = await tabs[0].send(MODEL, "sim:short hello")
        again = await tabs[0].send(MODEL, "sim:short again", chat_id=first.chat_id)

    assert first.error is again.error is None
    assert [r.status for r in answered(simulator)] == [200, 200]
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 1
    assert [r.query["resource"] for r in pair.azure.requests] == [
        "https://cognitiveservices.azure.com"
    ]


async def test_each_group_has_its_server(pair: Pair, simulator: Simulator) -> None:
    """A chat stays where its reasoning is; the next server answers for one that died."""
    left, right = pair.members
    # Before the tabs are opened: it ends a user's connections.
    await make_group(pair.admin, "pupils", left)
    titles = {"title_generation": True}
    async with (
        Simulator() as other,
        Tab(left) as here,
        Tab(right) as there,
        Tab(pair.admin) as admin,
        valves_changed(
            pair.admin, PIPE, API_KEY=NOBODYS_KEY, EXPERT_JSON=expert(max_retries=0)
        ),
    ):
        theirs = {"base_url": other.base_url, "api_key": OTHER_KEY}
        ours = {"base_url": simulator.base_url, "api_key": simulator.api_key}
        entries = [theirs | {"groups": ["pupils"]}, ours]
        async with administration(pair.admin, ENDPOINTS_JSON=json.dumps(entries)):
            first = await here.send(MODEL, "sim:short hello", background_tasks=titles)
            await admin.send(MODEL, "sim:short hello")
        entries.reverse()
        async with administration(pair.admin, ENDPOINTS_JSON=json.dumps(entries)):
            stays = await there.send(MODEL, "sim:short 2", chat_id=first.chat_id)
            await other.stop()
            moves = await here.send(MODEL, "sim:short 3", chat_id=first.chat_id)

    assert [first.error, stays.error, moves.error] == [None] * 3
    assert [r.status for r in answered(other)] == [200, 200, 200]
    assert kinds(answered(other)[-1].body["input"]).count("reasoning") == 1
    assert [r.status for r in answered(simulator)] == [200, 200]
    assert "reasoning" not in kinds(answered(simulator)[-1].body["input"])
    kept = json.dumps(await left.chat(first.chat_id or ""))
    assert "belongs to another server or account" in kept
    for key in (OTHER_KEY, NOBODYS_KEY, simulator.api_key):
        assert key not in kept


WORDS = 150


def deltas(turn: Turn) -> int:
    return json.dumps(turn.events).count('.delta"')


async def test_other_server_goes_on_when_one_is_killed(
    pair: Pair, simulator: Simulator
) -> None:
    """Its own answers end whole, and the chat of the lost one has its finished round.

    The last test of this file: no one starts the other server again.
    """
    left, right = pair.members
    await install_toolkit(pair.admin, "killed")
    used = calling("get_weather", "killed")
    async with Tab(left) as there, Tab(right) as here:
        kept = await there.begin(MODEL, f"sim:long,deltas={WORDS},hold=40")
        await kept.until(lambda turn: "word" in turn.text)
        question = "sim:tool-twice,delay=700 weather?"
        lost = await here.begin(MODEL, question, body=used)
        await lost.until(lambda _: len(chat_bodies(simulator)) == 3)
        round_ended = deltas(lost)
        # A round is stored a second after its end.
        await lost.until(lambda _: deltas(lost) == round_ended + 2)

        pair.right.kill()

        simulator.release()
        await kept.until(lambda turn: turn.finished.is_set())
        assert kept.error is None
        assert kept.text.count("word") == WORDS
        await there.stop(lost)  # Redis lists it as running for five minutes
        after = await there.send(MODEL, "sim:chat go on", chat_id=lost.chat_id)
        assert after.error is None
        assert len(tool_outputs(chat_bodies(simulator)[-1])) == 1
