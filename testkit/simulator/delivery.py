"""Sends an answer over its connection, with the requested faults; the record of a request."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from simulator.answers import PlannedAnswer
from simulator.scenarios.scenario import HttpReply
from simulator.storage import StoredResponse
from simulator.wire.events import encode_end, encode_event, split_chunks
from simulator.wire.servers import imitate_server


@dataclass
class RecordedRequest:
    """One request, and how it was answered.

    ``finished`` says that the whole answer was sent, ``closed_by_client`` that the client
    left before.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    started_at: float
    method: str = "POST"
    query: dict[str, str] = field(default_factory=dict)
    scenario: str | None = None
    status: int | None = None
    response: dict[str, Any] | None = None
    events_sent: int = 0
    ended_at: float | None = None
    finished: bool = False
    closed_by_client: bool = False

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


DELIVERY_FAULTS = ("cut", "drop", "stall", "endless")
ENDLESS_PIECES = {
    "line": b"x" * 65_536,
    "comments": b": still here\n\n" * 4_096,
    "lines": b"data: x\n" * 8_192,
    "events": b'data: {"type":"response.aura.delta","delta":"?"}\n\n' * 1_024,
    "drip": b"x",
}
"""What a faulty server repeats without an end, by the kinds of the option ``of``."""
DRIP_SECONDS = 0.01


@dataclass(frozen=True)
class AnswerDelivery:
    """Sends one answer to one client.

    ``stopping`` is set when the server stops, ``released`` when answers that hold may go
    on. ``stored`` is the response that is sent, ``start`` the number of the first event.
    """

    request: web.Request
    record: RecordedRequest
    headers: Mapping[str, str]
    stopping: asyncio.Event
    released: asyncio.Event
    randomness: random.Random
    clock: Callable[[], float]
    stored: StoredResponse | None
    start: int
    server: str
    """The profile; its name is that of the server whose streams are imitated, if any."""

    async def send(self, answer: PlannedAnswer) -> web.StreamResponse:
        """Send an answer in the form that the client asked for."""
        # The time that checking has taken is part of the wait.
        due = self.record.started_at + answer.options.seconds("wait")
        await asyncio.sleep(max(0.0, due - self.clock()))
        if answer.http is not None:
            return self._send_http(answer.http)
        if self.record.body.get("stream"):
            return await self._send_stream(answer)
        if self.stored is not None and self.stored.background:
            return self.send_object(self.stored.opened)
        return await self._send_json(answer)

    async def resume(self, stored: StoredResponse) -> web.StreamResponse:
        """Send the rest of a stream, without faults.

        The option ``again`` says how many resumed streams have the same fault again.
        """
        options = stored.answer.options
        if stored.retrievals > (options.number("again") or 0):
            options = options.without(DELIVERY_FAULTS)
        return await self._send_stream(replace(stored.answer, options=options))

    def send_object(self, response: dict[str, Any]) -> web.Response:
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
        last_event = answer.events[-1]
        if last_event["type"] == "error":
            self.record.status = 500
            self.record.response = {"error": last_event.get("error") or last_event}
        else:
            self.record.status = 200
            self.record.response = answer.final
        if answer.options.has("stall"):
            await self.stopping.wait()
        if answer.options.has("drop"):
            self._abort()
        self.record.finished = True
        return web.json_response(
            self.record.response, status=self.record.status, headers=self.headers
        )

    async def _send_stream(self, answer: PlannedAnswer) -> web.StreamResponse:
        self.record.status = 200
        stream = web.StreamResponse(headers=self.headers)
        stream.content_type = "text/event-stream"
        stream.charset = "utf-8"
        await stream.prepare(self.request)
        if answer.options.has("burst"):
            # The whole answer at once, without pauses and faults.
            events = self._events(answer)
            written = [encode_event(event, answer.options) async for event in events]
            await stream.write(b"".join(written))
            self.record.events_sent = len(written)
            await self._end(stream, answer)
            return stream
        faults = {answer.options.number(fault): fault for fault in DELIVERY_FAULTS}
        async for event in self._events(answer):
            if answer.options.number("hold") == self.record.events_sent:
                await self.released.wait()
            if self.record.events_sent in faults:
                fault = faults[self.record.events_sent]
                await self._fail(stream, event, answer, fault)
                return stream
            if answer.options.has("delay") and event["type"].endswith(".delta"):
                await asyncio.sleep(answer.options.seconds("delay"))
            await self._write(stream, encode_event(event, answer.options), answer)
            self.record.events_sent += 1
        await self._end(stream, answer)
        return stream

    async def _end(self, stream: web.StreamResponse, answer: PlannedAnswer) -> None:
        """End the body, and record the answer as whole."""
        await stream.write(encode_end(answer.options))
        await stream.write_eof()
        self.record.response = answer.final
        self.record.finished = True

    async def _events(self, answer: PlannedAnswer) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events from the start on; a background model may not be done yet."""
        if self.stored is not None and self.stored.background:
            async for event in self.stored.events_from(self.start):
                yield event
            return
        for event in imitate_server(answer.events, self.server)[self.start :]:
            yield event

    async def _fail(
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
            # Until the client leaves or the server stops.
            kind = answer.options.text("of", "line")
            if kind in ("line", "drip"):
                await stream.write(b"data: ")
            while not self.stopping.is_set():
                await stream.write(ENDLESS_PIECES[kind])
                await asyncio.sleep(DRIP_SECONDS if kind == "drip" else 0)

    async def _write(
        self, stream: web.StreamResponse, text: bytes, answer: PlannedAnswer
    ) -> None:
        if not answer.options.has("chunks"):
            await stream.write(text)
            return
        for chunk in split_chunks(text, answer.options, self.randomness):
            await stream.write(chunk)
            # Let a reader in this loop see the chunk before the next one.
            await asyncio.sleep(0)

    def _abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()
