"""One session for each event loop, opened when needed, closed when idle."""

import asyncio
import gc
import socket
import weakref
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed
from openai_responses.transport.connections import Connections
from upstream.server import KEY, Upstream, ask, post, replying, until

pytestmark = pytest.mark.asyncio

ANSWER = replying('{"output": []}')


async def test_one_connection_for_many_requests(connections: Connections) -> None:
    """It is reused as long as answers are read to their ends; closing may be repeated."""
    await connections.close()
    async with Upstream(ANSWER) as upstream:
        for _ in range(20):
            await ask(connections, upstream.endpoint)
        assert len(upstream.requests) == 20
        assert len(upstream.connections) == 1
        await connections.close()
        await connections.close()
        await until(lambda: upstream.open_connections == 0)


async def test_what_a_session_keeps(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for all, or a user with a thousand chats would let the others wait."""
    told: list[dict[str, Any]] = []

    def connector(**settings: Any) -> aiohttp.TCPConnector:
        told.append(settings)
        return aiohttp.TCPConnector(**settings)

    library = SimpleNamespace(**{**vars(aiohttp), "TCPConnector": connector})
    monkeypatch.setattr("openai_responses.transport.connections.aiohttp", library)
    async with Upstream(ANSWER) as upstream:
        await ask(connections, upstream.endpoint)
    await connections.close()

    assert told == [{"limit": 0, "keepalive_timeout": 180, "ttl_dns_cache": 300}]


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while without a run nothing is open and no task is left."""
    monkeypatch.setattr("openai_responses.transport.connections._IDLE_SECONDS", 0.01)
    connections = Connections()
    async with Upstream(ANSWER) as upstream:
        before = asyncio.all_tasks()
        await ask(connections, upstream.endpoint)
        assert upstream.open_connections == 1
        await until(lambda: upstream.open_connections == 0)
        await until(lambda: asyncio.all_tasks() <= before)
        await ask(connections, upstream.endpoint)  # and opened again when needed
        await connections.close()


@pytest.mark.parametrize("turns", range(6))
async def test_request_while_the_session_is_being_closed(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Whatever the loop does first, no run gets a session that is going away."""
    monkeypatch.setattr("openai_responses.transport.connections._IDLE_SECONDS", 0.0)
    connections = Connections()
    async with Upstream(ANSWER) as upstream:
        await ask(connections, upstream.endpoint)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await ask(connections, upstream.endpoint) == {"output": []}
        await connections.close()


async def test_session_of_a_run_under_way_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The idle time does not begin while another run still reads."""
    monkeypatch.setattr("openai_responses.transport.connections._IDLE_SECONDS", 0.0)
    connections = Connections()
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(upstream.requests) == 1:
            await gate.wait()
        return web.json_response({"output": []})

    async with Upstream(answer) as upstream:
        first = asyncio.create_task(ask(connections, upstream.endpoint))
        await until(lambda: len(upstream.requests) == 1)
        await ask(connections, upstream.endpoint)
        await asyncio.sleep(0.01)
        gate.set()
        assert await first == {"output": []}
        await connections.close()


async def test_timer_finds_nothing_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that was closed by hand is not closed again by the clock."""
    monkeypatch.setattr("openai_responses.transport.connections._IDLE_SECONDS", 0.0)
    connections = Connections()
    async with Upstream(ANSWER) as upstream:
        async with post(connections, upstream.endpoint):
            await connections.close()
        await asyncio.sleep(0.01)
        assert upstream.open_connections == 0


async def test_work_that_other_work_begins_is_done_before_the_end(
    connections: Connections,
) -> None:
    """A response that was stopped is cancelled once it has an id."""
    async with Upstream(ANSWER) as upstream:

        async def begin() -> None:
            connections.do_later(connections.post_quietly(upstream.endpoint, "/cancel"))

        connections.do_later(begin())
        await connections.close()
        await until(lambda: upstream.open_connections == 0)
        assert len(upstream.requests) == 1


async def test_each_loop_has_a_session_of_its_own(connections: Connections) -> None:
    async with Upstream(ANSWER) as upstream:

        async def elsewhere() -> Any:
            try:
                return await ask(connections, upstream.endpoint)
            finally:
                await connections.close()

        await ask(connections, upstream.endpoint)
        there = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        assert there == await ask(connections, upstream.endpoint) == {"output": []}
        assert len(upstream.connections) == 2


async def test_dropped_owner_leaves_nothing_open() -> None:
    """A pipe that was replaced leaves no connection and no task behind."""
    async with Upstream(ANSWER) as upstream:
        before = asyncio.all_tasks()
        await ask(Connections(), upstream.endpoint)
        gc.collect()
        await until(lambda: upstream.open_connections == 0)
        await until(lambda: asyncio.all_tasks() <= before)


async def test_loops_that_ended_are_forgotten() -> None:
    """A pipe that runs for months keeps nothing of the threads it was called from."""
    connections = Connections()
    ended: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def elsewhere() -> None:
        await connections.close()
        ended.append(weakref.ref(asyncio.get_running_loop()))

    for _ in range(3):
        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    await connections.close()
    gc.collect()
    assert [loop() for loop in ended] == [None, None, None]


async def test_cookies_are_not_sent_back(connections: Connections) -> None:
    """What a gateway sets for one user is not sent for the next one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.json_response({"output": [], "cookies": dict(request.cookies)})
        response.set_cookie("affinity", "a")
        return response

    async with Upstream(answer) as upstream:
        # From a bare address no client takes a cookie.
        endpoint = Endpoint(upstream.base_url.replace("127.0.0.1", "localhost"), KEY)
        for _ in range(2):
            async with post(connections, endpoint) as got:
                assert (await got.response_object())["cookies"] == {}


async def test_server_that_has_moved_is_found_at_the_next_try(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that was started again has another address under its name."""
    addresses = ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first

    async def look_up(_: str, port: int, **__: Any) -> list[Any]:
        found = (addresses.pop(0), port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", found)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    async with Upstream(ANSWER) as upstream:
        endpoint = Endpoint(upstream.base_url.replace("127.0.0.1", "gateway"), KEY)
        with pytest.raises(ConnectionFailed):
            await ask(connections, endpoint)
        for _ in range(2):
            assert await ask(connections, endpoint) == {"output": []}
    assert addresses == []
