"""The tools of all configured servers, lent to one run at a time.

The list of a server's tools is cached for some minutes, so that a chat without calls
connects to no server. Sessions are never shared, because they may know their user.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple

from openai_responses.redaction import describe_exception
from toolbox.mcp.client import McpClient
from toolbox.openapi.client import OpenApiClient
from toolbox.remote_tools import (
    MAX_TOOL_NAME_CHARACTERS,
    RemoteError,
    RemoteTool,
    describe_left_out,
    run_with_timeout,
)
from toolbox.server_entries import ServerEntry, ToolServerSettings

_TOOLS_CACHE_SECONDS = 300.0
_FAILURE_CACHE_SECONDS = 30.0
"""A server that is down must not hold up every chat."""
_LIST_TOOLS_SECONDS = 15.0

_ServerKey = tuple[str, ServerEntry]
_ToolServerClient = McpClient | OpenApiClient


class _AvailableTools(NamedTuple):
    """The tools of a run, and the problems of servers for an administrator."""

    tools: tuple[RemoteTool, ...]
    problems: tuple[str, ...]


class _CachedTools(NamedTuple):
    """What a server offered, or its problem; valid up to a time."""

    expires_at: float
    tools: tuple[Any, ...] = ()
    problem: str = ""


class ToolServers:
    """Lends tools; nothing is connected before they are listed."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """Read the time from `now`, in seconds."""
        self._now = now
        self._cache: dict[_ServerKey, _CachedTools] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open_tools(
        self, named: ToolServerSettings
    ) -> AsyncGenerator[_AvailableTools, None]:
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
            yield _AvailableTools(_make_names_unique(tools), complaints)
        finally:
            for server in servers.values():
                # In a task of its own: a run that was stopped cannot wait.
                closing = asyncio.create_task(server.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Wait until the sessions of earlier runs are closed."""
        if self._closing:
            await asyncio.wait(self._closing)

    async def _list_tools(
        self, key: _ServerKey, server: _ToolServerClient
    ) -> _CachedTools:
        now = self._now()
        self._cache = {k: r for k, r in self._cache.items() if r.expires_at > now}
        if key in self._cache:
            return self._cache[key]
        name = f"The server {key[1].label}"
        listing = run_with_timeout(server.list_tools(), _LIST_TOOLS_SECONDS, name)
        try:
            tools = await listing
            problem = describe_left_out(name, server.left_out)
            found = _CachedTools(now + _TOOLS_CACHE_SECONDS, tools, problem)
        except Exception as failed:  # one server must not end every answer
            known = isinstance(failed, RemoteError)
            why = str(failed) if known else f"{name}: {describe_exception(failed)}"
            found = _CachedTools(now + _FAILURE_CACHE_SECONDS, problem=why)
        self._cache[key] = found
        return found


def _make_names_unique(tools: Iterable[RemoteTool]) -> tuple[RemoteTool, ...]:
    """Return the tools; a name that is taken gets a number."""
    found: dict[str, RemoteTool] = {}
    for tool in tools:
        name, number = tool.name, 1
        while name in found:
            number += 1
            name = f"{tool.name[: MAX_TOOL_NAME_CHARACTERS - 4]}_{number}"
        found[name] = replace(tool, name=name)
    return tuple(found.values())
