"""Listeners: start, emit, stop, release."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gpt5_agent.ports import Listener
from gpt5_agent.terminal.listeners import HttpListener, StdinListener
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOKEN = "tok-1"
Emit = Callable[[str], Awaitable[object]]


class Ear:
    """An agent that writes down what it hears; it may take its time."""

    def __init__(self, is_slow: bool = False) -> None:
        self.heard: list[str] = []
        self.stopped: list[str] = []
        self._is_slow = is_slow

    async def emit_input(self, text: str) -> None:
        self.heard.append(text)
        try:
            await (asyncio.Event().wait() if self._is_slow else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.stopped.append(text)
            raise

    async def hears(self, text: str) -> None:
        await until(lambda: self.heard[-1:] == [text])


@asynccontextmanager
async def stdin() -> AsyncIterator[tuple[Listener, Emit]]:
    """One that reads a pipe, with who writes to it."""
    read, write = os.pipe()

    async def emit(text: str) -> None:
        os.write(write, f"{text}\n".encode())

    try:
        yield StdinListener(read), emit
    finally:
        os.close(read)
        os.close(write)


@asynccontextmanager
async def http() -> AsyncIterator[tuple[Listener, Emit]]:
    """One on a port, with who posts to it."""
    listener = HttpListener(TOKEN)

    async def emit(text: str) -> None:
        assert await posted(listener.address, text.encode()) == 202

    yield listener, emit


async def posted(address: str, body: bytes, token: str = TOKEN, **more: str) -> int:
    headers = {"Authorization": f"Bearer {token}", **more}
    async with (
        aiohttp.ClientSession() as client,
        client.post(address, data=body, headers=headers) as response,
    ):
        return response.status


BOTH = pytest.mark.parametrize("kind", [stdin, http], ids=["stdin", "http"])
Kind = Callable[[], AbstractAsyncContextManager[tuple[Listener, Emit]]]


@BOTH
async def test_listener_starts_emits_stops_and_releases(kind: Kind) -> None:
    async with kind() as (listener, emit):
        assert listener.name in ("stdin", "http")
        await listener.on_stop()  # somebody else may have failed to start
        for _ in range(2):
            ear = Ear()
            await listener.on_start(ear)
            for text in ("Hello", "東京"):
                await emit(text)
                await ear.hears(text)
            await listener.on_stop()
        if isinstance(listener, HttpListener):
            assert listener.address.startswith("http://127.0.0.1:")
            with pytest.raises(aiohttp.ClientConnectionError):
                await posted(listener.address, b"Anybody?")


@BOTH
async def test_stopping_cancels_unanswered_input(kind: Kind) -> None:
    ear = Ear(is_slow=True)
    async with kind() as (listener, emit):
        await listener.on_start(ear)
        await emit("Hello")
        await until(lambda: ear.heard == ["Hello"])

        await listener.on_stop()
        await until(lambda: ear.stopped == ["Hello"])


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"Host": "localhost:1"}, 202),
        ({"Host": "rebound.example"}, 403),
        ({"Host": "127.0.0.1.example:80"}, 403),
        ({"Origin": "https://page.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain; charset=x"}, 400),
    ],
)
async def test_page_in_a_browser_is_not_answered(
    more: dict[str, str], status: int
) -> None:
    """It could guess tokens, under a name that its server gives to this machine."""
    async with http() as (listener, _):
        assert isinstance(listener, HttpListener)
        await listener.on_start(Ear())
        assert await posted(listener.address, b"Hi", **more) == status
        await listener.on_stop()


async def test_lines_are_whole_and_the_last_needs_no_end() -> None:
    """Characters may be cut anywhere; empty lines say nothing."""
    read, write = os.pipe()
    ended = asyncio.Event()
    ear = Ear()
    listener = StdinListener(read, ended.set)
    await listener.on_start(ear)
    for byte in " Zürich\r\n\n  \r\n東京".encode():
        os.write(write, bytes([byte]))
        await asyncio.sleep(0)
    os.close(write)

    await ended.wait()

    await listener.on_stop()
    os.close(read)
    assert ear.heard == ["Zürich", "東京"]


async def test_terminal_that_is_gone_has_no_more_lines() -> None:
    """What is left of it can be read at any time, and gives an error each time."""
    left, closed = os.openpty()
    os.close(closed)

    assert not StdinListener(left)._read()

    os.close(left)
    with pytest.raises(OSError, match="Bad file descriptor"):  # a mistake of ours
        StdinListener(left)._read()


async def test_file_of_a_disk_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntw\xff\n")
    ended = asyncio.Event()
    ear = Ear()
    with path.open("rb") as file:
        listener = StdinListener(file.fileno(), ended.set)
        await listener.on_start(ear)
        await ended.wait()
        await listener.on_stop()

    assert ear.heard == ["one", "tw\ufffd"]


async def test_line_without_end_is_cut() -> None:
    """Whoever writes without a line end cannot fill the memory."""
    read, write = os.pipe()
    ear = Ear()
    listener = StdinListener(read)
    await listener.on_start(ear)
    flood = asyncio.create_task(asyncio.to_thread(_write_all, write, 1_300_000))
    await until(lambda: bool(ear.heard))
    await flood
    await listener.on_stop()
    os.close(read)
    os.close(write)

    assert len(ear.heard[0]) < 1_200_000
    assert sum(map(len, ear.heard)) < 1_300_000


def _write_all(descriptor: int, size: int) -> None:
    left = size
    while left > 0:
        left -= os.write(descriptor, b"x" * min(left, 65_536))


@pytest.mark.parametrize(
    ("body", "token", "status"),
    [
        (b"Hello", "tok-2", 401),
        (b"Hello", "tok-é", 401),
        (b"  \n", TOKEN, 400),
        (b"\xff\xfe", TOKEN, 400),
        (b"x" * 70_000, TOKEN, 413),
    ],
)
async def test_post_that_is_none_is_refused(
    body: bytes, token: str, status: int
) -> None:
    ear = Ear()
    listener = HttpListener(TOKEN)
    await listener.on_start(ear)

    assert await posted(listener.address, body, token) == status

    await listener.on_stop()
    assert ear.heard == []


async def test_taken_port_raises() -> None:
    first = HttpListener(TOKEN)
    await first.on_start(Ear())
    port = int(first.address.split(":")[2].split("/")[0])
    second = HttpListener(TOKEN, port)

    with pytest.raises(OSError, match="address already in use"):
        await second.on_start(Ear())

    await second.on_stop()
    await first.on_stop()
