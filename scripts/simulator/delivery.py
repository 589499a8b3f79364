"""Sends an answer over a connection, with the requested faults, and records the request."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from simulator.answers import PlannedAnswer
from simulator.options import Options
from simulator.scenarios.scenario import HttpReply
from simulator.storage import StoredResponse
from simulator.wire.events import encode_end, encode_event, split_chunks
from simulator.wire.servers import retell

SECRET_HEADERS = ("authorization", "api-key")


@dataclass
class RecordedRequest:
    """One request, and how it was answered."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    started_at: float
    method: str = "POST"
    query: dict[str, str] = field(default_factory=dict)
    connection: tuple[str, int] | None = None
    scenario: str | None = None
    status: int | None = None
    response: dict[str, Any] | None = None
    events_sent: int = 0
    ended_at: float | None = None
    finished: bool = False
    closed_by_client: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the answer is still being written."""
        return self.ended_at is None


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without their secrets."""
    return {
        name: "***" if name.lower() in SECRET_HEADERS else value
        for name, value in headers.items()
    }


DELIVERY_FAULTS = ("cut", "drop", "stall", "endless")
ENDLESS_PIECES = {
    "line": b"x" * 65_536,
    "comments": b": still here\n\n" * 4_096,
    "lines": b"data: x\n" * 8_192,
    "events": b'data: {"type":"response.aura.delta","delta":"?"}\n\n' * 1_024,
    "drip": b"x",
}
"""Pieces that a faulty server can repeat without an end."""
DRIP_SECONDS = 0.01


@dataclass(frozen=True)
class AnswerDelivery:
    """One answer on its way to one client."""

    request: web.Request
    record: RecordedRequest
    headers: Mapping[str, str]
    stopping: asyncio.Event
    released: asyncio.Event
    dice: random.Random
    stored: StoredResponse | None = None
    start: int = 0
    server: str = ""
    """The server whose way of streaming is imitated; empty for OpenAI's."""

    async def send(self, answer: PlannedAnswer) -> web.StreamResponse:
        """Send an answer in the form that the client asked for."""
        await asyncio.sleep(answer.options.seconds("wait"))
        if answer.http is not None:
            return self._send_http(answer.http)
        if self.record.body.get("stream"):
            return await self._send_stream(answer)
        if self.stored is not None and self.stored.background:
            return self.send_object(self.stored.opened)
        return await self._send_json(answer)

    async def resume(self, stored: StoredResponse) -> web.StreamResponse:
        """Send the rest of a stream; ``again`` says how often that breaks, too."""
        breaks = stored.looks <= (stored.answer.options.number("again") or 0)
        kept = stored.answer.options.given.items()
        sound = {name: text for name, text in kept if name not in DELIVERY_FAULTS}
        options = stored.answer.options if breaks else Options(sound)
        return await self._send_stream(replace(stored.answer, options=options))

    def send_object(self, response: dict[str, Any]) -> web.Response:
        """Send a response as it stands now."""
        self.record.status = 200
        self.record.finished = True
        self.record.response = response
        return web.json_response(response, headers=self.headers)

    def _send_http(self, http: HttpReply) -> web.Response:
        self.record.status = http.status
        self.record.finished = True
        if http.content_type == "application/json":
            self.record.response = json.loads(http.body)
        return web.Response(
            status=http.status,
            text=http.body,
            content_type=http.content_type,
            headers={**self.headers, **http.headers},
        )

    async def _send_json(self, answer: PlannedAnswer) -> web.Response:
        last = answer.events[-1]
        broken = last["type"] == "error"
        self.record.status = 500 if broken else 200
        error = {"error": last.get("error") or last}
        self.record.response = error if broken else answer.final
        if answer.options.has("stall"):
            await self.stopping.wait()
        if answer.options.has("drop"):
            self._abort()
        self.record.finished = True
        reply = web.json_response(
            self.record.response, status=self.record.status, headers=self.headers
        )
        if answer.options.has("gzip"):
            reply.enable_compression(web.ContentCoding.gzip)
        return reply

    async def _send_stream(self, answer: PlannedAnswer) -> web.StreamResponse:
        self.record.status = 200
        stream = web.StreamResponse(headers=self.headers)
        stream.content_type = "text/event-stream"
        stream.charset = "utf-8"
        if answer.options.has("gzip"):
            stream.enable_compression(web.ContentCoding.gzip)
        await stream.prepare(self.request)
        if answer.options.has("burst"):
            await self._write_burst(stream, answer)
            return stream
        async for event in self._events(answer):
            if answer.options.number("hold") == self.record.events_sent:
                await self.released.wait()
            fault = self._fault_due(answer)
            if fault is not None:
                await self._break(stream, event, answer, fault)
                return stream
            await self._pace(event, answer)
            await self._write(stream, encode_event(event, answer.options), answer)
            self.record.events_sent += 1
        await self._end(stream, answer)
        return stream

    async def _write_burst(
        self, stream: web.StreamResponse, answer: PlannedAnswer
    ) -> None:
        """Write the whole answer at once, without pauses and faults."""
        lines = [
            encode_event(event, answer.options) async for event in self._events(answer)
        ]
        await stream.write(b"".join(lines))
        self.record.events_sent = len(lines)
        await self._end(stream, answer)

    async def _end(self, stream: web.StreamResponse, answer: PlannedAnswer) -> None:
        await stream.write(encode_end(answer.options))
        await stream.write_eof()
        self.record.response = answer.final
        self.record.finished = True

    async def _events(self, answer: PlannedAnswer) -> AsyncIterator[Mapping[str, Any]]:
        if self.stored is not None and self.stored.background:
            async for event in self.stored.events_from(self.start):
                yield event
            return
        for event in retell(answer.events, self.server)[self.start :]:
            yield event

    def _fault_due(self, answer: PlannedAnswer) -> str | None:
        for fault in DELIVERY_FAULTS:
            if answer.options.number(fault) == self.record.events_sent:
                return fault
        return None

    async def _break(
        self,
        stream: web.StreamResponse,
        event: Mapping[str, Any],
        answer: PlannedAnswer,
        fault: str,
    ) -> None:
        if fault == "stall":
            await self.stopping.wait()
        elif fault == "drop":
            line = encode_event(event, answer.options)
            await self._write(stream, line[: len(line) // 2], answer)
            self._abort()
        elif fault == "endless":
            await self._write_on(stream, answer.options.text("of", "line"))

    async def _write_on(self, stream: web.StreamResponse, kind: str) -> None:
        """Write until the client leaves."""
        if kind in ("line", "drip"):
            await stream.write(b"data: ")
        while not self.stopping.is_set():
            await stream.write(ENDLESS_PIECES[kind])
            await asyncio.sleep(DRIP_SECONDS if kind == "drip" else 0)

    async def _pace(self, event: Mapping[str, Any], answer: PlannedAnswer) -> None:
        if answer.options.has("delay") and event["type"].endswith(".delta"):
            await asyncio.sleep(answer.options.seconds("delay"))

    async def _write(
        self, stream: web.StreamResponse, text: bytes, answer: PlannedAnswer
    ) -> None:
        for chunk in split_chunks([text], answer.options, self.dice):
            await stream.write(chunk)
            if answer.options.has("chunks"):
                # Let a reader in this loop see the chunk before the next one.
                await asyncio.sleep(0)

    def _abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()
