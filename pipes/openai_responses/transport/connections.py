"""Pooled HTTP sessions; the only module that opens a connection.

Each event loop has one session. The first run that borrows it opens it. It is closed
when no run has used it for a while, or when its owner is gone: a host that replaces a
client does not tell the old one. Errors of aiohttp become errors of this package here.
"""

import asyncio
import inspect
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp

from openai_responses.clock import unix_seconds
from openai_responses.endings import (
    COMPRESSED,
    UNREADABLE,
    ending_of_failure,
    ending_of_refusal,
    unreadable_answer,
)
from openai_responses.endpoint import Endpoint, proxy_for
from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    ConnectionFailed,
    Failure,
    InvalidRequest,
    InvalidSetting,
    ResponsesError,
    SettingFault,
    read_api_error,
    read_error_body,
)
from openai_responses.json_input import (
    FINITE_NUMBERS,
    MAX_JSON_BYTES,
    JsonObject,
    as_mapping,
    as_seconds,
    compact_json,
    json_weight,
    load_json,
)
from openai_responses.recent_texts import RecentTexts
from openai_responses.transport.deadlines import Deadlines, Timeouts
from openai_responses.transport.stream import find_error, refuse_completion
from openai_responses.transport.unpacking import Unpacker, UnpackingError
from openai_responses.transport.unreachable import unreachable_error
from openai_responses.waits import read_duration, seconds_until

_KEEPALIVE_SECONDS = 180.0
"""How long a connection waits for the next question, because a new one costs two round
trips. Cloudflare, in front of OpenAI, closes an idle connection after 400 seconds;
gateways of Azure and Amazon forget one without a word after 240 and 350."""
_IDLE_SECONDS = 190.0
"""After that, an unused session has no connection left."""
_NO_LIMIT = 0
"""Of connections: a chat holds one while it streams, so whoever had the most chats would
let all others wait. The host holds a connection for each of them, too."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up delays the first words."""


class _Pool:
    """The session of one event loop, lent to the active runs."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self.lent = 0
        """To how many requests."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if needed; the last return starts the idle time."""
        if self._timer is not None:
            self._timer.cancel()
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=_NO_LIMIT,
                keepalive_timeout=_KEEPALIVE_SECONDS,
                ttl_dns_cache=_DNS_SECONDS,
            )
            self._session = new_session(connector)
        self.lent += 1
        try:
            yield self._session
        finally:
            self.lent -= 1
            if self.lent == 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_IDLE_SECONDS, self.close_later)

    def forget_addresses(self) -> None:
        """Look names up again from now on."""
        connector = self._session and self._session.connector
        if isinstance(connector, aiohttp.TCPConnector):
            connector.clear_dns_cache()

    def close_later(self) -> None:
        """Close the session, which no run can borrow from now on, in a task.

        Closing a connector from a timer itself warns "never awaited" on aiohttp 3.14.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self.start(self._session.close())
            self._session = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task that is referenced until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the session when all tasks are done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        self.close_later()
        await asyncio.gather(*self._tasks)


_MAX_HEADER_LINE = 64 * 1024
_MAX_HEADERS = 500
"""A proxy's content-security policy alone can have 12 kB; aiohttp takes lines of 8 kB,
and 128 of them (3.14.5)."""
_HEADER_LIMITS = {
    "max_line_size": _MAX_HEADER_LINE,
    "max_field_size": _MAX_HEADER_LINE,
    "max_headers": _MAX_HEADERS,
}


def new_session(
    connector: aiohttp.BaseConnector | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
) -> aiohttp.ClientSession:
    """Return a session that reads no settings of the system and keeps nothing.

    Proxies of the environment are looked up by this package, because trust_env would
    also send the contents of a .netrc file. Cookies that a gateway sets for one user
    must not be sent for another.
    """
    known = inspect.signature(aiohttp.ClientSession).parameters
    # aiohttp 3.9 counts no headers.
    limits: Any = {
        name: _HEADER_LIMITS[name] for name in _HEADER_LIMITS if name in known
    }
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout or aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        # aiohttp inflates without a limit: 1.5 MB of gzip became 1.5 GB (tried with
        # 3.14.5). HttpResponse unpacks.
        auto_decompress=False,
        **limits,
    )


_DRAIN_SECONDS = 1.0
"""For the body of a refusal, or the rest of an answer that has ended: users wait."""
_MAX_ERROR_BODY = 1024 * 1024
"""Bytes. A longer body of a refusal is not used; of such a rest the beginning is kept.
Servers repeat what they refuse, as FastAPI does in its `detail`."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Of one response, by `json_weight`: four times 128,000 tokens with an event for each."""

