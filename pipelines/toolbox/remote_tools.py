"""What MCP and OpenAPI clients share: tools, limits, connections.

A connection follows no redirect, stores no cookie and uses no proxy. It accepts no
compressed body, because a few compressed bytes can expand to gigabytes.
"""

import asyncio
import json
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

import aiohttp

from openai_responses.json_input import JsonTooLarge, json_size

MAX_TOOLS_PER_SERVER = 128
"""Of one server; more would only confuse a model."""
MAX_TOOL_NAME_CHARACTERS = 64
MAX_REMOTE_BYTES = 8 * 1024 * 1024
"""Of one answer; a file of 5 MB, which is the most that is shown, fits in as base64."""

MAX_SCHEMA_SIZE = 100_000
"""What is read of a schema; `json_size` counts more than characters."""
_MAX_SCHEMA_CHARACTERS = 50_000
MAX_DESCRIPTION_CHARACTERS = 4_000
_MIN_SECRET_CHARACTERS = 6
_INVALID_TOOL_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")

_ExecuteRemoteTool = Callable[[dict[str, Any]], Awaitable[Any]]
_Response = TypeVar("_Response")


class RemoteError(Exception):
    """A server failed; the text contains no secret."""


class RemoteTimeout(RemoteError):
    """The server took too long."""


class RemoteToolSpec(NamedTuple):
    """A server's description of a tool; `args` is the schema of its arguments.

    `only_reads` says that it changes nothing.
    """

    own_name: str
    description: str
    args: Mapping[str, Any]
    only_reads: bool = False


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server, in the agent's form."""

    name: str
    description: str
    args: Mapping[str, Any]
    run: _ExecuteRemoteTool = field(repr=False)
    only_reads: bool = False

    async def execute(self, args: dict[str, Any]) -> Any:
        """Let the server run it; raises RemoteError."""
        return await self.run(args)


async def run_with_timeout(
    work: Awaitable[_Response], seconds: float, name: str
) -> _Response:
    """Return the result of `work` in time; raises RemoteTimeout."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise RemoteTimeout(f"{name} did not answer within {seconds:g} s.") from None


def make_remote_tool(
    label: str, spec: RemoteToolSpec, run: _ExecuteRemoteTool
) -> RemoteTool:
    """Return a tool named after its server and itself."""
    name = _INVALID_TOOL_NAME_CHARACTER.sub("_", f"{label}_{spec.own_name}")[
        :MAX_TOOL_NAME_CHARACTERS
    ]
    description = truncate_text(spec.description, MAX_DESCRIPTION_CHARACTERS)
    return RemoteTool(name, description, spec.args, run, spec.only_reads)


def is_tool_allowed(allowed: Iterable[str] | None, name: str) -> bool:
    """Say whether a name matches the allowed patterns; None allows all."""
    return allowed is None or any(fnmatchcase(name, pattern) for pattern in allowed)


def build_error_result(text: str) -> dict[str, Any]:
    """Return a failed call in MCP's form."""
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def check_schema_size(schema: object) -> None:
    """Raise JsonTooLarge for a schema too large to be sent with every request."""
    json_size(schema, MAX_SCHEMA_SIZE)
    if len(json.dumps(schema, default=str)) > _MAX_SCHEMA_CHARACTERS:
        raise JsonTooLarge


class LeftOutTools:
    """Counts the tools of a server that are not offered."""

    def __init__(self) -> None:
        """Start with none; `extra` are those over the limit of a server."""
        self.unusable = self.extra = 0

    def describe(self, server: str) -> str:
        """Return a line for the log; empty if there are none."""
        if not (self.unusable or self.extra):
            return ""
        return (
            f"{server} has tools that are not offered: {self.unusable} cannot be "
            f"used, at least {self.extra} are over the limit of {MAX_TOOLS_PER_SERVER}."
        )


def truncate_text(text: str, characters: int) -> str:
    """Return the beginning of a text that is longer than `characters`."""
    return text if len(text) <= characters else f"{text[:characters]} [...]"


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text of a server without the secrets that we sent to it.

    Secrets of fewer than six characters would be found in ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_CHARACTERS:
            text = text.replace(secret, "[redacted]")
            text = text.replace(json.dumps(secret)[1:-1], "[redacted]")
    return text


_REMOTE_CONNECT_SECONDS = 10.0


class RemoteConnection:
    """The connections of one run to one server; `name` and `valve` are for error texts."""

    def __init__(self, name: str, valve: str) -> None:
        """Open nothing yet."""
        self._name = name
        self._valve = valve
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request without a time limit, lend its response; raises RemoteError."""
        try:
            response = await self._open_session().request(
                method,
                url,
                headers={"Accept-Encoding": "identity", **headers},
                data=body,
                allow_redirects=False,
            )
            try:
                if 300 <= response.status < 400:
                    raise RemoteError(
                        f"{self._name} redirects requests (HTTP {response.status}), "
                        "which is not followed, because keys would be sent along. An "
                        f"administrator has to check its address in {self._valve}."
                    )
                yield response
            finally:
                response.close()  # nothing happens when it was read to its end
        except (aiohttp.ClientError, OSError, ValueError):
            raise RemoteError(
                f"{self._name} cannot be reached, or its answer broke off."
            ) from None

    async def read_chunks(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[bytes, None]:
        """Yield a body as it comes; raises RemoteError if it is too long."""
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RemoteError(f"{self._name} sent a compressed answer, unasked.")
        left = MAX_REMOTE_BYTES
        async for piece in response.content.iter_any():
            left -= len(piece)
            if left < 0:
                most = f"{MAX_REMOTE_BYTES} bytes"
                raise RemoteError(f"{self._name} sent more than {most}.")
            yield piece

    async def read_body(
        self, response: aiohttp.ClientResponse, most: int = MAX_REMOTE_BYTES
    ) -> bytes:
        """Return a body, or more than `most` of a longer one; raises RemoteError."""
        taken = bytearray()
        async with aclosing(self.read_chunks(response)) as pieces:
            async for piece in pieces:
                taken += piece
                if len(taken) > most:
                    break
        return bytes(taken)

    async def close(self) -> None:
        """Close the session."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_REMOTE_CONNECT_SECONDS
                ),
                auto_decompress=False,
            )
        return self._session
