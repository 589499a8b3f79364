"""One request to a sandbox: told, watched, answered or stopped."""

import asyncio
import json
from asyncio import StreamReader, StreamWriter, Task
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolbox.cells import Cell, SandboxBackend
from toolbox.inside import INSIDE
from toolbox.replies import SandboxReply, SandboxSilent, longest_reply, read_reply
from toolbox.sandbox_limits import SandboxLimits

_ANSWER_SECONDS = 10.0
"""The sandbox stops the code by itself, then answers; after this we do not wait."""
_WATCH_SECONDS = 0.05
"""How often the memory is read: what two cores can fill in that time goes beyond."""
_READ_AT_ONCE = 256 * 1024
_COMPLAINT = 2_000

_STOP_REASONS = {
    "memory": "its processes and files held more than {0.memory} bytes of memory",
    "seconds": "it did not end within {0.seconds:g} s",
    "reply": "it wrote more than fits into the workspace",
    "unwatched": "its memory cannot be read on this server",
}


class RunStopped(Exception):
    """The sandbox was ended before it answered; the text says why."""


@dataclass(frozen=True, slots=True)
class KeptArchive:
    """A workspace that was kept: where in which file it begins."""

    path: Path
    start: int


class Sandbox:
    """Where requests go: a backend with its limits."""

    def __init__(self, backend: SandboxBackend, limits: SandboxLimits) -> None:
        """Open nothing yet."""
        self.backend = backend
        self._limits = limits
        self._cells: set[Cell] = set()
        self._is_stopped = False

    async def ask(
        self, request: Mapping[str, Any], archive: KeptArchive | None, spool: Path
    ) -> SandboxReply:
        """Return the answer, for which `spool` is filled.

        Raises RunStopped, SandboxSilent, or SandboxMissing. However it ends, nothing of
        the run is left.
        """
        line = json.dumps({**request, "limits": asdict(self._limits)}).encode() + b"\n"
        cell = await self.backend.open_cell(INSIDE, self._limits)
        self._cells.add(cell)
        talk = _Talk(cell, self._limits)
        try:
            if self._is_stopped:
                raise SandboxSilent("it was closed")
            await talk.listen(line, archive, spool)
        finally:
            self._cells.discard(cell)
            await talk.end()
        try:
            return read_reply(spool, self._limits)
        except SandboxSilent:
            raise SandboxSilent(talk.complaint()) from None

    async def stop(self) -> None:
        """End all that runs or begins; whoever waits is told that it was silent."""
        self._is_stopped = True
        while self._cells:  # those in here are open, and hold what they are killed by
            await self._cells.pop().kill()


class _Talk:
    """What is under way between us and one cell."""

    def __init__(self, cell: Cell, limits: SandboxLimits) -> None:
        process = cell.process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._cell, self._limits = cell, limits
        self._stdin, self._stdout = process.stdin, process.stdout
        self._stderr = process.stderr
        self._complaint = b""
        self._tasks: list[Task[None]] = []
        self._complaining: Task[None] | None = None

    async def listen(
        self, line: bytes, archive: KeptArchive | None, spool: Path
    ) -> None:
        """Tell the request, watch until the answer is whole; raises RunStopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.seconds + _ANSWER_SECONDS
        answering = asyncio.create_task(self._receive(spool))
        telling = asyncio.create_task(_tell_request(self._stdin, line, archive))
        self._tasks = [answering, telling]
        self._complaining = asyncio.create_task(self._hear_complaints())
        while not (await asyncio.wait({answering}, timeout=_WATCH_SECONDS))[0]:
            if loop.time() > deadline:
                raise self._stopped("seconds")
            if self._memory() > self._limits.memory:
                raise self._stopped("memory")
        answering.result()

    def _memory(self) -> int:
        try:
            return self._cell.memory()
        except PermissionError:
            raise self._stopped("unwatched") from None

    async def _receive(self, spool: Path) -> None:
        left = longest_reply(self._limits)
        with spool.open("wb") as file:
            while piece := await self._stdout.read(_READ_AT_ONCE):
                left -= file.write(piece)
                if left < 0:
                    raise self._stopped("reply")

    async def _hear_complaints(self) -> None:
        """Keep the first words of the sandbox's own complaints; it waits with the rest."""
        while len(self._complaint) < _COMPLAINT:
            if not (piece := await self._stderr.read(_COMPLAINT)):
                return
            self._complaint += piece

    def _stopped(self, reason: str) -> RunStopped:
        return RunStopped(_STOP_REASONS[reason].format(self._limits))

    async def end(self) -> None:
        """End the cell, and wait until it is gone."""
        try:
            await self._cell.kill()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._stdin.close()
            if self._complaining is not None:
                await self._complaining  # there may be a word that we have not read
            # The process counts as ended only when its pipes are empty.
            await asyncio.gather(_drain(self._stdout), _drain(self._stderr))
            await self._cell.process.wait()
        finally:
            self._cell.close()

    def complaint(self) -> str:
        """Return what the sandbox said of itself, for the log."""
        return self._complaint.decode("utf-8", "replace").strip()


async def _tell_request(
    stdin: StreamWriter, line: bytes, archive: KeptArchive | None
) -> None:
    """Write the request, then the workspace."""
    with suppress(ConnectionError):  # it ended without listening
        stdin.write(line)
        if archive is not None:
            with archive.path.open("rb") as file:
                file.seek(archive.start)
                while piece := file.read(_READ_AT_ONCE):
                    stdin.write(piece)
                    await stdin.drain()
        await stdin.drain()
        stdin.close()


async def _drain(stream: StreamReader) -> None:
    """Throw away what was written before the end."""
    while await stream.read(_READ_AT_ONCE):
        pass
