"""The only module that opens a connection.

One pooled session serves all runs of an event loop: it is opened by the first run and
closed when none was under way for a while. Errors of aiohttp become ours here, once.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import aiohttp

from openai_responses.endings import refusal_sentence
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    UnreadableAnswer,
)
from openai_responses.events import read_api_error

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 300.0
"""Reasoning at high effort is silent for minutes; there is no limit on the whole."""
_IDLE_SECONDS = 60.0
"""Less than the keep-alive of OpenAI's front end, so that we close first."""
_DRAIN_SECONDS = 1.0
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; fewer would queue busy servers."""
_MAX_ERROR_BODY = 64 * 1024

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and with which key.

    Neither is in a `repr`: an address can hold a password.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)

    def url(self, path: str) -> str:
        """Return the address of `path`; raises InvalidRequest for an unusable base."""
        return normalized_base_url(self.base_url) + path

    @property
    def host(self) -> str:
        """The server's name; raises InvalidRequest for an unusable base."""
        return urlsplit(normalized_base_url(self.base_url)).hostname or ""


def normalized_base_url(text: str) -> str:
    """Return `text` as the address that paths are appended to.

    Takes what people paste: with or without `/v1`, with a slash at the end, or with
    the `/responses` of the endpoint itself.
    """
    parts = _url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise InvalidRequest(
            "BASE_URL is not an http or https address. An administrator has to "
            f"correct it in the valves of this pipe, for example {DEFAULT_BASE_URL}."
        )
    if "@" in parts.netloc:
        raise InvalidRequest(
            "BASE_URL holds a user name or a password, which cannot be sent beside "
            "API_KEY. An administrator has to take it out in the valves of this pipe."
        )
    path = parts.path.rstrip("/").removesuffix("/responses").rstrip("/") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else."""
    try:
        parts = urlsplit(text)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address, a port that is no number
        return None
    return parts if sound and parts.scheme in ("http", "https") else None


class Answer:
    """A response whose status is fine and whose body is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        """Wrap `response`; whoever opened it closes it."""
        self._response = response

    @property
    def is_stream(self) -> bool:
        """Say whether the body is an event stream."""
        return self._response.content_type == "text/event-stream"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _NETWORK_ERRORS:
            raise ConnectionFailed(
                "The connection to the model's server broke."
            ) from None

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
        try:
            wire = json.loads(await self._response.read())
        except _NETWORK_ERRORS:
            raise ConnectionFailed(
                "The connection to the model's server broke."
            ) from None
        except (ValueError, RecursionError):
            wire = None
        if isinstance(wire, dict) and isinstance(wire.get("output"), list):
            return wire
        if isinstance(wire, dict) and wire.get("error"):
            error = read_api_error(wire)
            raise ApiRefused(refusal_sentence(500, error, "this model"), 200, error)
        raise UnreadableAnswer(
            "The server at BASE_URL answered, but not as the Responses API does. "
            "An administrator has to check BASE_URL in the valves of this pipe."
        )


class _Pool:
    """The session of one event loop, lent to the runs that are under way."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if need be; the last return starts the clock."""
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
                self._timer = loop.call_later(self._idle_seconds, self._close_later)

    async def close(self) -> None:
        """Close the session now, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _close_later(self) -> None:
        session, self._session = self._session, None  # at once: no run may borrow it
        if session is None:
            return
        # A task, held until it is done: a connector closed straight from a timer
        # warns "never awaited" on aiohttp 3.14.
        task = asyncio.get_running_loop().create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Connections:
    """The sessions of one pipe, one for each event loop that runs it."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._idle_seconds = idle_seconds
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    @asynccontextmanager
    async def post(
        self, endpoint: Endpoint, path: str, payload: dict[str, Any]
    ) -> AsyncIterator[Answer]:
        """Send `payload` and lend the answer.

        Raises ApiRefused, ConnectionFailed or InvalidRequest; leaving early closes
        the connection, and with it the work upstream.
        """
        url = endpoint.url(path)
        with self._pool().lend() as session:
            response = await _send(session, endpoint, url, payload)
            try:
                if response.status >= 400:
                    raise await _refusal(response, str(payload.get("model", "")))
                yield Answer(response)
            finally:
                response.close()  # nothing happens when it was read to its end

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        return self._pools.setdefault(loop, _Pool(self._idle_seconds))


def _new_session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS
    )
    connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS)
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    url: str,
    payload: dict[str, Any],
) -> aiohttp.ClientResponse:
    """Return the response once its head is there."""
    # A lone surrogate, from a broken copy and paste, must not stop the request.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")
    headers = {
        "Authorization": f"Bearer {endpoint.api_key.strip()}",
        "Content-Type": "application/json",
    }
    try:
        return await session.post(url, data=body, headers=headers)
    except aiohttp.ClientSSLError:
        raise ConnectionFailed(
            f"The certificate of {endpoint.host} is not trusted here. "
            "An administrator has to check BASE_URL in the valves of this pipe."
        ) from None
    except _NETWORK_ERRORS:
        raise ConnectionFailed(
            f"The model's server at {endpoint.host} cannot be reached. Try again; if "
            "it lasts, an administrator has to check BASE_URL in the valves."
        ) from None
    except ValueError:  # a line break in the key, a host that no name server knows
        raise InvalidRequest(
            "API_KEY or BASE_URL holds characters that cannot be sent. "
            "An administrator has to correct it in the valves of this pipe."
        ) from None


async def _refusal(response: aiohttp.ClientResponse, model: str) -> ApiRefused:
    """Return the error that a response with a bad status stands for."""
    try:
        body = await response.content.read(_MAX_ERROR_BODY)
        error = read_api_error(json.loads(body))
    except (*_NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: the status says it
    return ApiRefused(
        refusal_sentence(response.status, error, model), response.status, error
    )
