"""A server on 127.0.0.1 that answers with transcripts and records its requests."""

import asyncio
from typing import Any, Self

from aiohttp import web

from golden_run.transcripts import Transcript, terminal_event

Json = dict[str, Any]

API_KEY = "sk-golden-1"
STALLING = frozenset({"stall"})
"""Transcripts after which the server keeps the connection open and writes nothing."""
ABORTING = frozenset({"drop", "background-drop"})
"""Transcripts that end in the middle of an event, because the connection is aborted."""
_UNINTERESTING_HEADERS = (
    *("accept", "accept-encoding", "authorization", "connection"),
    *("content-length", "content-type", "host", "user-agent"),
)


class ReplayServer:
    """Answers each POST with the next response of a transcript, then with `otherwise`.

    `requests` are the methods, paths, headers and bodies that came in.
    """

    def __init__(self, transcript: Transcript, otherwise: bytes) -> None:
        """Open nothing yet."""
        self.requests: list[Json] = []
        self.base_url = ""
        self._name = transcript.name
        self._bodies = list(transcript.responses)
        self._otherwise = otherwise
        self._resumed = transcript.resumed
        self._is_closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/responses", self._create)
        app.router.add_get("/v1/responses/{id}", self._retrieve)
        app.router.add_route("*", "/{path:.*}", self._give_file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closing.set()
        if self._runner:
            await self._runner.cleanup()

    async def _create(self, request: web.Request) -> web.StreamResponse:
        request_body = await self._record(request)
        is_from_transcript = bool(self._bodies)
        body = self._bodies.pop(0) if is_from_transcript else self._otherwise
        if not request_body.get("stream"):
            return _whole_response(body)
        stream = await self._write(request, body)
        # A run of several responses is written to the end of its last one, and the
        # connection ends as it ended there.
        if is_from_transcript and not self._bodies:
            if self._name in STALLING:
                await self._is_closing.wait()
            if self._name in ABORTING and request.transport:
                request.transport.abort()
        return stream

    async def _retrieve(self, request: web.Request) -> web.StreamResponse:
        """Give the rest of a background response."""
        await self._record(request)
        if request.query.get("stream") == "true":
            return await self._write(request, self._resumed)
        return _whole_response(self._resumed)

    async def _give_file(self, request: web.Request) -> web.Response:
        """Give the same content for each file of a container."""
        await self._record(request)
        return web.Response(body=b"golden", content_type="application/octet-stream")

    async def _record(self, request: web.Request) -> Json:
        """Add a request to `requests`; return its body."""
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _UNINTERESTING_HEADERS
        }
        body = await request.json() if request.can_read_body else {}
        self.requests.append(
            {
                "method": request.method,
                "path": request.path_qs,
                "headers": headers,
                "body": body,
            }
        )
        return dict(body)

    async def _write(self, request: web.Request, body: bytes) -> web.StreamResponse:
        stream = web.StreamResponse()
        stream.content_type = "text/event-stream"
        await stream.prepare(request)
        await stream.write(body)
        return stream


def _whole_response(body: bytes) -> web.Response:
    """Return the answer of a request that does not stream, as the API gives it."""
    event = terminal_event(body)
    if event is None:
        return web.json_response({"error": {"message": "Broken."}}, status=500)
    if event["type"] == "error":
        error = event.get("error") or event
        return web.json_response({"error": error}, status=500)
    return web.json_response(event["response"])
