"""One run in the sandbox, whose memory and time are watched.

The reply is not trusted: code that broke out of its own process may have written it.
Numbers are checked, names are never used as paths on the host, and the archive is only
ever unpacked inside a sandbox. A backend is used only after a first run showed that it
confines code as required; there is no weaker fallback.
"""

import asyncio
import json
import re
from asyncio import StreamReader, StreamWriter, Task
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.backend import (
    MEBIBYTE,
    SandboxBackend,
    SandboxLimits,
    SandboxProcess,
    SandboxUnavailable,
)
from sandbox.program import SANDBOX_PROGRAM

_MAX_JSON_CHARACTER_BYTES = 12
"""The bytes of JSON that one character may take, as a pair of surrogates."""


class SandboxReplyMissing(Exception):
    """The sandbox ended without a valid answer; the text is its error output."""


class FileSlice(NamedTuple):
    """The place of a file that the code wrote, inside a reply."""

    name: str
    start: int
    size: int


class SandboxReply(NamedTuple):
    """A valid answer; `archive` is where the workspace begins, if it is there."""

    answer: Mapping[str, Any]
    archive: int | None
    changed: tuple[FileSlice, ...] = ()


def _max_line_bytes(limits: SandboxLimits) -> int:
    """Return how long the JSON line of an answer may be: three outputs, and names."""
    return 3 * _MAX_JSON_CHARACTER_BYTES * limits.output + 4 * MEBIBYTE


