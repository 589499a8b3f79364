"""The workspaces of the chats, in a temporary folder.

The server never unpacks an archive, so links and strange names exist only inside
sandboxes. The folder is locked while its server lives; the kernel releases the lock
however the server ends, and the next server removes unlocked folders.
"""

import asyncio
import mimetypes
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from toolbox.sandbox.backend import MEBIBYTE, SandboxLimits
from toolbox.sandbox.runs import FileSlice, SandboxReply, WorkspaceArchive

_ROOT_PREFIX = "sandbox-workspaces-"


class _WorkspaceRoot:
    """A new folder that only its owner can read."""

    def __init__(self) -> None:
        """Create it; remove abandoned ones."""
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_ROOT_PREFIX}*"):
            _remove_if_abandoned(folder)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
        self._lock = _lock_folder(made)
        # Under this name it would be swept, had it no lock yet.
        self.path = made.rename(parent / (_ROOT_PREFIX + made.name))

    def close(self) -> None:
        """Remove it with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _lock_folder(folder: Path) -> int:
    """Return a locked descriptor of a folder; raises OSError if it is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl = import_module("fcntl")  # Windows has none, but must load this module
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of our own user unless it is in use."""
    with suppress(OSError):  # another server may have removed it meanwhile
        if folder.lstat().st_uid == os.geteuid():
            lock = _lock_folder(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


class SandboxClosed(Exception):
    """The tools were closed; there are no workspaces any more."""


class SandboxFile(NamedTuple):
    """A file that a run wrote: `path` is where its bytes are.

    It stays there until later runs of the chat have returned more than a workspace
    holds, or until the workspace is removed. `name` is for display only.
    """

    name: str
    media_type: str
    path: Path


_MAX_REMEMBERED_FILES = 1000
"""Files of one chat, handed out or received: empty ones would need no disk."""


class Workspace:
    """What one chat keeps."""

    def __init__(self, folder: Path, limits: SandboxLimits) -> None:
        """Begin empty, in an existing folder."""
        self.archive: WorkspaceArchive | None = None
        self.lock = asyncio.Lock()
        self.borrowers = 0
        self.received: dict[str, None] = {}
        """The ids of the attached files that were put into it, oldest first."""
        self._folder = folder
        self._limits = limits
        self._numbers = count(1)
        self._files: list[Path] = []

    def add_received(self, file_id: str) -> None:
        """Remember that an attached file was put into it."""
        self.received[file_id] = None
        if len(self.received) > _MAX_REMEMBERED_FILES:
            del self.received[next(iter(self.received))]

    def _new_path(self) -> Path:
        return self._folder / str(next(self._numbers))

    @contextmanager
    def open_spool(self) -> Iterator[Path]:
        """Lend a path for a reply; the file is removed unless it is stored."""
        path = self._new_path()
        try:
            yield path
        finally:
            if self.archive is None or self.archive.path != path:
                path.unlink(missing_ok=True)

    def store_archive(self, spool: Path, reply: SandboxReply) -> None:
        """Replace the stored workspace by the reply's, if it has one."""
        if reply.archive is not None:
            self.clear()
            self.archive = WorkspaceArchive(spool, reply.archive)

    def clear(self) -> None:
        """Remove the stored workspace."""
        if self.archive is not None:
            self.archive.path.unlink()
            self.archive = None

    def export_files(
        self, spool: Path, parts: Iterable[FileSlice]
    ) -> tuple[SandboxFile, ...]:
        """Copy files that a run wrote, each to its own path."""
        files = tuple(self._export_file(spool, part) for part in parts)
        self._files += [file.path for file in files]
        self._remove_oldest_files()
        return files

    def _export_file(self, spool: Path, part: FileSlice) -> SandboxFile:
        """Copy one file that a run wrote to a path of its own."""
        path = self._new_path()
        _copy_slice(part, spool, path)
        name = printable_name(part.name)
        media_type, _ = mimetypes.guess_type(name)
        return SandboxFile(name, media_type or "application/octet-stream", path)

    def remove(self) -> None:
        """Remove it with the files that were handed out."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _remove_oldest_files(self) -> None:
        """Remove files that were handed out, until the others have room."""
        sizes = [path.stat().st_size for path in self._files]
        while sum(sizes) > self._limits.disk or len(sizes) > _MAX_REMEMBERED_FILES:
            sizes.pop(0)
            self._files.pop(0).unlink()


class WorkspacePool:
    """The workspaces of all chats, each lent to one run at a time."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Create nothing yet."""
        self._limits = limits
        self._root: _WorkspaceRoot | None = None
        self._workspaces: dict[Hashable, Workspace] = {}
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._is_closed = False

    @asynccontextmanager
    async def acquire(self, chat_id: str) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one. Raises SandboxClosed."""
        chat: Hashable = chat_id or object()
        workspace = self._acquire(chat)
        try:
            async with workspace.lock:
                if self._is_closed:
                    raise SandboxClosed
                yield workspace
        finally:
            workspace.borrowers -= 1
            self._release(chat, workspace)

    def _acquire(self, chat: Hashable) -> Workspace:
        if self._is_closed:
            raise SandboxClosed
        if chat in self._timers:
            self._timers.pop(chat).cancel()
        workspace = self._workspaces.pop(chat, None)
        if workspace is None:
            folder = Path(tempfile.mkdtemp(dir=self._open_root()))
            workspace = Workspace(folder, self._limits)
        self._workspaces[chat] = workspace  # the last of all: it was used last
        workspace.borrowers += 1
        return workspace

    def _open_root(self) -> Path:
        self._root = self._root or _WorkspaceRoot()
        return self._root.path

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into one folder, which all runs can read; return it.

        Raises OSError or BadZipFile.
        """
        folder = self._open_root() / "packages"
        folder.parent.chmod(0o711)  # runs have another user if the server is root
        await asyncio.to_thread(_unpack_wheels, wheels, folder)
        return folder

    def _release(self, chat: Hashable, workspace: Workspace) -> None:
        """Start the idle timer; remove the least recently used if there are too many."""
        if workspace.borrowers or self._is_closed:
            return
        loop = asyncio.get_running_loop()
        seconds = self._limits.idle_seconds
        self._timers[chat] = loop.call_later(seconds, self._remove, chat)
        surplus = len(self._workspaces) - self._limits.chats
        idle = [chat for chat in self._workspaces if chat in self._timers]
        for oldest in idle[: max(0, surplus)]:
            self._remove(oldest)

    def _remove(self, chat: Hashable) -> None:
        self._timers.pop(chat).cancel()
        self._workspaces.pop(chat).remove()

    def refuse_new(self) -> None:
        """Lend nothing any more."""
        self._is_closed = True

    async def close(self) -> None:
        """Remove all workspaces, once those that are lent have come back."""
        self.refuse_new()
        for timer in self._timers.values():
            timer.cancel()
        for workspace in self._workspaces.values():
            async with workspace.lock:
                pass
        self._workspaces.clear()
        if self._root is not None:
            self._root.close()
            self._root = None


def _copy_slice(part: FileSlice, source: Path, target: Path) -> None:
    left = part.size
    with source.open("rb") as spool, target.open("wb") as file:
        spool.seek(part.start)
        while left:
            left -= file.write(spool.read(min(left, MEBIBYTE)))


def _unpack_wheels(wheels: Path, folder: Path) -> None:
    """Install wheels as pip does, without their scripts."""
    folder.mkdir(exist_ok=True)
    for wheel in wheels.iterdir():  # a folder that is missing is an error
        if wheel.suffix == ".whl":
            with ZipFile(wheel) as archive:
                archive.extractall(folder)
    for part in folder.glob("*.data/*lib"):  # purelib and platlib
        shutil.copytree(part, folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)  # whatever the umask of the server


_MAX_NAME_LENGTH = 200
"""Characters of a name that is shown; its end tells more than its begin."""


def printable_name(name: str) -> str:
    """Return the last part of a path in a form that can be shown."""
    last = name.rsplit("/", 1)[-1][-_MAX_NAME_LENGTH:]
    return "".join(sign if sign.isprintable() else "_" for sign in last) or "file"
