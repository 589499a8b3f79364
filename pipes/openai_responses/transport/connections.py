"""Pooled HTTP sessions; the only module that opens a connection.

Each event loop has one session. The first run that borrows it opens it. It is closed
when no run has used it for a while, or when its owner is gone: a host that replaces a
pipe does not tell the old one. Errors of aiohttp become errors of this package here.
"""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp

from openai_responses.clock import unix_seconds
from openai_responses.endings import SENTENCES, failure_sentence, refusal_sentence
from openai_responses.endpoint import Endpoint, Trust, proxy_for
from openai_responses.errors import (
    PIPE_VALVES,
    ApiError,
    ApiRefused,
    ConnectionFailed,
    Failure,
    ResponsesError,
    TimedOut,
    TimeoutKind,
    UnreadableAnswer,
    read_api_error,
    valve_error,
)


def parse_retry_headers(
    status: int, error: ApiError, headers: Mapping[str, str], now: float
) -> Failure:
    """Return the failure of an HTTP answer; `now` is in seconds since 1970."""
    wish = headers.get("x-should-retry", "").lower()
    wanted = {"true": True, "false": False}.get(wish)
    return Failure(status, error, _retry_after(headers, now), wanted)


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


_IDLE_SECONDS = 60.0
"""Shorter than the keep-alive of OpenAI's front end, so that our side closes first."""
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; with fewer, busy servers would wait."""
_KEEPALIVE_SECONDS = 50.0
"""A connection that was idle for longer may be closed by the server at any time."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up delays the first words."""


class _Pool:
    """The session of one event loop, lent to the active runs."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if needed; the last return starts the idle time."""
        if self._timer is not None:
            self._timer.cancel()
        if self._session is None:
            self._session = _new_session()
        self._lent += 1
        try:
            yield self._session
        finally:
            self._lent -= 1
            if self._lent == 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle_seconds, self.close_later)

    def _take_session(self) -> aiohttp.ClientSession | None:
        """Return the session, which no run can borrow from now on."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        return session

    async def close(self) -> None:
        session = self._take_session()
        if session is not None:
            await session.close()

    def close_later(self) -> None:
        """Close the session in a task of its own, for callers that cannot wait."""
        session = self._take_session()
        if session is None:
            return
        # In a task that is referenced until it is done: closing a connector from a
        # timer warns "never awaited" on aiohttp 3.14.
        task = asyncio.get_running_loop().create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Sessions:
    """The pools of one pipe, one for each event loop that runs it."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._idle_seconds = idle_seconds
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def __del__(self) -> None:
        """Close open sessions: the last run that referenced this object has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def pool(self) -> _Pool:
        """Return the pool of the running loop; drop those of closed loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            alive = {one: p for one, p in self._pools.items() if not one.is_closed()}
            self._pools = {**alive, loop: _Pool(self._idle_seconds)}
        return self._pools[loop]

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


def _new_session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=_MAX_CONNECTIONS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        ttl_dns_cache=_DNS_SECONDS,
    )
    # Each run has its own time limits. Proxies of the environment are looked up by
    # this package, because trust_env would also send the contents of a .netrc file.
    no_limit = aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None)
    # Cookies that a gateway sets for one user must not be sent for another.
    no_cookies = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(
        connector=connector, timeout=no_limit, cookie_jar=no_cookies
    )


class Timeouts(NamedTuple):
    """Limits in seconds; a `total` of 0 means no limit.

    `first_event` runs from sending to the first event, `idle` from one event to the
    next; a `keepalive` counts as an event. Reasoning can be silent for minutes, so
    there is no total limit by default, and the time of tools and of people does not
    count in it.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


class Deadlines:
    """The limit that is active now, over all attempts of one run."""

    def __init__(self, timeouts: Timeouts) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        now = asyncio.get_running_loop().time()
        self._end = now + timeouts.total if timeouts.total else float("inf")
        self._next = now + timeouts.first_event
        self._kind: TimeoutKind = "first_event_timeout"

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.first_event, "first_event_timeout"

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.idle, "idle_timeout"

    def allow(self, seconds: float) -> bool:
        """Say whether the total limit leaves enough time for a wait."""
        return asyncio.get_running_loop().time() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the total limit for a while."""
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._end += asyncio.get_running_loop().time() - began

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._next, self._end))

    def timeout_error(self) -> TimedOut:
        """Return the error of the limit that was exceeded."""
        return TimedOut("total_timeout" if self._end <= self._next else self._kind)


