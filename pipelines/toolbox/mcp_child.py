"""A program that speaks in lines: started in a group of its own, ended with it."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from toolbox.remote_tools import LARGEST_ANSWER

_GRACE_SECONDS = 2.0
"""How long a program may take to end by itself once its stdin is closed."""
_STDOUT = 1
_INHERITED = ("PATH", "HOME", "LANG")
"""What a program gets of our environment; the rest may hold keys."""

TakeLine = Callable[[bytes], bool]
"""Takes a line; False says that enough is enough."""


class Child(asyncio.SubprocessProtocol):
    """One running program; `is_over` says that nothing can come of it any more."""

    def __init__(self, take: TakeLine, ended: Callable[[], object]) -> None:
        """Give each line to `take`, and call `ended` once after the last."""
        self.is_over = False
        self._take = take
        self._ended = ended
        self._line = bytearray()
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the program; called by the loop."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        """Take what it wrote; called by the loop."""
        *lines, begun = data.split(b"\n")
        for line in lines:
            whole, self._line = bytes(self._line + line), bytearray()
            if not self._take(whole):
                self.kill()
                return
        self._line += begun
        if len(self._line) > LARGEST_ANSWER:
            self.kill()

    def pipe_connection_lost(self, fd: int, _exc: Exception | None) -> None:
        """Take note that a pipe is closed; called by the loop."""
        if fd == _STDOUT:
            self.is_over = True
            self._ended()

    def process_exited(self) -> None:
        """End what it started; called by the loop.

        At once: the number of its group can come to mean another one later.
        """
        self.kill()
        self.is_over = True
        self._exited.set()

    def write(self, line: bytes) -> None:
        """Write a line to its stdin, if it still listens."""
        stdin = self._stdin()
        if stdin is not None:
            stdin.write(line + b"\n")

    def kill(self) -> None:
        """End the program with all that it started."""
        if self._transport is not None and not self._exited.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)

    async def close(self) -> None:
        """Let it end by itself, or end it."""
        if self._transport is None:
            return
        try:
            stdin = self._stdin()
            if stdin is not None:
                stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._exited.wait()
            self.kill()
            await self._exited.wait()
        finally:
            self.kill()
            self._transport.close()

    def _stdin(self) -> asyncio.WriteTransport | None:
        stdin = self._transport and self._transport.get_pipe_transport(0)
        return stdin if isinstance(stdin, asyncio.WriteTransport) else None


async def start_child(
    child: Child, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Start a program; raises OSError, ValueError."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    await asyncio.get_running_loop().subprocess_exec(
        lambda: child,
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**inherited, **environment},
        start_new_session=True,
    )
