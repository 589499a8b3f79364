"""The clock of the tests: it goes while nothing is to be done, and only then."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from event_loops.idle_clock import IdleClockLoop, forget_threads, skip_waiting
from upstream.server import Upstream, silence

pytestmark = pytest.mark.asyncio

LONG = 0.3
LIMIT = 0.1
"""Seconds that a busy machine takes for something, and a shorter limit for it."""


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_tests_have_such_a_loop() -> None:
    """A loop in another thread is a usual one."""

    async def kind() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    there = await asyncio.to_thread(lambda: asyncio.run(kind()))

    assert await kind() is IdleClockLoop
    assert there is not IdleClockLoop


async def test_waiting_takes_time() -> None:
    """As much as was waited, at most as much as was asked for."""
    began = now()

    await asyncio.sleep(0.01)

    assert round(now() - began, 6) == 0.01


async def test_slow_machine_takes_none() -> None:
    """A limit cannot pass while its request is still on its way."""

    async def answer(_: web.Request) -> web.StreamResponse:
        time.sleep(LONG)  # noqa: ASYNC251 - the machine has much else to do
        return web.Response()

    async with (
        Upstream(answer) as upstream,
        asyncio.timeout(LIMIT),
        asked(upstream) as reader,
    ):
        assert (await reader.readline()).startswith(b"HTTP/1.0 200")


async def test_limit_passes_when_nothing_happens() -> None:
    """By then the server has had the request, however slow it was."""
    async with Upstream(silence) as upstream, asked(upstream) as reader:
        time.sleep(LONG)  # noqa: ASYNC251 - the machine has much else to do
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(LIMIT):
                await reader.read()
        assert len(upstream.requests) == 1


async def test_wakeup_from_a_thread_precedes_the_timeout() -> None:
    """The machine may let the loop see it long after both."""
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()
    called = threading.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(woken.set)
        called.set()

    telling = loop.run_in_executor(None, tell)
    assert called.wait(60)
    time.sleep(LONG)  # noqa: ASYNC251 - the machine has much else to do
    async with asyncio.timeout(LIMIT):
        await woken.wait()
    await telling


@asynccontextmanager
async def asked(upstream: Upstream) -> AsyncIterator[asyncio.StreamReader]:
    """Lend the answer of a server that was just asked."""
    host, port = upstream.base_url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    yield reader
    writer.close()
    await writer.wait_closed()


def run_alone(work: Coroutine[Any, Any, None]) -> None:
    """Run in a loop of its own that skips: that of all tests has timers of others."""
    skip_waiting(True)
    try:
        with asyncio.Runner(loop_factory=IdleClockLoop) as runner:
            runner.run(work)
    finally:
        skip_waiting(False)


async def jump() -> None:
    """Wait for an hour, with another timer before its end."""
    began = now()
    log = list[str]()
    asyncio.get_running_loop().call_later(1800, log.append, "half")

    await asyncio.sleep(3600)

    assert log == ["half"]
    assert round(now() - began, 6) == 3600


async def ask_slow_server() -> None:
    """A thread works longer than the clock would stand still for it."""

    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(time.sleep, LONG)
        return web.Response()

    limit = asyncio.timeout(2 * LONG)
    async with Upstream(answer) as upstream, limit, asked(upstream) as reader:
        assert (await reader.readline()).startswith(b"HTTP/1.0 200")


async def wait_beside_a_thread() -> None:
    """A thread of an earlier test never ends."""
    thread = threading.Event()
    left = asyncio.get_running_loop().run_in_executor(None, thread.wait, 30)
    forget_threads()

    await asyncio.sleep(50)

    assert not left.done()  # which it would be if fifty seconds had passed
    thread.set()
    await left


@pytest.mark.parametrize("scene", [jump, ask_slow_server, wait_beside_a_thread])
async def test_clock_jumps_where_nothing_can_come(
    scene: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """In the order of the timers; not over a request or a thread of the same test."""
    await asyncio.to_thread(run_alone, scene())
