"""A website on this machine, for the tools of Open WebUI that fetch pages.

async with Website() as site, site.reachable(admin): ...
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from hosts.people.users import User

SETTINGS = "/api/v1/retrieval/config"
SENTENCE = "On page {} the tide turns at noon."


class Website:
    """Answers every path with a page of its own."""

    def __init__(self) -> None:
        app = web.Application()
        app.router.add_get("/{name}", self._page)
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    def url(self, name: str) -> str:
        return str(self._server.make_url(f"/{name}"))

    @asynccontextmanager
    async def reachable(self, admin: User) -> AsyncIterator[None]:
        """Open WebUI's search switched on, which brings the tool that fetches pages."""
        before = (await admin.call("GET", SETTINGS))["web"]
        searching = before | {"ENABLE_WEB_SEARCH": True}
        await admin.call("POST", f"{SETTINGS}/update", {"web": searching})
        try:
            yield
        finally:
            await admin.call("POST", f"{SETTINGS}/update", {"web": before})

    async def _page(self, request: web.Request) -> web.Response:
        text = SENTENCE.format(request.match_info["name"])
        html = f"<html><title>The tide</title><p>{text}</p></html>"
        return web.Response(text=html, content_type="text/html")
