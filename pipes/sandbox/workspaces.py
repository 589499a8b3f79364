"""The workspaces of the chats, in a temporary folder.

They outlive a change of the limits: only `SharedLimits` belong to the pool.

The server never unpacks an archive, so links and strange names exist only inside
sandboxes. The folder is locked while its server lives; the kernel releases the lock
however the server ends, and the next server removes unlocked folders.
"""

import asyncio
import mimetypes
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from importlib import import_module
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple, Protocol
from zipfile import ZipFile

from sandbox.backend import MEBIBYTE, SharedLimits
from sandbox.queues import RunQueue
from sandbox.runs import FileSlice, SandboxReply, WorkspaceArchive

_ROOT_PREFIX = "sandbox-workspaces-"


class _WorkspaceRoot:
    """A new folder that only its owner can read."""

    def __init__(self) -> None:
        """Create it; remove those of our own user that no server has any more."""
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_ROOT_PREFIX}*"):
            with suppress(OSError):  # in use, or another server has just removed it
                if folder.lstat().st_uid == os.geteuid():
                    lock = lock_folder(folder)
                    remove_folder(folder)
                    os.close(lock)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
        self._lock = lock_folder(made)
        # Under this name it would be swept, had it no lock yet.
        self.path = made.rename(parent / (_ROOT_PREFIX + made.name))

    def close(self) -> None:
        """Remove it with its contents."""
        remove_folder(self.path)
        os.close(self._lock)


def lock_folder(folder: Path) -> int:
    """Return a locked descriptor of a folder; raises OSError if it is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl = import_module("fcntl")  # Windows has none, but must load this module
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class SandboxClosed(Exception):
    """The tools were closed; there are no workspaces any more."""


class WorkspaceKey(NamedTuple):
    """Names a workspace: that of a user in a chat.

    Whoever knows the key can use the workspace. Without a chat each call has a new one.
    """

    user: str
    chat: str


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

    def __init__(self, folder: Path) -> None:
        """Begin empty, in an existing folder."""
        self.archive: WorkspaceArchive | None = None
        self.lock = asyncio.Lock()
        self.borrowers = 0
        self.received: dict[str, None] = {}
        """The ids of the attached files that were put into it, oldest first."""
        self._folder = folder
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
        """Forget the stored workspace.

        One that an earlier call stored is kept elsewhere, and is removed by whoever
        keeps it: a server that is killed in this call must not lose it.
        """
        if self.archive is not None and self.archive.path.parent == self._folder:
            self.archive.path.unlink()
        self.archive = None

    def export_files(
        self, spool: Path, parts: Iterable[FileSlice], max_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """Copy files that a run wrote, each to its own path.

        Of all that were handed out, the newest stay, up to `max_bytes`.
        """
        files = []
        for part in parts:
            path = self._new_path()
            left = part.size
            try:
                with spool.open("rb") as source, path.open("wb") as target:
                    source.seek(part.start)
                    while left:
                        left -= target.write(source.read(min(left, MEBIBYTE)))
            except OSError:  # a full disk must not keep the beginning, too
                path.unlink(missing_ok=True)
                raise
            self._files.append(path)
            name = printable_name(part.name)
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            files.append(SandboxFile(name, media_type, path))
        sizes = [path.stat().st_size for path in self._files]
        while sum(sizes) > max_bytes or len(sizes) > _MAX_REMEMBERED_FILES:
            sizes.pop(0)
            self._files.pop(0).unlink()
        return tuple(files)

    def remove(self) -> None:
        """Remove it with the files that were handed out."""
        remove_folder(self._folder)


class Workspaces(Protocol):
    """Keeps the workspaces of all chats."""

    @property
    def runs(self) -> RunQueue:
        """Says which run may begin."""

    def acquire(self, key: WorkspaceKey) -> AbstractAsyncContextManager[Workspace]:
        """Lend a chat's workspace; without a chat a new one."""

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it."""


class WorkspacePool:
    """The workspaces of all chats, each lent to one run at a time.

    `runs` says which run may begin.
    """

    def __init__(self, limits: SharedLimits | None = None) -> None:
        self._limits = limits or SharedLimits()
        self.runs = RunQueue(self._limits)
        self._root: _WorkspaceRoot | None = None
        self._workspaces: dict[WorkspaceKey, Workspace] = {}
        """The least recently used first."""
        self._timers: dict[WorkspaceKey, asyncio.TimerHandle] = {}
        """Of the workspaces that nobody uses now."""
        self._is_closed = False

    @asynccontextmanager
    async def acquire(self, key: WorkspaceKey) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one. Raises SandboxClosed."""
        if not key.chat:
            key = key._replace(chat=token_hex(16))
        if self._is_closed:
            raise SandboxClosed
        if key in self._timers:
            self._timers.pop(key).cancel()
        workspace = self._workspaces.pop(key, None)
        if workspace is None:
            workspace = Workspace(Path(tempfile.mkdtemp(dir=self._open_root())))
        self._workspaces[key] = workspace  # the last of all: it was used last
        workspace.borrowers += 1
        try:
            async with workspace.lock:
                if self._is_closed:
                    raise SandboxClosed
                yield workspace
        finally:
            workspace.borrowers -= 1
            if not workspace.borrowers and not self._is_closed:
                # From now on it is idle; there may be too many such.
                self._timers[key] = asyncio.get_running_loop().call_later(
                    self._limits.idle_seconds, self._remove, key
                )
                while surplus := self._find_surplus():
                    self._remove(surplus)

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""
        return key in self._workspaces

    def _open_root(self) -> Path:
        self._root = self._root or _WorkspaceRoot()
        return self._root.path

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it.

        Raises OSError or BadZipFile.
        """
        root = self._open_root()
        root.chmod(0o711)  # runs have another user if the server is root
        folder = Path(tempfile.mkdtemp(prefix="packages-", dir=root))
        await asyncio.to_thread(_unpack_wheels, wheels, folder)
        return folder

    def _find_surplus(self) -> WorkspaceKey | None:
        """Return the workspace to remove next; None if there are not too many.

        Whoever has the most loses the one that was not used for the longest time, so
        that the chats of one user cannot push out those of others.
        """
        limits = self._limits
        counts = Counter(key.user for key in self._workspaces)
        idle = [key for key in self._workspaces if key in self._timers]
        for key in idle:
            if counts[key.user] > limits.workspaces_per_user:
                return key
        if not idle or len(self._workspaces) <= limits.workspaces:
            return None
        most = max(counts[key.user] for key in idle)
        return next(key for key in idle if counts[key.user] == most)

    def _remove(self, key: WorkspaceKey) -> None:
        self._timers.pop(key).cancel()
        self._workspaces.pop(key).remove()

    async def close(self) -> None:
        """Remove all workspaces, once those that are lent have come back."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        for workspace in self._workspaces.values():
            async with workspace.lock:
                pass
        self._workspaces.clear()
        if self._root is not None:
            self._root.close()
            self._root = None


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)


def _unpack_wheels(wheels: Path, folder: Path) -> None:
    """Install wheels as pip does, without their scripts."""
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
