"""The tools of an MCP server, as the agent is offered them."""

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from toolbox.mcp_http import McpHttp
from toolbox.mcp_session import McpSession, RpcRefused
from toolbox.mcp_stdio import McpStdio
from toolbox.mcp_wire import McpWire
from toolbox.remote_tools import (
    MOST_TOOLS,
    RemoteFailed,
    RemoteSpec,
    RemoteTool,
    allows_tool,
    failed_result,
    is_modest,
    remote_tool,
    shortened,
)
from toolbox.server_entries import ServerEntry

_LONGEST_REASON = 500
_PARTS = frozenset({"text", "image", "audio", "resource", "resource_link"})
"""What MCP knows; other parts mean something to the agent, which a server must not
say: `file` names one of ours."""


class McpServer:
    """One server, for one run; nothing is opened before it is needed."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self._entry = entry
        wire: McpWire = McpStdio(entry) if entry.command else McpHttp(entry)
        self._session = McpSession(entry, wire)

    async def offered(self) -> tuple[RemoteSpec, ...]:
        """Return what the server offers, each name once; raises RemoteFailed."""
        found: dict[str, RemoteSpec] = {}
        try:
            async with aclosing(self._session.tools()) as rows:
                async for row in rows:
                    spec = _spec(row)
                    if spec is not None and self._allows(spec):
                        found.setdefault(spec.own_name, spec)
                    if len(found) == MOST_TOOLS:
                        break
        except RpcRefused:
            label = self._entry.label
            raise RemoteFailed(
                f"The MCP server {label} does not list its tools."
            ) from None
        return tuple(found.values())

    def tool(self, spec: RemoteSpec) -> RemoteTool:
        """Return a tool that the server runs."""
        return remote_tool(self._entry.label, spec, partial(self._call, spec.own_name))

    async def close(self) -> None:
        """End the session."""
        await self._session.close()

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return _mcp_result(await self._session.call(name, arguments))
        except RpcRefused as refused:
            reason = shortened(str(refused), _LONGEST_REASON)
            return failed_result(reason)

    def _allows(self, spec: RemoteSpec) -> bool:
        return allows_tool(self._entry.allowed, spec.own_name)


def _spec(row: Mapping[str, Any]) -> RemoteSpec | None:
    """Return a tool as a server describes it, or None for what is none."""
    name, schema = row.get("name"), row.get("inputSchema")
    if not isinstance(name, str) or not name:
        return None
    if not isinstance(schema, dict) or not is_modest(schema):
        return None
    args = {"type": "object", "properties": {}, **schema}
    return RemoteSpec(name, str(row.get("description") or row.get("title") or ""), args)


def _mcp_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the parts that MCP knows, or with what stands for them."""
    content = result.get("content")
    rows = content if isinstance(content, list) else []
    parts = [
        _part(row)
        for row in rows
        if isinstance(row, Mapping) and row.get("type") in _PARTS
    ]
    if not parts and result.get("structuredContent") is not None:
        parts = [{"type": "json", "json": result["structuredContent"]}]
    told = parts or [{"type": "text", "text": "The tool has run; it returned nothing."}]
    return {"isError": result.get("isError") is True, "content": told}


def _part(row: Mapping[str, Any]) -> dict[str, Any]:
    kind = "blob" if row["type"] == "audio" else row["type"]
    return {**row, "type": kind}
