"""One MCP session, and the tools that its server offers.

The session is opened on first use. Each request has a time limit. A session that the
server has forgotten is opened again once.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from openai_responses.json_input import (
    JsonTooLarge,
    as_list,
    as_mapping,
    as_text,
    is_too_deep,
)
from toolbox.mcp.transports import (
    McpHttpTransport,
    McpStdioTransport,
    SessionExpired,
    build_rpc_message,
)
from toolbox.remote_tools import (
    MAX_TOOLS_PER_SERVER,
    LeftOutTools,
    RemoteError,
    RemoteTimeout,
    RemoteTool,
    RemoteToolSpec,
    build_error_result,
    check_schema_size,
    is_tool_allowed,
    make_remote_tool,
    run_with_timeout,
    truncate_text,
)
from toolbox.server_entries import ServerEntry

_PROTOCOL_VERSION = "2025-06-18"
_SUPPORTED_VERSIONS = ("2024-11-05", "2025-03-26", _PROTOCOL_VERSION, "2025-11-25")
"""Those in which nothing is different that is used here."""
_INITIALIZE_PARAMS: Mapping[str, Any] = {
    "protocolVersion": _PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "gpt5-agent", "version": "1"},
}
_MAX_PAGES = 20
_SESSION_CLOSE_SECONDS = 5.0
_MAX_ERROR_CHARACTERS = 500
_MCP_CONTENT_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""What MCP knows; other parts mean something to the agent, which a server must not
say: `file` names one of ours."""


class _RpcError(Exception):
    """The server answered with an error; the text is the server's."""


