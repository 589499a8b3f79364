"""The tools of all servers that an administrator named, lent to one run at a time.

What a server offers is remembered for some minutes, so that a chat which calls nothing
asks nobody; sessions are never shared, because they may know their user.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from toolbox.mcp import McpServer
from toolbox.openapi import OpenApiServer
from toolbox.remote_tools import (
    RemoteFailed,
    RemoteTool,
    in_time,
    with_own_names,
)
from toolbox.server_entries import (
    EntryReading,
    Reveal,
    ServerEntries,
    ServerEntry,
)
from toolbox.server_rows import McpRow, OpenApiRow

_FRESH_SECONDS = 300.0
_FAILED_SECONDS = 30.0
"""A server that is down must not hold up every chat."""


_LISTING_SECONDS = 15.0

_Key = tuple[str, ServerEntry]


class RemoteServer(Protocol):
    """A server, for one run."""

    async def offered(self) -> tuple[Any, ...]:
        """Return what it offers; raises RemoteFailed."""

    def tool(self, offer: Any, /) -> RemoteTool:
        """Return what it offers as a tool."""

    async def close(self) -> None:
        """End what was opened."""


@dataclass(frozen=True, slots=True)
class NamedServers:
    """The servers as they stand in the valves; `allows_programs` is for MCP's stdio."""

    mcp: str = ""
    openapi: str = ""
    allows_programs: bool = False
    reveal: Reveal = str

    def entries(self) -> tuple[ServerEntries, ServerEntries]:
        """Return the MCP servers, the others."""
        mcp = EntryReading(
            "MCP_SERVERS_JSON", McpRow, self.reveal, self.allows_programs
        )
        openapi = EntryReading("OPENAPI_SERVERS_JSON", OpenApiRow, self.reveal)
        return mcp.read(self.mcp), openapi.read(self.openapi)


@dataclass(frozen=True, slots=True)
class LentTools:
    """The tools of a run, with what an administrator should know of the others."""

    tools: tuple[RemoteTool, ...] = ()
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What a server offered, or why it did not; up to a time."""

    until: float
    offers: tuple[Any, ...] = ()
    complaint: str = ""


class ToolServers:
    """Lends tools; `close` waits until nothing is left of it."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """Ask nobody yet."""
        self._now = now
        self._remembered: dict[_Key, _Remembered] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lend(self, named: NamedServers) -> AsyncGenerator[LentTools, None]:
        """Lend the tools of a run; at its end the servers are told without waiting."""
        mcp, openapi = named.entries()
        servers: dict[_Key, RemoteServer] = {
            **{("mcp", entry): McpServer(entry) for entry in mcp.entries},
            **{("openapi", entry): OpenApiServer(entry) for entry in openapi.entries},
        }
        try:
            found = await asyncio.gather(
                *(self._offered(key, server) for key, server in servers.items())
            )
            tools = [
                server.tool(offer)
                for server, one in zip(servers.values(), found, strict=True)
                for offer in one.offers
            ]
            failed = [one.complaint for one in found if one.complaint]
            complaints = (*mcp.complaints, *openapi.complaints, *failed)
            yield LentTools(with_own_names(tools), complaints)
        finally:
            for server in servers.values():
                self._close_later(server)

    async def close(self) -> None:
        """Wait until the servers of earlier runs are told."""
        if self._closing:
            await asyncio.wait(self._closing)

    async def _offered(self, key: _Key, server: RemoteServer) -> _Remembered:
        """Return what a server offers; ask it only when nothing is remembered."""
        now = self._now()
        self._remembered = {k: r for k, r in self._remembered.items() if r.until > now}
        if key not in self._remembered:
            found = await _asked_server(server, f"The server {key[1].label}", now)
            self._remembered[key] = found
            return found
        return self._remembered[key]

    def _close_later(self, server: RemoteServer) -> None:
        """Close in a task of its own, for a run that was stopped cannot wait."""
        closing = asyncio.create_task(server.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _asked_server(server: RemoteServer, name: str, now: float) -> _Remembered:
    try:
        offers = await in_time(server.offered(), _LISTING_SECONDS, name)
    except RemoteFailed as failed:
        return _Remembered(now + _FAILED_SECONDS, complaint=str(failed))
    return _Remembered(now + _FRESH_SECONDS, offers)
