"""Child processes, in any event loop.

asyncio leaves the start of a process to its loop and to the policy of the whole server:
uvloop knows neither `process_group` nor `user`, and before Python 3.14 a plain loop
under uvloop's policy cannot start any. So a process is started here without the loop,
which only reads and writes its pipes; a thread waits for its end.
"""

import asyncio
import os
import signal
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from threading import Lock, Thread
from typing import IO, Any

_AS_IT_IS = nullcontext[None]()


class ChildProcess:
    """A process that leads a session and a group; each pipe that was asked for."""

    def __init__(self, command: Sequence[str], options: Mapping[str, Any]) -> None:
        """Start it, and wait for its end in a thread; raises OSError or ValueError."""
        self._process = Popen(command, start_new_session=True, bufsize=0, **options)
        self.pid = self._process.pid
        self.stdin: StreamWriter | None = None
        self.stdout: StreamReader | None = None
        self.stderr: StreamReader | None = None
        self._reaping = Lock()
        self._ended = asyncio.Event()
        self._opened: list[asyncio.BaseTransport] = []
        loop = asyncio.get_running_loop()
        Thread(target=self._wait, args=(loop,), name="child", daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.returncode

    async def wait(self) -> None:
        """Wait until it has ended."""
        await self._ended.wait()

    def kill_group(self) -> None:
        """End it with all that it started, unless it has ended.

        The kernel gives its number to another process once it is reaped.
        """
        with self._reaping:
            if self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)

    def lower_share(self) -> None:
        """Give its session a third of the share of others, unless it has ended.

        Raises BlockingIOError if the kernel takes no change now.
        """
        with self._reaping:
            if self._process.returncode is None:
                # Some kernels have no such file.
                with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                    Path(f"/proc/{self.pid}/autogroup").write_text("5")

    def close(self) -> None:
        """Close the pipes."""
        for transport in self._opened:
            transport.close()

    async def connect(self) -> None:
        """Open the pipes; if that fails or is cancelled, end the process."""
        process = self._process
        all_pipes = (process.stdin, process.stdout, process.stderr)
        pipes = [pipe for pipe in all_pipes if pipe]  # those that are not yet opened
        try:
            if process.stdin:
                self.stdin = await self._open_writer(pipes.pop(0))
            if process.stdout:
                self.stdout = await self._open_reader(pipes.pop(0))
            if process.stderr:
                self.stderr = await self._open_reader(pipes.pop(0))
        except BaseException:
            self.kill_group()
            self.close()
            for pipe in pipes:
                pipe.close()
            await self.wait()
            raise

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in a thread until the process has ended."""
        with suppress(ChildProcessError):  # the server lets the kernel reap
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: no one waits any more
            loop.call_soon_threadsafe(self._ended.set)

    async def _open_reader(self, pipe: IO[bytes]) -> StreamReader:
        """Return a stream of what the process writes into a pipe."""
        reader = StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            partial(StreamReaderProtocol, reader), pipe
        )
        self._opened.append(transport)
        return reader

    async def _open_writer(self, pipe: IO[bytes]) -> StreamWriter:
        """Return a stream to what the process reads from a pipe."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            partial(StreamReaderProtocol, StreamReader()), pipe
        )
        self._opened.append(transport)
        return StreamWriter(transport, protocol, None, loop)


async def start_process(
    *command: str,
    starting: AbstractContextManager[None] = _AS_IT_IS,
    **options: Any,
) -> ChildProcess:
    """Start a process, in a context that ends then; raises OSError or ValueError."""
    with starting:
        child = ChildProcess(command, options)
    await child.connect()
    return child