class McpClient:
    """One server, for one run, in one session; several calls can run at once."""

    def __init__(
        self, entry: ServerEntry, on_tools_changed: Callable[[], object] = str
    ) -> None:
        """Open nothing yet; the server may say at any time that its tools changed."""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"
        self._transport: McpStdioTransport | McpHttpTransport = (
            McpStdioTransport(entry) if entry.command else McpHttpTransport(entry)
        )
        self._transport.on_tools_changed = on_tools_changed
        self._numbers = count(1)
        self._open_lock = asyncio.Lock()
        self._open_count = 0
        self._is_open = False
        self._has_tools = False
        self._cancellations: set[asyncio.Task[None]] = set()
        self.left_out = LeftOutTools()

    async def list_tools(self) -> tuple[RemoteToolSpec, ...]:
        """Return what the server offers, each name once; raises RemoteError."""
        await self._open()
        found: dict[str, RemoteToolSpec] = {}
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES if self._has_tools else 0):
            try:
                page = await self._request_with_retry("tools/list", params)
            except _RpcError:
                raise RemoteError(f"{self._name} does not list its tools.") from None
            await asyncio.to_thread(self._read_tool_specs, page.get("tools"), found)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
            if len(found) >= MAX_TOOLS_PER_SERVER:
                self.left_out.extra += 1  # the next page has at least one
                break
            params = {"cursor": cursor}
        return tuple(found.values())

    def _read_tool_specs(self, rows: object, found: dict[str, RemoteToolSpec]) -> None:
        """Add the tools of a page, up to a limit; count the others."""
        for row in map(as_mapping, as_list(rows)):
            name = row.get("name")
            if not isinstance(name, str) or name in found:
                continue
            if not is_tool_allowed(self._entry.allowed, name):
                continue
            if len(found) >= MAX_TOOLS_PER_SERVER:
                self.left_out.extra += 1
                continue
            try:
                found.update((name, spec) for spec in _read_tool_spec(row))
            except JsonTooLarge:
                self.left_out.unusable += 1

    def make_tool(self, spec: RemoteToolSpec) -> RemoteTool:
        """Return a tool that the server runs."""
        run = partial(self._call, spec.own_name)
        return make_remote_tool(self._entry.label, spec, run)

    async def close(self) -> None:
        """Send what is pending, then end the session, both within a time limit."""
        try:
            if self._cancellations:
                await asyncio.wait(self._cancellations, timeout=_SESSION_CLOSE_SECONDS)
        finally:
            for parting in self._cancellations:
                parting.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SESSION_CLOSE_SECONDS):
                    await self._transport.close()

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        await self._open()
        try:
            result = await self._request_with_retry(
                "tools/call", {"name": name, "arguments": arguments}
            )
            if is_too_deep(result):
                raise RemoteError(f"{self._name} sent JSON that is nested too deeply.")
            return _read_tool_result(result)
        except _RpcError as refused:
            reason = truncate_text(str(refused), _MAX_ERROR_CHARACTERS)
            return build_error_result(reason)

    async def _open(self) -> None:
        async with self._open_lock:
            if not self._is_open:
                await self._initialize()

    async def _initialize(self) -> None:
        self._is_open = False
        try:
            await self._transport.open()
            answer = await self._request("initialize", _INITIALIZE_PARAMS)
            version = answer.get("protocolVersion")
            if version not in _SUPPORTED_VERSIONS:
                raise RemoteError(f"{self._name} speaks another version of MCP.")
            self._transport.version = str(version)
            ready = build_rpc_message("notifications/initialized")
            await run_with_timeout(
                self._transport.notify(ready), self._entry.seconds, self._name
            )
        except (_RpcError, SessionExpired):
            raise RemoteError(f"{self._name} refused to begin a session.") from None
        abilities = as_mapping(answer.get("capabilities"))
        self._has_tools = "tools" in abilities
        if as_mapping(abilities.get("tools")).get("listChanged"):
            self._transport.listen()
        self._is_open = True
        self._open_count += 1

    async def _request_with_retry(
        self, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a result; a session that the server has forgotten is opened again
        once.
        """
        opened = self._open_count
        try:
            return await self._request(method, params)
        except SessionExpired:
            async with self._open_lock:
                if self._open_count == opened:
                    await self._initialize()
        try:
            return await self._request(method, params)
        except SessionExpired:
            raise RemoteError(f"{self._name} ends its sessions at once.") from None

    async def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a request; an abandoned request is cancelled at the
        server.
        """
        request = build_rpc_message(method, params, next(self._numbers))
        try:
            asking = self._transport.request(request)
            answer = await run_with_timeout(asking, self._entry.seconds, self._name)
        except (RemoteTimeout, asyncio.CancelledError):
            if method != "initialize":  # the protocol forbids to cancel it
                parting = asyncio.create_task(self._cancel_request(request["id"]))
                self._cancellations.add(parting)
                parting.add_done_callback(self._cancellations.discard)
            raise
        error = answer.get("error")
        if isinstance(error, Mapping):
            raise _RpcError(str(error.get("message") or "It gave no reason."))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise RemoteError(f"{self._name} gave an answer without a result.")
        return result

    async def _cancel_request(self, number: int) -> None:
        """Tell the server that nobody waits for an answer."""
        cancelled = build_rpc_message("notifications/cancelled", {"requestId": number})
        with suppress(RemoteError, SessionExpired):
            await self._transport.notify(cancelled)


def _read_tool_spec(row: Any) -> Iterator[RemoteToolSpec]:
    """Yield a tool; what is no tool is skipped. Raises JsonTooLarge."""
    match row:
        case {"name": str(name), "inputSchema": dict(schema)} if name:
            check_schema_size(schema)
            args = {"type": "object", "properties": {}, **schema}
            text = str(row.get("description") or row.get("title") or "")
            reads = as_mapping(row.get("annotations")).get("readOnlyHint") is True
            yield RemoteToolSpec(name, text, args, reads)


def _read_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the parts that MCP defines."""
    parts = [
        {**row, "type": "blob" if row["type"] == "audio" else row["type"]}
        for row in map(as_mapping, as_list(result.get("content")))
        if as_text(row.get("type")) in _MCP_CONTENT_TYPES
    ]
    if not parts and result.get("structuredContent") is not None:
        parts = [{"type": "json", "json": result["structuredContent"]}]
    told = parts or [{"type": "text", "text": "The tool has run; it returned nothing."}]
    return {"isError": result.get("isError") is True, "content": told}
