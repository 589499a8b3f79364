"""The only module that opens a connection.

Errors of aiohttp become ours here, once; what a proxy, a certificate or a gateway
does wrong gets a sentence of its own.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from openai_responses.api_errors import read_api_error
from openai_responses.clock import unix_seconds
from openai_responses.deadlines import Deadlines, Timeouts
from openai_responses.endings import refusal_sentence
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    ResponsesError,
)
from openai_responses.received import (
    DRAIN_SECONDS,
    NETWORK_ERRORS,
    Answer,
    request_id_of,
)
from openai_responses.retries import read_setback
from openai_responses.routes import Trust, proxy_for
from openai_responses.sentences import SENTENCES
from openai_responses.sessions import Sessions

_MAX_ERROR_BODY = 64 * 1024
_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ServerTimeoutError,  # the connection's: no other limit is aiohttp's
)
_WAITS_BEFORE_POST = (0.0, 0.5, 2.0)
_POST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)


class Connections:
    """Sends requests over the pooled sessions of one pipe."""

    def __init__(self, idle_seconds: float | None = None) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._sessions = Sessions() if idle_seconds is None else Sessions(idle_seconds)
        self._trust = Trust()
        self._later: set[asyncio.Task[None]] = set()

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
        body, limits = _json_body(payload), deadlines or Deadlines(Timeouts())
        async with self._sent(endpoint, path, body, limits) as response:
            if response.status >= 400:
                raise await _refusal(response, str(payload.get("model", "")))
            yield Answer(response, limits)

    @asynccontextmanager
    async def get(
        self, endpoint: Endpoint, path: str, deadlines: Deadlines
    ) -> AsyncIterator[Answer]:
        """Ask for what is at `path` and lend the answer; raises what `post` raises.

        No redirection is followed: it would take the key along.
        """
        async with self._sent(endpoint, path, None, deadlines) as response:
            if response.status != 200:
                raise await _refusal(response, "")
            yield Answer(response, deadlines)

    @asynccontextmanager
    async def _sent(
        self, endpoint: Endpoint, path: str, body: bytes | None, deadlines: Deadlines
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Lend the response to a request; without a `body` it is a GET."""
        tls = self._trust.context(endpoint.network)
        with self._sessions.pool().lend() as session:
            response = await _send(session, endpoint, path, body, deadlines, tls)
            try:
                yield response
            finally:
                response.close()  # nothing happens when it was read to its end

    def post_later(self, endpoint: Endpoint, path: str) -> None:
        """Send an empty request in a task of its own, for callers that cannot wait.

        It is tried three times; nobody is told how it went.
        """
        self.do_later(self._post_quietly(endpoint, path))

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what outlives its run in a task that is held until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _post_quietly(self, endpoint: Endpoint, path: str) -> None:
        for wait in _WAITS_BEFORE_POST:
            await asyncio.sleep(wait)
            with suppress(ResponsesError):
                limits = Deadlines(_POST_TIMEOUTS)
                async with self._sent(endpoint, path, b"", limits) as response:
                    if response.status < 500 and response.status != 429:
                        return

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        loop = asyncio.get_running_loop()
        while later := [task for task in self._later if task.get_loop() is loop]:
            await asyncio.gather(*later)
        await self._sessions.close()


def _json_body(payload: dict[str, Any]) -> bytes:
    # A lone surrogate, from a broken copy and paste, must not stop the request.
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    path: str,
    body: bytes | None,
    deadlines: Deadlines,
    tls: ssl.SSLContext | bool,
) -> aiohttp.ClientResponse:
    """Return the response once its head is there."""
    url = endpoint.url(path)
    scope = deadlines.scope()
    try:
        async with scope:
            return await session.request(
                "GET" if body is None else "POST",
                url,
                allow_redirects=body is not None,
                data=body,
                headers=endpoint.headers(),
                ssl=tls,
                proxy=proxy_for(endpoint.network, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
    except NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.passed() from None
        raise ConnectionFailed(
            _network_sentence(error, endpoint.host),
            was_sent=not isinstance(error, _NEVER_CONNECTED),
        ) from None
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
        async with asyncio.timeout(DRAIN_SECONDS):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_ERROR_BODY:
                    break
        error = read_api_error(json.loads(body))
    except (*NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: the status says it
    status = response.status
    setback = read_setback(status, error, response.headers, unix_seconds())
    sentence = refusal_sentence(status, error, model)
    return ApiRefused(sentence, setback, request_id_of(response))