_MAX_LABEL = 100
"""Characters of the type of a body that are read."""
_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word, because the log shows the id."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)
_BROKE = "The connection to the model's server broke."


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How a line of an event stream begins; the last is a comment."""
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"
"""A byte-order mark and white space: neither JSON nor an event stream needs them."""


class HttpResponse:
    """A response with a good status whose body is still arriving."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        self._response = response
        self._deadlines = deadlines
        encodings = response.headers.getall("Content-Encoding", [])
        self._unpacker = Unpacker(",".join(encodings))
        self._pieces: Iterator[bytes] = iter(())
        """The pieces of the text that arrived and were not read yet."""
        self._begin = b""
        """What `is_stream` has read."""
        self._arrived = 0
        """How many bytes arrived, packed as they were."""
        self._has_arrived = False
        """Whether that is the whole body."""
        self._has_text = False
        self._broke = False
        self.is_read = False
        self.request_id = response.headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(self.request_id):
            self.request_id = ""

    async def is_stream(self) -> bool:
        """Say whether the body is an event stream, by its first bytes.

        Gateways label streams as `text/plain`, `application/json` or not at all, and
        errors as streams. Only a body that begins like neither is what its label says.
        """
        begin = b""
        size = 0
        while any(field.startswith(begin) for field in _FIELDS):
            text = await self.read_any()
            size += len(text)
            if size > MAX_JSON_BYTES:
                raise AnswerTooLarge
            begin = (begin + text).lstrip(_BEFORE_TEXT)
            if not text:
                break
        self._begin = begin
        self.is_read = self.is_read and not begin  # what was read ahead still comes
        if begin.startswith(_FIELDS):
            return True
        # aiohttp reads the label as that of a mail: 60 kB of quotes took 28 s (3.14.5).
        label = self._response.headers.get("Content-Type", "")[:_MAX_LABEL]
        is_labeled = label.partition(";")[0].strip().lower() == "text/event-stream"
        return is_labeled and not begin.startswith((b"{", b"[", b"<"))

    async def read_any(self) -> bytes:
        """Return the next piece of the body that has arrived; empty at its end."""
        text = self._begin
        self._begin = b""
        if not text:
            text = next(self._pieces, b"")
            if text:  # of a packed chunk, which can have thousands: others run, too
                await asyncio.sleep(0)
        while not (text or self._has_arrived):
            self._pieces = self._unpack(await self._receive_chunk())
            text = next(self._pieces, b"")
        self.is_read = not text
        return text

    async def _receive_chunk(self) -> bytes:
        """Return the bytes that have arrived; empty at the end of the body.

        aiohttp puts the exception in front of the bytes that arrived before it.
        """
        content = self._response.content
        chunk = b""
        if not self._broke:
            scope = self._deadlines.scope()
            try:
                async with scope:
                    chunk = await content.readany()
                self._has_arrived = not chunk
            except _NETWORK_ERRORS:
                if scope.expired():
                    raise self._deadlines.timeout_error() from None
                self._broke = True
                # Without the exception the reader gives out what had arrived.
                content.set_exception(None)  # type: ignore[arg-type]
                chunk = content.read_nowait()
        if self._broke and not chunk:
            raise ConnectionFailed(_BROKE)
        self._arrived += len(chunk)
        if self._arrived > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        self._deadlines.bytes_arrived()
        return chunk

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the pieces of the text that a chunk has; none is empty."""
        try:
            for text in self._unpacker.feed(chunk):
                self._has_text = True
                yield text
        except UnpackingError:
            if self._has_text:  # damaged on its way
                raise ConnectionFailed(_BROKE) from None
            raise unreadable_answer(COMPRESSED) from None

    async def read_all(self, most_bytes: int) -> bytearray:
        """Return the body; raises AnswerTooLarge for more than `most_bytes`.

        A proxy may cut a packed body and end it in good order: half a file is none.
        """
        body = await self._read_body(most_bytes)
        if not self._unpacker.has_ended:
            raise ConnectionFailed(_BROKE)
        return body

    async def _read_body(self, most_bytes: int) -> bytearray:
        body = bytearray()
        chunk = await self.read_any()
        while chunk:
            body += chunk
            if len(body) > most_bytes:
                raise AnswerTooLarge
            chunk = await self.read_any()
        return body

    async def read_json(self, most_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the body as JSON."""
        body = await self._read_body(most_bytes)
        if json_weight(body) > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        try:
            return load_json(body, FINITE_NUMBERS)
        except ValueError:
            # A proxy may cut a body and state the length of what is left.
            is_half = re.match(rb'\s*{\s*"', body) and body.rstrip()[-1:] != b"}"
            if is_half or not self._unpacker.has_ended:  # what is JSON is whole
                raise ConnectionFailed(_BROKE) from None
            error = unreadable_answer(UNREADABLE)
            if not body.strip():  # maybe a proxy whose server went away: it may pass
                error.failure = Failure()
            raise error from None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave arriving bytes with the operating system for a while.

        Otherwise the event loop wakes up for every packet although nothing is read. If
        aiohttp has stopped reading, because its buffer is full, it stays so. A body
        that has ended has no connection.
        """
        connection = self._response.connection
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

    async def drain(self) -> bytes:
        """Read the rest after the last event, so that the connection can be reused.

        Returns its beginning: a refused stream may tell its reason there.
        """
        rest = bytearray()
        with suppress(TimeoutError, ResponsesError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self.is_read:
                    text = await self.read_any()
                    if len(rest) < _MAX_ERROR_BODY:
                        rest += text
        return bytes(rest)

    async def response_object(self) -> JsonObject:
        """Return the body as the API's response object."""
        wire = as_mapping(await self.read_json())
        if isinstance(wire.get("output"), list):
            return wire
        error = find_error(wire)
        # Gateways of a portal say with their own fields that something failed, and why.
        has_failed = wire.get("success") is False or wire.get("code") not in _GOOD_CODES
        if error is None and has_failed:
            own_error = read_api_error(wire)
            error = own_error if own_error.message else None
        if error is not None:
            ending = ending_of_failure("failed", error)
            failure = Failure(self._response.status, error)
            raise ApiRefused(ending.message, failure, self.request_id, ending.fault)
        refuse_completion(wire)
        raise unreadable_answer(UNREADABLE)

    async def refusal(self) -> ApiRefused:
        """Return the error of a response with a bad status, with or without a body."""
        status = self._response.status
        headers = self._response.headers
        error = ApiError()
        if status >= 400:
            with suppress(TimeoutError, ResponsesError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    error = read_error_body(await self._read_body(_MAX_ERROR_BODY))
        # A gateway may call its own trouble what the server behind it refused.
        if status >= _SERVER_ERRORS and error.is_relayed and error.status:
            status = error.status
        should_retry = _SHOULD_RETRY.get(headers.get("x-should-retry", "").lower())
        retry_after = _wanted_wait(status, headers, error)
        if retry_after is not None:  # people are told it, too
            error = error._replace(reset=retry_after)
        failure = Failure(status, error, retry_after, should_retry)
        ending = ending_of_refusal(status, error)
        return ApiRefused(ending.message, failure, self.request_id, ending.fault)


_SHOULD_RETRY = {"true": True, "false": False}
_UNITS_OF_A_SECOND = {"retry-after-ms": 1000, "retry-after": 1}
"""The headers that state a wait as a number, the more exact one first."""


def _wanted_wait(
    status: int, headers: Mapping[str, str], error: ApiError
) -> float | None:
    """Return the seconds that the server wants us to wait; None if it does not say.

    Its headers name a number or a date, its error a time, and those of a rate limit when
    the limit is reset.
    """
    for name, units in _UNITS_OF_A_SECOND.items():
        seconds = as_seconds(headers.get(name))
        if seconds is not None:
            return seconds / units
    # A number that no date has is an OverflowError.
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        if date.tzinfo is None:  # Python would take it for this server's own time
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - unix_seconds())
    wait = error.wait
    if wait is not None or status != _TOO_MANY_REQUESTS:
        return wait
    # OpenAI's headers ("Rate limits in headers"): the reset of a limit of which
    # something remains tells when all of it is there again, which no one has to wait for.
    waits: list[float] = []
    for limit in ("requests", "tokens"):
        remaining = headers.get(f"x-ratelimit-remaining-{limit}", "0")
        reset_in = read_duration(headers.get(f"x-ratelimit-reset-{limit}", ""))
        if remaining == "0" and reset_in:
            waits.append(reset_in)
    # OpenRouter's own, and of others; if it is relative, it fits as well.
    reset = as_seconds(headers.get("x-ratelimit-reset"))
    remaining = headers.get("x-ratelimit-remaining", "0")
    if remaining == "0" and reset is not None:
        waits.append(seconds_until(reset))
    return max(waits, default=None)


