"""A response whose head has come, with its body on the way."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp

from openai_responses.api_errors import read_api_error
from openai_responses.deadlines import Deadlines
from openai_responses.endings import failure_sentence
from openai_responses.errors import (
    ApiRefused,
    ConnectionFailed,
    Setback,
    UnreadableAnswer,
)
from openai_responses.sentences import SENTENCES

DRAIN_SECONDS = 1.0
"""For the rest of a body that nobody needs."""

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word: the log shows it."""

NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class Answer:
    """A response whose status is fine and whose body is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Wrap `response`; whoever opened it closes it."""
        self._response = response
        self._deadlines = deadlines
        self._broke = False
        self.is_read = False

    @property
    def is_stream(self) -> bool:
        """Say whether the body is an event stream."""
        return self._response.content_type == "text/event-stream"

    @property
    def request_id(self) -> str:
        """OpenAI's own id of the request, for the log."""
        return request_id_of(self._response)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        while chunk := await self.read_any():
            yield chunk

    async def read_any(self) -> bytes:
        """Return what has arrived of the body; nothing at its end, when `is_read`."""
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        scope = self._deadlines.scope()
        try:
            async with scope:
                chunk = await self._response.content.readany()
            self.is_read = not chunk
            return chunk
        except NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.passed() from None
            self._broke = True
        return self._rescued() or await self.read_any()

    def _rescued(self) -> bytes:
        """Return what arrived before the connection broke.

        aiohttp puts the exception in front of the bytes that nobody has read yet.
        """
        content = self._response.content
        content.set_exception(None)  # type: ignore[arg-type]
        return content.read_nowait()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Leave what arrives with the operating system for a while.

        Otherwise the event loop wakes for every packet, though nobody reads. Where
        aiohttp itself has stopped reading, because its buffer is full, it stays so.
        """
        connection = self._response.connection  # None once the body has ended
        transport = connection.transport if connection else None
        if transport is None or not transport.is_reading():
            yield
            return
        transport.pause_reading()
        try:
            yield
        finally:
            if not transport.is_closing():
                transport.resume_reading()

    async def drain(self) -> None:
        """Read what is left after the last event, so that the connection lives on."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in self._response.content.iter_any():
                    pass
        except NETWORK_ERRORS:
            self._response.close()

    async def response_object(self) -> dict[str, Any]:
        """Return the body as the API's response object."""
        pieces = [piece async for piece in self.chunks()]
        try:
            wire = json.loads(b"".join(pieces))
        except (ValueError, RecursionError):
            wire = None
        if isinstance(wire, dict) and isinstance(wire.get("output"), list):
            return wire
        if isinstance(wire, dict) and wire.get("error"):
            error = read_api_error(wire)
            setback = Setback(self._response.status, error)
            raise ApiRefused(failure_sentence(error), setback, self.request_id)
        raise UnreadableAnswer(SENTENCES["unreadable"][""])


def request_id_of(response: aiohttp.ClientResponse) -> str:
    """Return the server's id of a request, if it looks like one."""
    told = response.headers.get("x-request-id", "")
    return told if _REQUEST_ID.fullmatch(told) else ""
