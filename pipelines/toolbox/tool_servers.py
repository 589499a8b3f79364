"""The tools of all configured servers, lent to one run at a time.

The list of a server's tools is cached for some minutes, so that a chat without calls
connects to no server. Sessions are never shared, because they may know their user.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, NamedTuple, Protocol

from toolbox.mcp.client import McpClient
from toolbox.openapi.client import OpenApiClient
from toolbox.remote_tools import (
    RemoteError,
    RemoteTool,
    make_names_unique,
    run_with_timeout,
)
from toolbox.server_entries import (
    EntryReader,
    McpRow,
    OpenApiRow,
    RevealSecret,
    ServerEntries,
    ServerEntry,
)

_TOOLS_CACHE_SECONDS = 300.0
_FAILURE_CACHE_SECONDS = 30.0
"""A server that is down must not hold up every chat."""


_LIST_TOOLS_SECONDS = 15.0

_ServerKey = tuple[str, ServerEntry]


class _ToolServerClient(Protocol):
    """A server, for one run."""

    async def list_tools(self) -> tuple[Any, ...]:
        """Return what it offers; raises RemoteError."""

    def make_tool(self, offer: Any, /) -> RemoteTool:
        """Return one of its offers as a tool."""

    async def close(self) -> None:
        """Close what was opened."""


class ToolServerSettings(NamedTuple):
    """The servers in the valves; `allows_programs` is for MCP over stdio."""

    mcp: str = ""
    openapi: str = ""
    allows_programs: bool = False
    reveal: RevealSecret = str

    def read_entries(self) -> tuple[ServerEntries, ServerEntries]:
        """Return the MCP servers and the OpenAPI servers."""
        mcp = EntryReader("MCP_SERVERS_JSON", McpRow, self.reveal, self.allows_programs)
        openapi = EntryReader("OPENAPI_SERVERS_JSON", OpenApiRow, self.reveal)
        return mcp.read_entries(self.mcp), openapi.read_entries(self.openapi)


class AvailableTools(NamedTuple):
    """The tools of a run, and the problems of servers for an administrator."""

    tools: tuple[RemoteTool, ...] = ()
    problems: tuple[str, ...] = ()


class _CachedTools(NamedTuple):
    """What a server offered, or its problem; valid up to a time."""

    expires_at: float
    tools: tuple[Any, ...] = ()
    problem: str = ""


class ToolServers:
    """Lends tools; `close` waits until all sessions are closed."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """Connect to nothing yet."""
        self._now = now
        self._cache: dict[_ServerKey, _CachedTools] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open_tools(
        self, named: ToolServerSettings
    ) -> AsyncGenerator[AvailableTools, None]:
        """Lend the tools of a run; its sessions are closed in the background."""
        mcp, openapi = named.read_entries()
        servers: dict[_ServerKey, _ToolServerClient] = {
            **{("mcp", entry): McpClient(entry) for entry in mcp.entries},
            **{("openapi", entry): OpenApiClient(entry) for entry in openapi.entries},
        }
        try:
            found = await asyncio.gather(
                *(self._list_tools(key, server) for key, server in servers.items())
            )
            tools = [
                server.make_tool(offer)
                for server, one in zip(servers.values(), found, strict=True)
                for offer in one.tools
            ]
            failed = [one.problem for one in found if one.problem]
            complaints = (*mcp.problems, *openapi.problems, *failed)
            yield AvailableTools(make_names_unique(tools), complaints)
        finally:
            for server in servers.values():
                self._close_in_background(server)

    async def close(self) -> None:
        """Wait until the sessions of earlier runs are closed."""
        if self._closing:
            await asyncio.wait(self._closing)

    async def _list_tools(
        self, key: _ServerKey, server: _ToolServerClient
    ) -> _CachedTools:
        now = self._now()
        self._cache = {k: r for k, r in self._cache.items() if r.expires_at > now}
        if key not in self._cache:
            found = await _query_server(server, f"The server {key[1].label}", now)
            self._cache[key] = found
            return found
        return self._cache[key]

    def _close_in_background(self, server: _ToolServerClient) -> None:
        """Close in a task of its own: a run that was stopped cannot wait."""
        closing = asyncio.create_task(server.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _query_server(
    server: _ToolServerClient, name: str, now: float
) -> _CachedTools:
    try:
        offers = await run_with_timeout(server.list_tools(), _LIST_TOOLS_SECONDS, name)
    except RemoteError as failed:
        return _CachedTools(now + _FAILURE_CACHE_SECONDS, problem=str(failed))
    return _CachedTools(now + _TOOLS_CACHE_SECONDS, offers)