_STATUS_OK = 200
_GOOD_CODES = (None, "", 0, "0", _STATUS_OK, "200")
_FIRST_BAD_STATUS = 300
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500

_MAX_CERTIFICATES = 8
"""Files of certificates that are remembered; a client usually has one."""


class EncodedBody(NamedTuple):
    """A body that is no JSON object, and its media type."""

    content: bytes
    media_type: str


class Connections:
    """Sends requests; has one session for each event loop."""

    def __init__(self) -> None:
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._certificates: dict[str, tuple[int, ssl.SSLContext]] = {}
        """By the path of a file: when it was changed, in nanoseconds, and what was read."""
        self.took = RecentTexts()
        """Names of requests that servers answered, but for their chats."""

    def __del__(self) -> None:
        """Close open sessions: the last run that referenced this object has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def _pool(self) -> _Pool:
        """Return the pool of the running loop; drop those of closed loops."""
        running = asyncio.get_running_loop()
        if running not in self._pools:
            for loop in list(self._pools):
                if loop.is_closed():
                    self._pools.pop(loop, None)  # other threads do the same
            self._pools[running] = _Pool()
        return self._pools[running]

    @property
    def open_requests(self) -> int:
        """How many requests of the running loop are under way."""
        return self._pool().lent

    @asynccontextmanager
    async def request(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any] | EncodedBody | None,
        deadlines: Deadlines,
    ) -> AsyncIterator[HttpResponse]:
        """Send `payload`, or a GET without one, and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut, UnreadableAnswer or
        InvalidRequest. Leaving early closes the connection, which stops the work at the
        server; to close a response that was read to its end has no effect. A
        redirection is a refusal, because the key would be sent along.
        """
        headers = endpoint.headers()
        method = "POST"
        body: bytes | bytearray | None = None
        if payload is None:
            method = "GET"
        elif isinstance(payload, EncodedBody):
            body = payload.content
            headers["Content-Type"] = payload.media_type
        else:
            body = await _encode(payload)
        url = endpoint.url(path)
        pool = self._pool()
        with pool.lend() as session:
            proxy = proxy_for(endpoint, url)
            sent = session.request(
                method,
                url,
                # aiohttp would send `api-key` and a gateway's own header to another
                # origin; it drops `Authorization` alone (client.py, 3.14.5).
                allow_redirects=False,
                data=body,
                headers=headers,
                ssl=self._ssl_context(endpoint),
                proxy=proxy,
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
            try:
                received = await _receive(sent, endpoint, proxy, deadlines)
            except ConnectionFailed as error:
                if not error.was_sent:  # by now the name may stand for another address
                    pool.forget_addresses()
                raise
            with closing(received) as response:
                body = None  # a large one must not stay while the answer streams
                answer = HttpResponse(response, deadlines)
                if response.status >= _FIRST_BAD_STATUS:
                    raise await answer.refusal()
                if method == "GET" and response.status != _STATUS_OK:
                    raise unreadable_answer(UNREADABLE)  # it has nothing to return
                yield answer

    def _ssl_context(self, endpoint: Endpoint) -> ssl.SSLContext | bool:
        """Return the certificates to trust: True for those of the system, False for all.

        A file of certificates has one context, because connections are reused only for
        the same. A file that was changed replaces what was read of it.
        """
        path = endpoint.ca_bundle
        if not (endpoint.verify_ssl and path):
            return endpoint.verify_ssl
        try:
            changed = Path(path).stat().st_mtime_ns
            known, context = self._certificates.get(path, (None, None))
            if context is None or known != changed:
                context = ssl.create_default_context(cafile=path)
                if len(self._certificates) >= _MAX_CERTIFICATES:
                    self._certificates.clear()
                self._certificates[path] = (changed, context)
        except (OSError, ValueError):
            raise InvalidSetting(
                "ca_bundle", "The file of certificates to trust cannot be read."
            ) from None
        return context

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that may last longer than its run."""
        self._pool().start(work)

    async def post_quietly(self, endpoint: Endpoint, path: str) -> None:
        """Send an empty request, up to three times; ignore the result.

        No one waits for it, and a cancellation that does not arrive costs money.
        """
        for wait in (0.0, 0.5, 2.0):
            await asyncio.sleep(wait)
            limits = Deadlines(Timeouts(connect=10, first_event=20))
            try:
                async with self.request(endpoint, path, {}, limits):
                    return
            except ResponsesError as error:
                # Another attempt would be answered alike. 0: there was no answer.
                is_final = 0 < error.status < _SERVER_ERRORS
                if is_final and error.status != _TOO_MANY_REQUESTS:
                    return

    async def close(self) -> None:
        """Close the session of the running loop, after the work of `do_later`."""
        await self._pool().close()


