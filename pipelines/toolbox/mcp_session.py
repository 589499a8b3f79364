"""A session with an MCP server: begun when it is needed, its requests bounded in time."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from toolbox.json_rpc import RpcMessage, rpc_notification, rpc_request
from toolbox.mcp_wire import McpWire, SessionExpired
from toolbox.remote_tools import MOST_TOOLS, RemoteFailed, RemoteSlow, in_time
from toolbox.server_entries import ServerEntry

_REVISION = "2025-06-18"
_REVISIONS = ("2024-11-05", "2025-03-26", _REVISION, "2025-11-25")
"""Those in which nothing is different that is used here."""
_OPENING: Mapping[str, Any] = {
    "protocolVersion": _REVISION,
    "capabilities": {},
    "clientInfo": {"name": "gpt5-agent", "version": "1"},
}
_MOST_PAGES = 20
_PARTING_SECONDS = 5.0
"""How long the last words to a server may take."""


class RpcRefused(Exception):
    """The server answered with an error; the text is the server's."""


class McpSession:
    """One session; several calls can be under way in it."""

    def __init__(self, entry: ServerEntry, wire: McpWire) -> None:
        """Open nothing yet."""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"
        self._wire = wire
        self._numbers = count(1)
        self._opening = asyncio.Lock()
        self._opened = 0
        self._is_open = False
        self._has_tools = False
        self._partings: set[asyncio.Task[None]] = set()

    async def tools(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the tools as the server describes them; raises RemoteFailed.

        Of a list without end only the beginning.
        """
        await self._open()
        params: dict[str, Any] = {}
        for _ in range(_MOST_PAGES if self._has_tools else 0):
            page = await self._asked("tools/list", params)
            rows = page.get("tools")
            for row in (rows if isinstance(rows, list) else [])[:MOST_TOOLS]:
                if isinstance(row, Mapping):
                    yield row
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return
            params = {"cursor": cursor}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a tool; raises RemoteFailed, RpcRefused."""
        await self._open()
        return await self._asked("tools/call", {"name": name, "arguments": arguments})

    async def close(self) -> None:
        """Say the last words, then end the session; neither takes long."""
        try:
            if self._partings:
                await asyncio.wait(self._partings, timeout=_PARTING_SECONDS)
        finally:
            for parting in self._partings:
                parting.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PARTING_SECONDS):
                    await self._wire.close()

    async def _open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._begin()

    async def _begin(self) -> None:
        """Open the way, agree on a version."""
        self._is_open = False
        try:
            await self._wire.open()
            answer = await self._answer("initialize", _OPENING)
            version = answer.get("protocolVersion")
            if version not in _REVISIONS:
                raise RemoteFailed(f"{self._name} speaks another version of MCP.")
            self._wire.version = str(version)
            ready = rpc_notification("notifications/initialized")
            await in_time(self._wire.tell(ready), self._entry.seconds, self._name)
        except (RpcRefused, SessionExpired):
            raise RemoteFailed(f"{self._name} refused to begin a session.") from None
        abilities = answer.get("capabilities")
        self._has_tools = isinstance(abilities, Mapping) and "tools" in abilities
        self._is_open = True
        self._opened += 1

    async def _asked(self, method: str, params: Mapping[str, Any]) -> RpcMessage:
        """Return a result; a session that the server has forgotten is begun anew, once."""
        opened = self._opened
        try:
            return await self._answer(method, params)
        except SessionExpired:
            async with self._opening:
                if self._opened == opened:
                    await self._begin()
        try:
            return await self._answer(method, params)
        except SessionExpired:
            raise RemoteFailed(f"{self._name} ends its sessions at once.") from None

    async def _answer(self, method: str, params: Mapping[str, Any]) -> RpcMessage:
        """Return what a request is answered with; one that is given up is called back."""
        request = rpc_request(next(self._numbers), method, params)
        try:
            asking = self._wire.ask(request)
            answer = await in_time(asking, self._entry.seconds, self._name)
        except (RemoteSlow, asyncio.CancelledError):
            if method != "initialize":  # which must not be called back
                self._call_back(request)
            raise
        error = answer.get("error")
        if isinstance(error, Mapping):
            raise RpcRefused(str(error.get("message") or "It gave no reason."))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise RemoteFailed(f"{self._name} gave an answer without a result.")
        return result

    def _call_back(self, request: RpcMessage) -> None:
        """Tell the server, without waiting for it, that nobody waits for an answer."""
        parting = asyncio.create_task(self._say_cancelled(request["id"]))
        self._partings.add(parting)
        parting.add_done_callback(self._partings.discard)

    async def _say_cancelled(self, number: int) -> None:
        with suppress(RemoteFailed, SessionExpired):
            await self._wire.tell(
                rpc_notification("notifications/cancelled", requestId=number)
            )
