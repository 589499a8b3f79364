"""A forward proxy on 127.0.0.1, as companies have them."""

import asyncio
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class ForwardProxy:
    """Passes everything on to one server, used as `async with ForwardProxy(port)`.

    It does so whatever host was asked for: a test can use names that do not exist.
    With `credentials` it lets only those through that send them.
    """

    def __init__(self, port: int, credentials: str = "") -> None:
        """Nothing is opened yet; `port` is that of the server."""
        self._origin = port
        self._credentials = credentials
        self._server: asyncio.Server | None = None
        self.requests: list[str] = []
        """The first line of each request that opened a connection."""
        self.headers: list[dict[str, str]] = []
        """The headers that the proxy was sent with it."""

    @property
    def host(self) -> str:
        assert self._server
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def address(self) -> str:
        return f"http://{self.host}"

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            await self._pass_on(head, reader, writer)
        writer.close()

    async def _pass_on(self, head: bytes, reader: Reader, writer: Writer) -> None:
        first, *lines = head.decode().strip().split("\r\n")
        pairs = (line.partition(": ")[::2] for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        self.requests.append(first)
        self.headers.append(headers)
        if headers.get("proxy-authorization", "") != self._credentials:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        there, out = await asyncio.open_connection("127.0.0.1", self._origin)
        if first.startswith("CONNECT "):
            writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
        else:
            out.write(_for_the_server(head))
        await asyncio.gather(_copy(reader, out), _copy(there, writer))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()


def _for_the_server(head: bytes) -> bytes:
    """Return the head of a request as the server itself is asked."""
    first, *lines = head.decode().split("\r\n")
    method, url, version = first.split(" ")
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in lines if not line.lower().startswith("proxy-")]
    return "\r\n".join([f"{method} {path} {version}", *kept]).encode()


async def _copy(reader: Reader, writer: Writer) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