_ITEMS_AT_ONCE = 1000
"""Items that are encoded before others get the event loop."""


async def _encode(payload: JsonObject) -> bytearray:
    """Return a request as JSON; others run between the pieces of a long input.

    An empty request has no body.
    """
    if not payload:
        return bytearray()
    # `input` comes before all fields that may hold such a key (`ResponsesRequest`).
    opening = b'"input":['
    whole = _json_bytes({**payload, "input": []})
    end = whole.index(opening) + len(opening)
    body = bytearray(whole[:end])
    items = payload["input"]
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        if start > 0:
            await asyncio.sleep(0)
            body += b","
        some = items[start : start + _ITEMS_AT_ONCE]
        body += memoryview(_json_bytes(some))[1:-1]  # without its brackets
    body += whole[end:]
    return body


def _json_bytes(value: object) -> bytes:
    """Return a value as JSON; a lone surrogate, as of a broken copy, becomes `?`."""
    try:
        return compact_json(value)
    except ValueError:
        return _JSON.encode(value).encode(errors="replace")


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


async def _receive(
    answer: Awaitable[aiohttp.ClientResponse],
    endpoint: Endpoint,
    proxy: str | None,
    deadlines: Deadlines,
) -> aiohttp.ClientResponse:
    """Return the response, or raise our error for aiohttp's; `proxy` is on the way.

    A line break in the key or an odd host is a ValueError there.
    """
    scope = deadlines.scope()
    try:
        async with scope:
            return await answer
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.timeout_error() from None
        raise unreachable_error(error, endpoint, proxy) from None
    except ValueError:
        raise InvalidRequest(
            "The key, the address, the proxy or a header of the model's server contains "
            "an invalid character.",
            SettingFault(("api_key", "base_url", "proxy", "extra_headers")),
        ) from None


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    container_id: str,
    file_id: str,
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    """Return the bytes of a file in a container; raises the same errors as `request`.

    More than `most_bytes` is an AnswerTooLarge; the rest is not read.
    """
    # Each id is one step of the path, whatever a server has put into it.
    ids = [quote(id, safe="", errors="replace") for id in (container_id, file_id)]
    path = "/containers/{}/files/{}/content".format(*ids)
    async with connections.request(endpoint, path, None, deadlines) as answer:
        return bytes(await answer.read_all(most_bytes))
