"""A server on 127.0.0.1 whose answers a test writes itself."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from ssl import SSLContext
from typing import Any, Self, TypeVar

from aiohttp import web
from aiohttp.test_utils import TestServer

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.json_input import JsonObject
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts

Failed = TypeVar("Failed", bound=ResponsesError)
Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEY = "sk-upstream-1"
QUESTION: dict[str, Any] = {"model": "gpt-5.6-sol", "input": []}


class Upstream:
    """Answers every request with `answer`, used as `async with Upstream(answer)`.

    With `tls` it is an https server.
    """

    def __init__(self, answer: Answerer, tls: SSLContext | None = None) -> None:
        """Nothing is opened yet."""
        self._answer = answer
        self._tls = tls
        self.requests: list[web.Request] = []
        self.bodies: list[Any] = []
        self.connections: set[Any] = set()
        self.left = asyncio.Event()
        """Set when a client leaves before its answer is whole."""
        self.broken = asyncio.Event()
        """Set when an answer has aborted its connection."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        self._server = TestServer(app)

    @property
    def base_url(self) -> str:
        return str(self._server.make_url("/v1"))

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.base_url, KEY)

    @property
    def open_connections(self) -> int:
        return len(self._server.handler.connections)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        assert request.transport
        self.connections.add(request.transport.get_extra_info("peername"))
        self.requests.append(request)
        is_form = request.content_type == "multipart/form-data"
        has_json = request.can_read_body and not is_form
        body = await request.json() if has_json else None
        self.bodies.append(body)
        try:
            answer = await self._answer(request)
            if request.transport is None or request.transport.is_closing():
                self.broken.set()
            return answer
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise

    async def __aenter__(self) -> Self:
        await self._server.start_server(ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()


def replying(
    text: str | bytes,
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answerer:
    """Answer with one body."""
    body = text.encode() if isinstance(text, str) else text

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, body=body, content_type=content_type, headers=headers
        )

    return answer


def in_one_piece(*output: Mapping[str, Any], **fields: Any) -> Answerer:
    """Answer with a whole response that has these items."""
    whole = {"id": "resp_1", "object": "response", "status": "completed"}
    return replying(json.dumps({**whole, "output": output, **fields}))


def in_turn(*answers: Answerer) -> Answerer:
    """Answer each request in another way, all after the last in the last one."""
    left = list(answers)

    async def answer(request: web.Request) -> web.StreamResponse:
        now = left.pop(0) if len(left) > 1 else left[0]
        return await now(request)

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


async def silence(_: web.Request) -> web.StreamResponse:
    """Take the request and never say a word."""
    await asyncio.Event().wait()
    return web.Response()


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return web.Response()


def post(
    connections: Connections, endpoint: Endpoint, payload: dict[str, Any] = QUESTION
) -> AbstractAsyncContextManager[Any]:
    """Send a request without a limit that a test reaches; lend the answer."""
    return connections.request(endpoint, "/responses", payload, Deadlines(Timeouts()))


async def ask(
    connections: Connections, endpoint: Endpoint, payload: dict[str, Any] = QUESTION
) -> JsonObject:
    async with post(connections, endpoint, payload) as answer:
        response: JsonObject = await answer.response_object()
        return response


async def error_of(
    connections: Connections, kind: type[Failed], answer: Answerer
) -> Failed:
    """Return the error that a request to a server with this answer ends with."""
    async with Upstream(answer) as upstream:
        try:
            await ask(connections, upstream.endpoint)
        except kind as error:
            return error
    raise AssertionError("the request did not fail")


def free_port() -> int:
    """Return a port where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def started(request: web.Request, status: int = 200) -> web.StreamResponse:
    stream = web.StreamResponse(status=status)
    stream.content_type = "text/event-stream"
    await stream.prepare(request)
    return stream


async def stream_in_pieces(
    request: web.Request, body: bytes, size: int | None = None
) -> web.StreamResponse:
    """Send an event stream, whole or in chunks of this size."""
    stream = await started(request)
    step = size or len(body)
    for offset in range(0, len(body), step):
        await stream.write(body[offset : offset + step])
    return stream


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; it must within a minute."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing tells when a socket is closed
            await asyncio.sleep(0.005)
