"""A server on 127.0.0.1 whose answers a test writes itself."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from openai_responses.endpoint import Endpoint

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEY = "sk-upstream-1"


class Upstream:
    """Answers every request with `answer`, used as `async with Upstream(answer)`."""

    def __init__(self, answer: Answerer) -> None:
        """Nothing is opened yet."""
        self._answer = answer
        self.requests: list[web.Request] = []
        self.bodies: list[Any] = []
        self.connections: set[Any] = set()
        self.left = asyncio.Event()
        """Set when a client leaves before its answer is whole."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        self._server = TestServer(app)

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return str(self._server.make_url("/v1"))

    @property
    def endpoint(self) -> Endpoint:
        """The same, with a key."""
        return Endpoint(self.base_url, KEY)

    @property
    def open_connections(self) -> int:
        """How many connections are open at this moment."""
        return len(self._server.handler.connections)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        self.connections.add(request.transport.get_extra_info("peername"))
        self.requests.append(request)
        self.bodies.append(await request.json())
        try:
            return await self._answer(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise

    async def __aenter__(self) -> Self:
        """Listen."""
        await self._server.start_server()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the server."""
        await self._server.close()


def replying(
    text: str | bytes, status: int = 200, content_type: str = "application/json"
) -> Answerer:
    """Answer with one body."""
    body = text.encode() if isinstance(text, str) else text

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, content_type=content_type)

    return answer


def streaming(*chunks: bytes) -> Answerer:
    """Answer with an event stream of these chunks."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        for chunk in chunks:
            await stream.write(chunk)
        return stream

    return answer


def breaking(chunk: bytes, status: int = 200) -> Answerer:
    """Answer with the beginning of a body, then abort the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request, status)
        await stream.write(chunk)
        assert request.transport
        request.transport.abort()
        return stream

    return answer


def stalling(chunk: bytes) -> Answerer:
    """Answer with the beginning of a body, then keep the connection open."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(chunk)
        await asyncio.Event().wait()
        return stream

    return answer


async def started(request: web.Request, status: int = 200) -> web.StreamResponse:
    """Begin an event stream."""
    stream = web.StreamResponse(status=status)
    stream.content_type = "text/event-stream"
    await stream.prepare(request)
    return stream


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; it must within five seconds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - nobody tells when a socket is closed
            await asyncio.sleep(0.005)
