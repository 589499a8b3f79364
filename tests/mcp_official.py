"""A server of the official MCP package, which writes down what happens to it.

Run as a program it speaks over stdin and stdout, and writes to the file NOTES.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from quiet_server import serving

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAA"
    "AElFTkSuQmCC"
)
CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
NAMES = ("weather", "picture", "broken", "refused", "wait", "ask", "env")


@dataclass
class Official:
    """The server; `note` takes each thing that happens."""

    note: Callable[[str], object]
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the tool `wait` waits."""

    def server(self) -> Server[Any]:
        """The server, whose list of tools has pages of three."""
        return Server("official", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _: Any, params: Any) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        self.note(f"list {start}")
        tools = [
            types.Tool(name=name, description=f"Does {name}.", input_schema=CITY_SCHEMA)
            for name in NAMES[start : start + 3]
        ]
        more = str(start + 3) if start + 3 < len(NAMES) else None
        return types.ListToolsResult(tools=tools, next_cursor=more)

    async def _call(self, context: Any, params: Any) -> types.CallToolResult:
        city = (params.arguments or {}).get("city", "")
        self.note(f"call {params.name} {city}".strip())
        match params.name:
            case "weather":
                return said(f"Rain in {city}.")
            case "picture":
                image = types.ImageContent(data=PIXEL, mime_type="image/png")
                return types.CallToolResult(content=[image])
            case "broken":
                return said("The barometer fell down.", failed=True)
            case "wait":
                return await self._wait()
            case "ask":
                return await self._ask(context)
            case "env":
                return said(" ".join(sorted(os.environ)))
        raise MCPError(code=types.INVALID_PARAMS, message="There is no city of Secret.")

    async def _wait(self) -> types.CallToolResult:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except BaseException:
            self.note("cancelled")
            raise
        return said("never")

    async def _ask(self, context: Any) -> types.CallToolResult:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        try:
            await context.session.elicit_form("Which?", schema, context.request_id)
        except MCPError as refused:
            return said(f"It said: {refused}")
        return said("It was answered.")


def said(text: str, failed: bool = False) -> types.CallToolResult:
    """A result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


@dataclass
class OverHttp:
    """The server on a port; `requests` are the method and headers of each request."""

    url: str
    official: Official
    noted: list[str]
    requests: list[tuple[str, dict[str, str]]]

    @property
    def sessions(self) -> list[str]:
        """The sessions that were named, each once."""
        ids = [headers.get("mcp-session-id", "") for _, headers in self.requests]
        return list(dict.fromkeys(filter(None, ids)))


@asynccontextmanager
async def official_http(
    json_response: bool = False, stateless: bool = False
) -> AsyncIterator[OverHttp]:
    """Run the server over streamable HTTP."""
    noted: list[str] = []
    official = Official(noted.append)
    app = official.server().streamable_http_app(
        json_response=json_response, stateless_http=stateless
    )
    requests: list[tuple[str, dict[str, str]]] = []

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): text.decode() for name, text in scope["headers"]}
            requests.append((scope["method"], headers))
        await app(scope, receive, send)

    async with serving(noting) as port:
        yield OverHttp(f"http://127.0.0.1:{port}/mcp", official, noted, requests)


async def _over_stdio() -> None:
    notes = Path(os.environ["NOTES"])

    def note(text: str) -> None:
        with notes.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    server = Official(note).server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
    note("ended")


if __name__ == "__main__":
    asyncio.run(_over_stdio())
