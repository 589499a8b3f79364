"""Servers of tools on this machine: OpenAPI, a terminal's, MCP.

    async with ToolServers() as servers, servers.registered(admin):
        ...

`called` lists what was asked of them.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from aiohttp import web
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from hosts.people.client import Json
from hosts.people.users import EVERYBODY_READS, User
from hosts.servers.offline import free_port
from hosts.servers.quiet_server import serving

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAYAAADED76LAAAAFklEQVR4nGP8z8Dwn4EIwDiqkL4KAV6SF/mUR"
    "LfMAAAAAElFTkSuQmCC"
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL_SERVERS, TERMINALS, CONNECTIONS = (
    f"/api/v1/configs/{name}"
    for name in ("tool_servers", "terminal_servers", "connections")
)


class ToolServers:
    """One server of each kind, running while it is open."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.openapi = f"http://127.0.0.1:{free_port()}"
        self.mcp = ""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._running_openapi())
        await self._stack.enter_async_context(self._running_mcp())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def registered(self, admin: User) -> AsyncIterator[None]:
        """Known to Open WebUI, which also lets browsers bring tools of their own."""
        before = {path: await admin.call("GET", path) for path in SETTINGS}
        await admin.call("POST", TOOL_SERVERS, self._tool_servers())
        await admin.call("POST", TERMINALS, self._terminals())
        direct = before[CONNECTIONS] | {"ENABLE_DIRECT_INTEGRATIONS": True}
        await admin.call("POST", CONNECTIONS, direct)
        try:
            yield
        finally:
            for path, settings in before.items():
                await admin.call("POST", path, settings)

    def _tool_servers(self) -> Json:
        openapi = {
            "type": "openapi",
            "url": self.openapi,
            "path": "openapi.json",
            "info": {"id": "weather", "name": "Weather"},
        }
        mcp = {
            "type": "mcp",
            "url": f"{self.mcp}/mcp",
            "path": "",
            "info": {"id": "clocks", "name": "Clocks"},
        }
        config = {"enable": True, "access_grants": [EVERYBODY_READS]}
        more = {"auth_type": "none", "key": "", "config": config}
        return {"TOOL_SERVER_CONNECTIONS": [openapi | more, mcp | more]}

    def _terminals(self) -> Json:
        terminal = {
            "id": "shell",
            "name": "Shell",
            "url": f"{self.openapi}/terminal",
            "auth_type": "none",
            "config": {"access_grants": [EVERYBODY_READS]},
        }
        return {"TERMINAL_SERVER_CONNECTIONS": [terminal]}

    # ---- OpenAPI

    @asynccontextmanager
    async def _running_openapi(self) -> AsyncIterator[None]:
        app = web.Application(middlewares=[self._noting])
        app.add_routes(
            [
                web.get("/openapi.json", _weather_document),
                web.get("/terminal/openapi.json", _terminal_document),
                *(web.route("*", path, _answer) for path in PATHS),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        port = int(self.openapi.rpartition(":")[2])
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    @web.middleware
    async def _noting(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response: web.StreamResponse = await handler(request)
        if "openapi.json" not in request.path:
            self.called.append(f"{request.method} {request.path}")
        return response

    # ---- MCP

    @asynccontextmanager
    async def _running_mcp(self) -> AsyncIterator[None]:
        async with serving(self._clocks().streamable_http_app()) as port:
            self.mcp = f"http://127.0.0.1:{port}"
            yield

    def _clocks(self) -> MCPServer:
        clocks = MCPServer("clocks")

        @clocks.tool()
        def now(zone: str) -> str:
            """The time in a zone."""
            self.called.append(f"now {zone}")
            return f"12:00 in {zone}"

        @clocks.tool(structured_output=False)
        def dial(zone: str) -> list[Any]:
            """The clock of a zone, as a picture."""
            self.called.append(f"dial {zone}")
            return [f"The clock of {zone}", Image(data=PICTURE, format="png")]

        @clocks.tool()
        def wind(zone: str) -> str:
            """Wind the clock of a zone."""
            self.called.append(f"wind {zone}")
            raise ToolError(f"The clock of {zone} has no spring.")

        return clocks


SETTINGS = (TOOL_SERVERS, TERMINALS, CONNECTIONS)


async def _weather_document(_: web.Request) -> web.Response:
    chart = _operation("chart", "The chart of a city.")
    chart["parameters"] = [_parameter("city", "path")]
    paths = {
        "/forecast": {"post": _operation("forecast", "The sky of a city.", CITY)},
        "/chart/{city}": {"get": chart},
        "/board": {"get": _operation("board", "A board to look at.")},
        "/broken": {"get": _operation("broken", "What never works.")},
    }
    return web.json_response(_document("Weather", paths))


async def _terminal_document(_: web.Request) -> web.Response:
    command = {"type": "object", "properties": {"command": {"type": "string"}}}
    display = _operation("display_file", "Show a file to the user.")
    display["parameters"] = [_parameter("path", "query")]
    paths = {
        "/run": {"post": _operation("run_command", "Run a command.", command)},
        "/display": {"get": display},
    }
    return web.json_response(_document("Terminal", paths))


def _document(title: str, paths: Json) -> Json:
    info = {"title": title, "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _parameter(name: str, place: str) -> Json:
    schema = {"type": "string"}
    return {"name": name, "in": place, "required": True, "schema": schema}


def _operation(name: str, summary: str, body: Json | None = None) -> Json:
    operation: Json = {"operationId": name, "summary": summary, "responses": {}}
    if body:
        required = {**body, "required": list(body["properties"])}
        content = {"application/json": {"schema": required}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


PATHS = (
    *("/forecast", "/chart/{city}", "/board", "/broken"),
    *("/terminal/run", "/terminal/display"),
)


async def _answer(request: web.Request) -> web.Response:
    given = await request.json() if request.can_read_body else dict(request.query)
    match request.path.split("/")[1:]:
        case ["forecast"]:
            sky = {"city": given["city"], "sky": "clear", "sun": True}
            return web.json_response(sky)
        case ["chart", _]:
            return web.Response(body=PICTURE, content_type="image/png")
        case ["board"]:
            text = "<b>Sun</b>"
            inline = {"Content-Disposition": "inline"}
            return web.Response(text=text, content_type="text/html", headers=inline)
        case ["terminal", "run"]:
            output = f"ran {given['command']}"
            return web.json_response({"output": output, "exit_code": 0})
        case ["terminal", "display"]:
            return web.json_response({"path": given["path"], "exists": True})
    return web.Response(status=500, text="the barometer fell down")
