"""What the agent hears apart from the chat: lines on stdin, posts on a local port."""

import asyncio
import hmac
import os
from codecs import getincrementaldecoder
from collections.abc import Callable
from errno import EIO
from functools import partial

from aiohttp import web

from gpt5_agent.ports import AgentContext

_READ_BYTES = 64 * 1024
_MAX_POST_BYTES = 64 * 1024
_OWN_NAMES = ("127.0.0.1", "localhost")
_MAX_LINE_CHARACTERS = 1024 * 1024


class StdinListener:
    """Passes on line after line of a file; calls `on_end` when there are no more."""

    name = "stdin"

    def __init__(
        self, descriptor: int = 0, on_end: Callable[[], object] | None = None
    ) -> None:
        self._on_end = on_end
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._partial_line = ""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def on_start(self, context: AgentContext) -> None:
        """Begin to read; a file on a disk cannot be waited for, and is read at once."""
        self._task = asyncio.create_task(self._emit(context))
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        except PermissionError:
            while self._read():
                pass

    async def on_stop(self) -> None:
        """Leave the rest unread; the file stays open, because it is not ours."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _read(self) -> bool:
        """Take what is there; returns whether more can come."""
        try:
            piece = os.read(self._descriptor, _READ_BYTES)
        except OSError as error:
            if error.errno != EIO:
                raise
            piece = b""  # the terminal is gone
        is_at_end = not piece
        text = self._partial_line + self._decoder.decode(piece, is_at_end)
        lines = text.split("\n")
        self._partial_line = lines.pop()
        if is_at_end or len(self._partial_line) > _MAX_LINE_CHARACTERS:
            lines.append(self._partial_line)
            self._partial_line = ""
        for line in lines:
            if line.strip():
                self._lines.put_nowait(line.strip())
        if is_at_end:
            self._lines.put_nowait(None)
            asyncio.get_running_loop().remove_reader(self._descriptor)
        return not is_at_end

    async def _emit(self, context: AgentContext) -> None:
        """Pass on the lines, then call `on_end`."""
        while (line := await self._lines.get()) is not None:
            await context.emit_input(line)
        if self._on_end is not None:
            self._on_end()


class HttpListener:
    """Passes on what those who have the token post to `/input` on this machine.

    Port 0 takes a free one, which `address` names once it listens.
    """

    name = "http"

    def __init__(self, token: str, port: int = 0) -> None:
        self.address = ""
        self._expected = f"Bearer {token}".encode()
        self._port = port
        self._runner: web.AppRunner | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def on_start(self, context: AgentContext) -> None:
        """Listen on 127.0.0.1 alone; raises OSError where the port is taken."""
        app = web.Application(client_max_size=_MAX_POST_BYTES)
        app.router.add_post("/input", partial(self._receive_post, context))
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        host, port = self._runner.addresses[0][:2]
        self.address = f"http://{host}:{port}/input"

    async def on_stop(self) -> None:
        """Release the port; drop inputs that are not answered yet."""
        for task in self._tasks:
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _receive_post(
        self, context: AgentContext, request: web.Request
    ) -> web.Response:
        """Take an input; the answer to the post does not wait for the agent's.

        A page in a browser may reach this port under any name of this machine, but it
        does not know the token.
        """
        # aiohttp 3.9 makes no URL of a name and its port with the yarl of today.
        name = request.host.partition(":")[0]
        if "Origin" in request.headers or name not in _OWN_NAMES:
            return web.Response(status=403, text="Requests from browsers are rejected.")
        authorization = request.headers.get("Authorization", "").encode(
            errors="replace"
        )
        if not hmac.compare_digest(authorization, self._expected):
            return web.Response(status=401, text="The token is wrong.")
        try:
            text = (await request.text()).strip()
        except (UnicodeDecodeError, LookupError):
            text = ""
        if not text:
            return web.Response(status=400, text="The body is not text.")
        task = asyncio.create_task(context.emit_input(text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return web.Response(status=202)
