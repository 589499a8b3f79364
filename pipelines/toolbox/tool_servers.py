"""The tools of all configured servers, lent to one run at a time.

The list of a server's tools is cached for a minute, unless the server says that it has
changed. A server that hangs is waited for once: after that it is listed in the
background. Sessions are never shared, because they may know their user.
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
    RemoteTimeout,
    RemoteTool,
    run_with_timeout,
)
from toolbox.server_entries import ServerEntry, ToolServerSettings

_TOOLS_CACHE_SECONDS = 60.0
_FAILURE_CACHE_SECONDS = 30.0
"""A server that is down must not hold up every chat."""
_LIST_TOOLS_SECONDS = 15.0
_WAIT_SECONDS = 3.0
"""How long an answer waits for a list, if no program has to be started for it."""

_ServerKey = tuple[str, ServerEntry]
_ToolServerClient = McpClient | OpenApiClient


class _AvailableTools(NamedTuple):
    """The tools of a run, the problems of servers, and what else the log should say."""

    tools: tuple[RemoteTool, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]


class _CachedTools(NamedTuple):
    """What a server offered, or its problem; valid up to a time.

    `hangs` says that the server was too slow: no answer waits for it again.
    """

    expires_at: float = 0.0
    tools: tuple[Any, ...] = ()
    problem: str = ""
    remark: str = ""
    hangs: bool = False


class ToolServers:
    """Lends tools; nothing is connected before they are listed."""

    def __init__(
        self, now: Callable[[], float] = monotonic, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        """Read the time from `now`, in seconds."""
        self._now = now
        self._wait_seconds = wait_seconds
        self._cache: dict[_ServerKey, _CachedTools] = {}
        self._changed: set[_ServerKey] = set()
        """What servers said to have changed while they were listing it."""
        self._listings: dict[
            _ServerKey, tuple[_ToolServerClient, asyncio.Task[_CachedTools]]
        ] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open_tools(
        self, named: ToolServerSettings
    ) -> AsyncGenerator[_AvailableTools, None]:
        """Lend the tools of a run; its sessions are closed in the background."""
        mcp, openapi = named.read_entries()
        servers: dict[_ServerKey, _ToolServerClient] = {
            **{("mcp", entry): self._make_mcp_client(entry) for entry in mcp.entries},
            **{("openapi", entry): OpenApiClient(entry) for entry in openapi.entries},
        }
        # Entries of other valves hold secrets, and are needed no more.
        now, cache = self._now(), self._cache.items()
        self._cache = {k: c for k, c in cache if k in servers or c.expires_at > now}
        try:
            found = await asyncio.gather(
                *(self._find_tools(key, server) for key, server in servers.items())
            )
            tools = [
                server.make_tool(offer)
                for server, one in zip(servers.values(), found, strict=True)
                for offer in one.tools
            ]
            failed = [one.problem for one in found if one.problem]
            complaints = (*mcp.problems, *openapi.problems, *failed)
            remarks = tuple(one.remark for one in found if one.remark)
            yield _AvailableTools(_make_names_unique(tools), complaints, remarks)
        finally:
            for key, server in servers.items():
                # In a task of its own: a run that was stopped cannot wait.
                closing = asyncio.create_task(self._close_server(key, server))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Wait until the sessions of earlier runs are closed."""
        for _, task in self._listings.values():
            task.cancel()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _close_server(self, key: _ServerKey, server: _ToolServerClient) -> None:
        client, task = self._listings.get(key, (None, None))
        if task and client is server:
            await asyncio.wait([task])
        await server.close()

    def _make_mcp_client(self, entry: ServerEntry) -> McpClient:
        return McpClient(entry, lambda: self._forget_tools(("mcp", entry)))

    def _forget_tools(self, key: _ServerKey) -> None:
        """Let the next answer list a server's tools anew, also after a list under way."""
        self._cache.pop(key, None)
        if key in self._listings:
            self._changed.add(key)

    async def _find_tools(
        self, key: _ServerKey, server: _ToolServerClient
    ) -> _CachedTools:
        known = self._cache.get(key, _CachedTools())
        if known.expires_at > self._now():
            return known
        if key not in self._listings:
            task = asyncio.create_task(self._list_tools(key, server))
            self._listings[key] = server, task
            task.add_done_callback(lambda _: self._listings.pop(key))
        task = self._listings[key][1]
        # A program has to be started first.
        seconds = _LIST_TOOLS_SECONDS if key[1].command else self._wait_seconds
        if not known.hangs:
            await asyncio.wait([task], timeout=seconds)
        if task.done() and not task.cancelled():
            return task.result()  # the server may have said already that it is old
        late = f"did not list its tools within {seconds:g} s."
        problem = known.problem or f"The server {key[1].label} {late}"
        told = known._replace(problem="" if known.tools else problem, hangs=True)
        self._cache[key] = told
        return told

    async def _list_tools(
        self, key: _ServerKey, server: _ToolServerClient
    ) -> _CachedTools:
        name = f"The server {key[1].label}"
        self._changed.discard(key)
        listing = run_with_timeout(server.list_tools(), _LIST_TOOLS_SECONDS, name)
        try:
            tools, expires_at = await listing, self._now() + _TOOLS_CACHE_SECONDS
            remark = server.left_out.describe(name)
            if key in self._changed:
                expires_at = 0.0
            found = _CachedTools(expires_at, tools, remark=remark)
        except Exception as failed:  # one server must not end every answer
            known = isinstance(failed, RemoteError)
            why = str(failed) if known else f"{name}: {describe_exception(failed)}"
            expires_at = self._now() + _FAILURE_CACHE_SECONDS
            hangs = isinstance(failed, RemoteTimeout)
            found = _CachedTools(expires_at, problem=why, hangs=hangs)
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