_DRAIN_SECONDS = 1.0
"""For reading the rest of a body, which is not needed."""

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word, because the log shows the id."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class HttpResponse:
    """A response with a good status whose body is still arriving."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Wrap `response`; the caller that opened it closes it."""
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
        return _request_id_of(self._response)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        while chunk := await self.read_any():
            yield chunk

    async def read_any(self) -> bytes:
        """Return the part of the body that has arrived; empty at its end."""
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        scope = self._deadlines.scope()
        try:
            async with scope:
                chunk = await self._response.content.readany()
            self.is_read = not chunk
            return chunk
        except _NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.timeout_error() from None
            self._broke = True
        return self._rescued() or await self.read_any()

    def _rescued(self) -> bytes:
        """Return the bytes that arrived before the connection broke.

        aiohttp puts the exception in front of the unread bytes.
        """
        content = self._response.content
        content.set_exception(None)  # type: ignore[arg-type]
        return content.read_nowait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave arriving bytes with the operating system for a while.

        Otherwise the event loop wakes up for every packet although nothing is read. If
        aiohttp has stopped reading, because its buffer is full, it stays so.
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
        """Read the rest after the last event, so that the connection can be reused."""
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
            failure = Failure(self._response.status, error)
            raise ApiRefused(failure_sentence(error), failure, self.request_id)
        raise UnreadableAnswer(SENTENCES["unreadable"][""])


def _request_id_of(response: aiohttp.ClientResponse) -> str:
    told = response.headers.get("x-request-id", "")
    return told if _REQUEST_ID.fullmatch(told) else ""


_MAX_ERROR_BODY = 64 * 1024
_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ServerTimeoutError,  # for connecting; aiohttp has no other limit
)
_WAITS_BEFORE_POST = (0.0, 0.5, 2.0)
_POST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)


class Connections:
    """Sends requests over the pooled sessions of one pipe."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._sessions = Sessions(idle_seconds)
        self._trust = Trust()
        self._later: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any],
        deadlines: Deadlines | None = None,
    ) -> AsyncIterator[HttpResponse]:
        """Send `payload` and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut or InvalidRequest. Leaving early
        closes the connection, which stops the work at the server.
        """
        body, limits = _json_body(payload), deadlines or Deadlines(Timeouts())
        async with self._sent(endpoint, path, body, limits) as response:
            if response.status >= 400:
                raise await _refusal(response, str(payload.get("model", "")))
            yield HttpResponse(response, limits)

    @asynccontextmanager
    async def get(
        self, endpoint: Endpoint, path: str, deadlines: Deadlines
    ) -> AsyncIterator[HttpResponse]:
        """Request `path` and lend the answer; raises the same errors as `post`.

        Redirections are not followed, because the key would be sent along.
        """
        async with self._sent(endpoint, path, None, deadlines) as response:
            if response.status != 200:
                raise await _refusal(response, "")
            yield HttpResponse(response, deadlines)

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
                response.close()  # has no effect after it was read to the end

    def post_later(self, endpoint: Endpoint, path: str) -> None:
        """Send an empty request in a separate task, for callers that cannot wait.

        It is tried three times; the result is not reported.
        """
        self.do_later(self._post_quietly(endpoint, path))

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that may last longer than its run, in a task that is referenced."""
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
    # A lone surrogate, for example from a broken copy, must not stop the request.
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    path: str,
    body: bytes | None,
    deadlines: Deadlines,
    tls: ssl.SSLContext | bool,
) -> aiohttp.ClientResponse:
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
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.timeout_error() from None
        raise ConnectionFailed(
            _network_sentence(error, endpoint.host),
            was_sent=not isinstance(error, _NEVER_CONNECTED),
        ) from None
    except ValueError:  # a line break in the key, a host that no name server knows
        problem = (
            "API_KEY, BASE_URL, PROXY or EXTRA_HEADERS holds characters that cannot be "
            "sent"
        )
        raise valve_error(problem, place=PIPE_VALVES) from None


def _network_sentence(error: Exception, host: str) -> str:
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
    body = b""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_ERROR_BODY:
                    break
        error = read_api_error(json.loads(body))
    except (*_NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: only the status is known
    status = response.status
    failure = parse_retry_headers(status, error, response.headers, unix_seconds())
    sentence = refusal_sentence(status, error, model)
    return ApiRefused(sentence, failure, _request_id_of(response))


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    ids: tuple[str, str],
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    """Return the bytes of a file in a container; raises the same errors as `get`.

    `ids` are those of the container and of the file. More than `most_bytes` is an
    UnreadableAnswer; the rest is not read.
    """
    container, file = (quote(part, safe="") for part in ids)
    path = f"/containers/{container}/files/{file}/content"
    found = bytearray()
    asked = connections.get(endpoint, path, deadlines)
    async with asked as answer, aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            found += chunk
            if len(found) > most_bytes:
                raise UnreadableAnswer(f"It has more than {most_bytes} bytes.")
    return bytes(found)
