"""A relay on 127.0.0.1 whose server can be away for a while."""

import asyncio
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from contextlib import suppress
from types import TracebackType
from typing import Self


class Relay:
    """Passes bytes on to the server at `port`, used as `async with Relay(port)`."""

    def __init__(self, port: int) -> None:
        """Nothing is opened yet."""
        self._origin = port
        self._server: asyncio.Server | None = None
        self._writers: set[Writer] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.resume()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.interrupt()

    async def interrupt(self) -> None:
        """Break all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def resume(self) -> None:
        """Take connections, at the same port as before."""
        serve = self._serve
        self._server = await asyncio.start_server(serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._origin)
        ends = {writer, out}
        self._writers |= ends
        try:
            await asyncio.gather(_copy(reader, out), _copy(there, writer))
        finally:
            self._writers -= ends


async def _copy(reader: Reader, writer: Writer) -> None:
    """Pass on what comes, up to its end."""
    with suppress(OSError):
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
    writer.close()
