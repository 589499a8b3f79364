"""One session for each event loop, opened when needed, closed when idle."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from openai_responses.transport.connections import Sessions
from upstream import Upstream, replying, until

pytestmark = pytest.mark.asyncio

ANSWER = replying('{"output": []}')


@pytest_asyncio.fixture
async def sessions() -> AsyncIterator[Sessions]:
    """Return sessions that are closed after the test."""
    opened = Sessions()
    yield opened
    await opened.close()


async def post(session: aiohttp.ClientSession, upstream: Upstream) -> Any:
    """Send a request and return the body of the answer."""
    async with session.post(upstream.base_url, json={}) as response:
        return await response.json()


async def ask(sessions: Sessions, upstream: Upstream) -> Any:
    """Borrow a session, send a request, return the body of the answer."""
    with sessions.pool().lend() as session:
        return await post(session, upstream)


async def test_one_connection_for_many_requests(sessions: Sessions) -> None:
    """It is reused as long as answers are read to their ends."""
    async with Upstream(ANSWER) as upstream:
        for _ in range(20):
            await ask(sessions, upstream)
        assert len(upstream.requests) == 20
        assert len(upstream.connections) == 1


async def test_idle_connections_are_closed() -> None:
    """After a while without a run nothing is open and no task is left."""
    sessions = Sessions(idle_seconds=0.01)
    async with Upstream(ANSWER) as upstream:
        before = asyncio.all_tasks()
        await ask(sessions, upstream)
        assert upstream.open_connections == 1
        await until(lambda: upstream.open_connections == 0)
        await until(lambda: asyncio.all_tasks() <= before)
        await ask(sessions, upstream)  # and opened again when needed
        await sessions.close()


@pytest.mark.parametrize("turns", range(6))
async def test_request_while_the_session_is_being_closed(turns: int) -> None:
    """Whatever the loop does first, no run gets a session that is going away."""
    sessions = Sessions(idle_seconds=0.0)
    async with Upstream(ANSWER) as upstream:
        await ask(sessions, upstream)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await ask(sessions, upstream) == {"output": []}
        await sessions.close()


async def test_session_of_a_run_under_way_stays_open() -> None:
    """The idle time does not begin while another run still reads."""
    sessions = Sessions(idle_seconds=0.0)
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(upstream.requests) == 1:
            await gate.wait()
        return web.json_response({"output": []})

    async with Upstream(answer) as upstream:
        first = asyncio.create_task(ask(sessions, upstream))
        await until(lambda: len(upstream.requests) == 1)
        await ask(sessions, upstream)
        await asyncio.sleep(0.01)
        gate.set()
        assert await first == {"output": []}
        await sessions.close()


async def test_close_without_anything_open(sessions: Sessions) -> None:
    """There is nothing to do, also the second time."""
    await sessions.close()
    async with Upstream(ANSWER) as upstream:
        await ask(sessions, upstream)
        await sessions.close()
        await sessions.close()
        await until(lambda: upstream.open_connections == 0)


async def test_timer_finds_nothing_to_close() -> None:
    """A session that was closed by hand is not closed again by the clock."""
    sessions = Sessions(idle_seconds=0.0)
    async with Upstream(ANSWER) as upstream:
        with sessions.pool().lend() as session:
            await post(session, upstream)
            await sessions.close()
        await asyncio.sleep(0.01)
        assert upstream.open_connections == 0


async def test_each_loop_has_a_session_of_its_own(sessions: Sessions) -> None:
    """Another thread's loop is served too."""
    async with Upstream(ANSWER) as upstream:

        async def elsewhere() -> Any:
            try:
                return await ask(sessions, upstream)
            finally:
                await sessions.close()

        await ask(sessions, upstream)
        there = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        assert there == await ask(sessions, upstream) == {"output": []}
        assert len(upstream.connections) == 2


async def test_owner_that_is_gone() -> None:
    """A pipe that was replaced leaves no connection and no task behind."""
    async with Upstream(ANSWER) as upstream:
        before = asyncio.all_tasks()
        await ask(Sessions(), upstream)
        gc.collect()
        await until(lambda: upstream.open_connections == 0)
        await until(lambda: asyncio.all_tasks() <= before)


async def test_loops_that_ended_are_forgotten() -> None:
    """A pipe that runs for months keeps nothing of the threads it was called from."""
    sessions = Sessions()
    ended: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def elsewhere() -> None:
        sessions.pool()
        ended.append(weakref.ref(asyncio.get_running_loop()))

    for _ in range(3):
        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    sessions.pool()
    gc.collect()
    assert [loop() for loop in ended] == [None, None, None]


async def test_busy_server(sessions: Sessions) -> None:
    """A hundred chats that stream at once keep no other one waiting."""
    everybody = asyncio.Event()

    async def answer(_: web.Request) -> web.StreamResponse:
        if len(upstream.requests) == 120:
            everybody.set()
        await everybody.wait()
        return web.json_response({"output": []})

    async with Upstream(answer) as upstream, asyncio.timeout(10):
        asked = [ask(sessions, upstream) for _ in range(120)]
        assert await asyncio.gather(*asked) == [{"output": []}] * 120


async def test_cookies(sessions: Sessions) -> None:
    """What a gateway sets for one user is not sent for the next one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.json_response({"cookies": dict(request.cookies)})
        response.set_cookie("affinity", "a")
        return response

    async with Upstream(answer) as upstream:
        # From a bare address no client takes a cookie.
        url = upstream.base_url.replace("127.0.0.1", "localhost")
        for _ in range(2):
            with sessions.pool().lend() as session:
                async with session.post(url, json={}) as response:
                    assert await response.json() == {"cookies": {}}