_REPLY_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A text in a JSON line, also one that does not end."""
_ROW_BYTES = 100
"""Of a file that is listed, without its texts, each of which counts as a byte."""
_MORE_ROWS = 100
_ENTRY_BYTES = 32 * 1024
"""Of a file in the line of a workspace: its path, and where a link leads to, each byte
as an escape of six."""


def _is_quickly_read(line: bytes, limits: SandboxLimits) -> bool:
    """Say whether a line has no more than texts, and the rows of an answer.

    While the server reads it, nobody else is answered: 6 MB of `[],[],...` or of digits
    take two seconds.
    """
    most = _ROW_BYTES * (limits.files + _MORE_ROWS)
    size = end = 0
    for text in _REPLY_TEXT.finditer(line):
        size += text.start() - end + 1
        end = text.end()
        if size > most:
            return False
    return size + len(line) - end <= most


def _read_reply(path: Path, limits: SandboxLimits) -> SandboxReply | None:
    """Return the answer in a file, or None for anything else."""
    with path.open("rb") as file:
        line = file.readline(_max_line_bytes(limits))
        if not _is_quickly_read(line, limits):
            return None
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, dict):
            return None
        archive = file.tell()
        # The line of the workspace may be as long as all that is written.
        most = archive + _ENTRY_BYTES * (limits.files + 1)
        while (piece := file.readline(_READ_BYTES)) and not piece.endswith(b"\n"):
            if file.tell() > most:
                return None
        begin = file.tell()
        end = path.stat().st_size
    has_archive = begin > archive
    changed = answer.get("changed")
    slices: list[FileSlice] = []
    left = end - begin
    for entry in changed if isinstance(changed, list) else ():
        match entry:
            case [str(name), int(offset), int(size)]:
                is_inside = offset >= 0 and size >= 0 and begin + offset + size <= end
                # Files have no byte in common: together they are no more than all.
                if is_inside and size <= left:
                    slices.append(FileSlice(name, begin + offset, size))
                    left -= size
    returned = tuple(slices[: limits.returned_files])
    return SandboxReply(answer, archive if has_archive else None, returned)


_REPLY_GRACE_SECONDS = 10.0
"""The sandbox stops the code by itself, then answers; after this we do not wait."""
_MEMORY_CHECK_SECONDS = 0.05
"""How often the memory is read: what two cores can fill in that time goes beyond."""
_READ_BYTES = 256 * 1024
_STDERR_BYTES = 2_000


class RunStopped(Exception):
    """The sandbox was stopped before it answered; the text says why."""


class WorkspaceArchive(NamedTuple):
    """A stored workspace: where it begins in which file."""

    path: Path
    start: int


PrivatePaths = Mapping[str, Path]
"""What only the server may read, by what an administrator calls it."""


_EXPECTED_CONFINEMENT = {
    "capabilities": 0,
    "no_new_privileges": "1",
    "filtered": "2",  # by a program: prctl(2), PR_GET_SECCOMP
    "networks": ["lo"],
    "namespaces": False,
    "seen": [],
}
"""What the program in a sandbox has to see there."""


class Sandbox:
    """Runs requests in the sandboxes of a backend."""

    def __init__(self, backend: SandboxBackend, limits: SandboxLimits) -> None:
        self._backend = backend
        self._limits = limits
        self._processes: set[SandboxProcess] = set()
        self._endings: set[Task[None]] = set()
        """The ends of runs that are under way."""
        self._is_stopped = False

    async def run(
        self,
        request: Mapping[str, Any],
        archive: WorkspaceArchive | None,
        spool: Path,
        content: bytes = b"",
    ) -> SandboxReply:
        """Return the answer, which `spool` stores; the sandbox is gone then.

        `content` is that of a file to receive, whose `size` the request says.
        Raises RunStopped, SandboxReplyMissing, or SandboxUnavailable.
        """
        fields = {**request, "limits": self._limits._asdict()}
        line = json.dumps(fields).encode() + b"\n"
        process = await self._backend.start(SANDBOX_PROGRAM, self._limits)
        self._processes.add(process)
        run = _SandboxRun(process, self._limits)
        try:
            if self._is_stopped:
                raise SandboxReplyMissing("it was closed")
            await run.communicate(_list_request(line, archive, content), spool)
        finally:
            self._processes.discard(process)
            # A call can be cancelled again while its run ends, as after its time and
            # by Stop: the end goes on all the same, or a process would stay.
            ending = asyncio.create_task(run.end())
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            try:
                await asyncio.shield(ending)
            finally:
                await asyncio.wait({ending})
        reply = _read_reply(spool, self._limits)
        if reply is None:
            raise SandboxReplyMissing(run.stderr_text())
        return reply

    async def check_confinement(self, spool: Path, private: PrivatePaths) -> None:
        """Do a first run; raises SandboxUnavailable unless it confines as required.

        A sandbox in which any of the `private` paths can be seen confines nothing.
        """
        # By device and number a sandbox tells a path from one of the same name in a
        # container's image.
        places: dict[str, tuple[str, int, int]] = {}
        for name, path in private.items():
            with suppress(OSError):  # it is not there
                status = path.stat()
                places[name] = (str(path.resolve()), status.st_dev, status.st_ino)
        request = {"operation": "describe", "private": places}
        try:
            reply = await self.run(request, None, spool)
        except OSError as error:
            raise SandboxUnavailable(f"it does not start: {error.strerror}") from None
        except RunStopped as stopped:
            reason = f"a first run was stopped, because {stopped}"
            raise SandboxUnavailable(reason) from None
        except SandboxReplyMissing as silent:
            reason = str(silent) or "a first run gave no answer"
            raise SandboxUnavailable(reason) from None
        match reply.answer:
            case {"seen": [_, *_] as seen}:
                raise SandboxUnavailable(
                    f"code in it could read {', '.join(map(str, seen))} of the server, "
                    "which must not lie among programs or libraries"
                )
        gaps = [
            name
            for name, value in _EXPECTED_CONFINEMENT.items()
            if reply.answer.get(name) != value
        ]
        if not reply.answer.get("user"):
            gaps.append("user")
        if gaps:
            raise SandboxUnavailable(f"it does not confine {', '.join(gaps)}")

    async def stop(self) -> None:
        """End all that runs or begins; callers get SandboxReplyMissing."""
        self._is_stopped = True
        while self._processes:  # not closed yet, so they can be killed
            await self._processes.pop().kill()


class _SandboxRun:
    """One request to a sandbox that runs, and its answer."""

    def __init__(self, sandbox: SandboxProcess, limits: SandboxLimits) -> None:
        child = sandbox.process
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self._process = sandbox
        self._limits = limits
        self._stdin = child.stdin
        self._stdout = child.stdout
        self._stderr = child.stderr
        self._stderr_text = b""
        self._tasks: list[Task[None]] = []
        self._measurer = ThreadPoolExecutor(1, "sandbox-memory")
        self._measuring: asyncio.Future[int] | None = None
        self._stderr_task = asyncio.create_task(self._read_stderr())

    async def communicate(self, request: Iterable[bytes], spool: Path) -> None:
        """Send the request, watch until the answer is complete; raises RunStopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.seconds + _REPLY_GRACE_SECONDS
        reading = asyncio.create_task(self._read_stdout(spool))
        sending = asyncio.create_task(_send_request(self._stdin, request))
        self._tasks = [reading, sending]
        await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        while not reading.done():
            if loop.time() > deadline:
                raise RunStopped(f"it did not end within {self._limits.seconds:g} s")
            # Code can make much to read of its memory; so a thread reads, and none that
            # others need.
            measure = self._process.measure_memory
            self._measuring = loop.run_in_executor(self._measurer, measure)
            try:
                size = await asyncio.shield(self._measuring)
            except PermissionError:
                raise RunStopped("its memory cannot be read on this server") from None
            if size > self._limits.memory:
                raise RunStopped(
                    f"its processes and files held more than {self._limits.memory} "
                    "bytes of memory"
                )
            await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        reading.result()

    async def _read_stdout(self, spool: Path) -> None:
        """Store the answer in a file; raises RunStopped if it is too long."""
        bytes_left = _max_line_bytes(self._limits) + self._limits.disk + 16 * MEBIBYTE
        with spool.open("wb") as file:
            while piece := await self._stdout.read(_READ_BYTES):
                bytes_left -= file.write(piece)
                if bytes_left < 0:
                    raise RunStopped("it wrote more than fits into the workspace")

    async def _read_stderr(self) -> None:
        """Keep the beginning; the sandbox waits if there is more."""
        while len(self._stderr_text) < _STDERR_BYTES:
            piece = await self._stderr.read(_STDERR_BYTES)
            if not piece:
                return
            self._stderr_text += piece

    async def end(self) -> None:
        """End the sandbox, and wait until it is gone."""
        if self._measuring is not None:  # it uses what is closed below
            await asyncio.wait({self._measuring})
        self._measurer.shutdown(wait=False)
        try:
            await self._process.kill()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._stdin.close()
            await self._stderr_task  # there may be a word that we have not read
            # The process counts as ended only when its pipes are empty.
            await asyncio.gather(_drain(self._stdout), _drain(self._stderr))
            await self._process.process.wait()
        finally:
            self._process.close()

    def stderr_text(self) -> str:
        """Return the sandbox's error output, for the log.

        Code may have written it. So it is one line, with nothing that a terminal obeys.
        """
        text = " ".join(self._stderr_text.decode("utf-8", "replace").split())
        return "".join(sign if sign.isprintable() else "?" for sign in text)


def _list_request(
    line: bytes, archive: WorkspaceArchive | None, content: bytes
) -> Iterator[bytes]:
    """Yield the pieces of a request: its line, the stored workspace, a file."""
    yield line
    if archive is None:
        yield b"[]\n"
    else:
        with archive.path.open("rb") as file:
            file.seek(archive.start)
            while piece := file.read(_READ_BYTES):
                yield piece
    for start in range(0, len(content), _READ_BYTES):
        yield content[start : start + _READ_BYTES]


async def _send_request(stdin: StreamWriter, request: Iterable[bytes]) -> None:
    """Send a request, no faster than it is read."""
    with suppress(ConnectionError):  # it ended without listening
        for piece in request:
            stdin.write(piece)
            await stdin.drain()
        stdin.close()


async def _drain(stream: StreamReader) -> None:
    while await stream.read(_READ_BYTES):
        pass
