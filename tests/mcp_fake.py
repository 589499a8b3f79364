"""An MCP server whose every answer a test writes itself."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from toolbox.mcp.client import McpClient
from toolbox.remote_tools import RemoteTool
from toolbox.server_entries import ServerEntry
from upstream import Upstream

Json = dict[str, Any]
Reply = Callable[[Json], web.StreamResponse]

OPENED: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "fake", "version": "1"},
}
TOOL: Json = {
    "name": "look",
    "description": "Looks.",
    "inputSchema": {"type": "object"},
}


def result(value: Json, **headers: str) -> Reply:
    """Answer with a result, as JSON."""

    def reply(message: Json) -> web.StreamResponse:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": value}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return web.json_response(answer, headers=named)

    return reply


def error(text: str) -> Reply:
    """Answer with an error of JSON-RPC."""

    def reply(message: Json) -> web.StreamResponse:
        told = {"code": -32602, "message": text}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": told})

    return reply


def body(text: str | bytes, status: int = 200, **more: Any) -> Reply:
    """Answer with anything."""
    content = text.encode() if isinstance(text, str) else text
    kind = more.pop("kind", "application/json")

    def reply(_: Json) -> web.StreamResponse:
        return web.Response(status=status, body=content, content_type=kind, **more)

    return reply


def events(*messages: Json) -> str:
    """An event stream of messages."""
    return "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in messages)


def streamed(*before: Json, value: Json | None = None) -> Reply:
    """Answer with a stream: some messages, then the result, if there is one."""

    def reply(message: Json) -> web.StreamResponse:
        last = {"jsonrpc": "2.0", "id": message["id"], "result": value}
        messages = [*before, *([] if value is None else [last])]
        return web.Response(text=events(*messages), content_type="text/event-stream")

    return reply


@dataclass
class FakeMcp:
    """Replies by method; `heard` are the messages in their order."""

    replies: dict[str, Reply] = field(default_factory=dict)
    heard: list[Json] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """The sessions that were deleted."""

    def __post_init__(self) -> None:
        """Be a good server, as far as nothing else was said."""
        self.replies = {
            "initialize": result(OPENED),
            "tools/list": result({"tools": [TOOL]}),
            "tools/call": result({"content": [{"type": "text", "text": "Seen."}]}),
            **self.replies,
        }

    def methods(self) -> list[str]:
        """The methods that were asked for; an answer has none."""
        return [str(message.get("method", "answer")) for message in self.heard]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as the replies say."""
        if request.method == "DELETE":
            self.ended.append(request.headers["Mcp-Session-Id"])
            return web.Response(status=405)
        message = await request.json()
        self.heard.append(message)
        method = message.get("method")
        if method in self.replies:
            return self.replies[method](message)
        return web.Response(status=202)


@asynccontextmanager
async def faked(
    replies: Mapping[str, Reply] | None = None, **more: Any
) -> AsyncIterator[tuple[McpClient, FakeMcp]]:
    """A client of such a server, with little patience."""
    fake = FakeMcp(dict(replies or {}))
    async with Upstream(fake.answer) as upstream:
        known = {"label": "fake", "seconds": 30.0, **more}
        server = McpClient(ServerEntry(url=upstream.base_url, **known))
        try:
            yield server, fake
        finally:
            await server.close()


async def only_tool(server: McpClient) -> RemoteTool:
    """The one tool that a server offers."""
    [spec] = await server.list_tools()
    return server.make_tool(spec)
