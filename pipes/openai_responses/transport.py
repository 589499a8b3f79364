"""The only module that opens a connection.

Errors of aiohttp become ours here, once; what a proxy, a certificate or a gateway
does wrong gets a sentence of its own.
"""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp

from openai_responses.api_errors import read_api_error
from openai_responses.clock import unix_seconds
from openai_responses.deadlines import Deadlines, Timeouts
from openai_responses.endings import failure_sentence, refusal_sentence
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    Setback,
    UnreadableAnswer,
)
from openai_responses.retries import read_setback
from openai_responses.routes import Trust, proxy_for
from openai_responses.sentences import SENTENCES
from openai_responses.sessions import Sessions

_DRAIN_SECONDS = 1.0
_MAX_ERROR_BODY = 64 * 1024

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word: the log shows it."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class Answer:
    """A response whose status is fine and whose body is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Wrap `response`; whoever opened it closes it."""
        self._response = response
        self._deadlines = deadlines
        self._broke = False

    @property
    def is_stream(self) -> bool:
        """Say whether the body is an event stream."""
        return self._response.content_type == "text/event-stream"

    @property
    def request_id(self) -> str:
        """OpenAI's own id of the request, for the log."""
        return _request_id(self._response)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        while chunk := await self._read_any():
            yield chunk

    async def _read_any(self) -> bytes:
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        scope = self._deadlines.scope()
        try:
            async with scope:
                return await self._response.content.readany()
        except _NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.passed() from None
            self._broke = True
        return self._rescued() or await self._read_any()

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
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._response.content.iter_any():
                    pass
        except _NETWORK_ERRORS:
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


class Connections:
    """Sends requests over the pooled sessions of one pipe."""

    def __init__(self, idle_seconds: float | None = None) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._sessions = Sessions() if idle_seconds is None else Sessions(idle_seconds)
        self._trust = Trust()

    @asynccontextmanager
    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any],
        deadlines: Deadlines | None = None,
    ) -> AsyncIterator[Answer]:
        """Send `payload` and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut or InvalidRequest; leaving early
        closes the connection, and with it the work upstream.
        """
        limits = deadlines or Deadlines(Timeouts())
        tls = self._trust.context(endpoint.network)
        with self._sessions.pool().lend() as session:
            response = await _send(session, endpoint, path, payload, limits, tls)
            try:
                if response.status >= 400:
                    raise await _refusal(response, str(payload.get("model", "")))
                yield Answer(response, limits)
            finally:
                response.close()  # nothing happens when it was read to its end

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        await self._sessions.close()


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    path: str,
    payload: dict[str, Any],
    deadlines: Deadlines,
    tls: ssl.SSLContext | bool,
) -> aiohttp.ClientResponse:
    """Return the response once its head is there."""
    # A lone surrogate, from a broken copy and paste, must not stop the request.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")
    url = endpoint.url(path)
    scope = deadlines.scope()
    try:
        async with scope:
            return await session.post(
                url,
                data=body,
                headers=endpoint.headers(),
                ssl=tls,
                proxy=proxy_for(endpoint.network, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.passed() from None
        raise ConnectionFailed(_network_sentence(error, endpoint.host)) from None
    except ValueError:  # a line break in the key, a host that no name server knows
        raise InvalidRequest(
            "API_KEY, BASE_URL, PROXY or EXTRA_HEADERS holds characters that cannot "
            "be sent. An administrator has to correct it in the valves of this pipe."
        ) from None


def _network_sentence(error: Exception, host: str) -> str:
    """Return what to tell of a connection that did not come about."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return SENTENCES["refused"]["407"]
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return (
                f"The certificate of {host} is not trusted here. An administrator has "
                "to check BASE_URL, CA_BUNDLE and VERIFY_SSL in the valves."
            )
    return (
        f"The model's server at {host} cannot be reached. Try again; if it lasts, an "
        "administrator has to check BASE_URL in the valves of this pipe."
    )


async def _refusal(response: aiohttp.ClientResponse, model: str) -> ApiRefused:
    """Return the error that a response with a bad status stands for."""
    body = b""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_ERROR_BODY:
                    break
        error = read_api_error(json.loads(body))
    except (*_NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: the status says it
    status = response.status
    setback = read_setback(status, error, response.headers, unix_seconds())
    sentence = refusal_sentence(status, error, model)
    return ApiRefused(sentence, setback, _request_id(response))


def _request_id(response: aiohttp.ClientResponse) -> str:
    """Return the server's id of a request, if it looks like one."""
    told = response.headers.get("x-request-id", "")
    return told if _REQUEST_ID.fullmatch(told) else ""
