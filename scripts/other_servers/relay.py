"""Passes data between the pipe and a server, and keeps what both said."""

from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web


@dataclass
class Exchange:
    """A request for a response, and what came back."""

    body: dict[str, Any]
    status: int = 0
    answer: bytes = b""


class Relay:
    """Passes everything on to `target`, an address without a path."""

    def __init__(self, target: str, socket: str = "") -> None:
        """Keep nothing yet; `socket` is a file on which the server listens."""
        self._target = target
        self._socket = socket
        self.exchanges: list[Exchange] = []

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Answer as the server does, piece by piece."""
        sent = await request.read()
        url = f"{self._target}{request.path_qs}"
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Content-Type", "Accept")
            if name in request.headers
        }
        exchange = Exchange(await request.json() if sent else {})
        if sent:
            self.exchanges.append(exchange)
        connector = aiohttp.UnixConnector(self._socket) if self._socket else None
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(
                request.method, url, data=sent, headers=headers
            ) as answered,
        ):
            exchange.status = answered.status
            kind = answered.headers.get("Content-Type", "")
            stream = web.StreamResponse(
                status=answered.status, headers={"Content-Type": kind}
            )
            await stream.prepare(request)
            async for piece in answered.content.iter_any():
                exchange.answer += piece
                await stream.write(piece)
        return stream
