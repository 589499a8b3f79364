"""The workspaces of the chats, in a folder that outlives the server's processes.

Open WebUI loads a tool anew whenever its text changes, and in each of its workers. So
nothing about a workspace is kept in memory: `<folder>/<user>/<chat>/archive.<start>` is
the packed workspace, which begins at the byte `start` of that file, and `received`
names the attached files that were put into it. Names of users and chats are hashed, so
no id of theirs becomes a path. Whoever uses a workspace holds a lock on its folder,
which the kernel releases however the process ends.

A run works in a folder of its own next to the archive, where the files that it returns
stay until `discard_files`.
"""

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_hex

from sandbox.backend import SharedLimits
from sandbox.runs import WorkspaceArchive
from sandbox.workspaces import (
    SandboxFile,
    Workspace,
    WorkspaceKey,
    WorkspacePool,
    lock_folder,
    remove_folder,
)

_LOCK_SECONDS = 0.05
"""How often a call looks whether the workspace of its chat is free."""
_ABANDONED_SECONDS = 600.0
"""Files that a run returned are read at once; a killed server leaves them."""
_ARCHIVE = "archive."
_RUN = "run-"
_RECEIVED = "received"
"""The ids of the attached files that were put into the workspace, as a JSON list."""


class StoredWorkspaces:
    """Lends each workspace to one run at a time, in all processes of the server."""

    def __init__(
        self, folder: Path, limits: SharedLimits, shared: WorkspacePool
    ) -> None:
        """`shared` has the queue of this process's runs, and their packages."""
        self._shared = shared
        self.runs = shared.runs
        self._folder = folder
        self._limits = limits

    @asynccontextmanager
    async def acquire(self, key: WorkspaceKey) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one, which is then removed."""
        is_temporary = not key.chat
        if is_temporary:
            key = key._replace(chat=token_hex(16))
        folder = self._path_of(key)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_surplus(except_for=folder)
        # Another process may hold it, and nothing tells when it lets go.
        while (lock := _try_lock(folder)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOCK_SECONDS)
        try:
            for path in folder.glob(f"{_RUN}*"):  # what a killed server left
                with suppress(FileNotFoundError):  # another process removed it
                    if path.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                        remove_folder(path)
            run_folder = Path(tempfile.mkdtemp(prefix=_RUN, dir=folder))
            workspace = Workspace(run_folder)
            # A server that was killed when it replaced an archive has left both.
            archives = list(folder.glob(f"{_ARCHIVE}*"))
            if archives:
                path = max(archives, key=lambda archive: archive.stat().st_mtime_ns)
                start = int(path.name.removeprefix(_ARCHIVE))
                workspace.archive = WorkspaceArchive(path, start)
            workspace.received = _read_received(folder)
            has_returned = False
            try:
                yield workspace
                has_returned = True
            finally:
                # The server may be killed at any line. So the old archive is there until
                # the new one is, and no file counts as received before its archive.
                archive = workspace.archive
                kept: Path | None = None
                if archive is not None:
                    kept = archive.path
                    if kept.parent == run_folder:  # it is that of this run
                        kept = kept.rename(folder / f"{_ARCHIVE}{archive.start}")
                _remove_archives(folder, except_for=kept)
                if workspace.received != _read_received(folder):
                    received = run_folder / _RECEIVED
                    received.write_text(json.dumps(list(workspace.received)), "utf-8")
                    received.rename(folder / _RECEIVED)
                if has_returned:
                    _remove_if_empty(run_folder)
                else:  # nobody will read what it has returned
                    remove_folder(run_folder)
                if is_temporary:
                    _remove_archives(folder)
                    (folder / _RECEIVED).unlink(missing_ok=True)
                    _remove_if_empty(folder)
                    _remove_if_empty(folder.parent)
        finally:
            os.close(lock)

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""
        return bool(key.chat) and self._path_of(key).is_dir()

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it."""
        return await self._shared.install(wheels)

    def _path_of(self, key: WorkspaceKey) -> Path:
        return self._folder / _folder_name(key.user) / _folder_name(key.chat)

    def _remove_surplus(self, except_for: Path) -> None:
        """Remove workspaces whose time is over, and the oldest of too many."""
        folders: list[tuple[float, Path]] = []
        for folder in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):  # another process has just removed it
                folders.append((folder.stat().st_mtime, folder))
        expired = time.time() - self._limits.idle_seconds
        by_user: dict[Path, list[Path]] = {}
        for last_used, folder in sorted(folders):
            if last_used < expired and folder != except_for:
                _remove_unless_locked(folder)
            else:
                by_user.setdefault(folder.parent, []).append(folder)
        # Whoever has the most loses the one that was not used for the longest time, so
        # that the chats of one user cannot push out those of others.
        too_many: list[Path] = []
        for own in by_user.values():
            while len(own) > self._limits.workspaces_per_user:
                too_many.append(own.pop(0))
        while sum(map(len, by_user.values())) > self._limits.workspaces:
            largest = max(by_user.values(), key=len)
            too_many.append(largest.pop(0))
        for folder in too_many:
            if folder != except_for:
                _remove_unless_locked(folder)


def discard_files(files: Iterable[SandboxFile]) -> None:
    """Remove files that a run returned, and its folders once they are empty."""
    for file in files:
        file.path.unlink(missing_ok=True)
        run_folder, chat_folder, user_folder, *_ = file.path.parents
        for folder in (run_folder, chat_folder, user_folder):
            _remove_if_empty(folder)


def _folder_name(host_id: str) -> str:
    """Return the name of the folder of a user or a chat."""
    return hashlib.sha256(host_id.encode("utf-8", "replace")).hexdigest()[:32]


def _try_lock(folder: Path) -> int | None:
    """Return a locked descriptor of a folder, which is created if needed.

    None: somebody else holds the lock.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError, BlockingIOError):
        lock = lock_folder(folder)
        # Another call may have removed it between its creation and the lock.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), folder.stat()):
                return lock
        os.close(lock)
    return None


def _read_received(folder: Path) -> dict[str, None]:
    try:
        ids = json.loads((folder / _RECEIVED).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # none yet, or half of one: a full disk
        return {}
    return dict.fromkeys(ids)


def _remove_archives(folder: Path, except_for: Path | None = None) -> None:
    for path in folder.glob(f"{_ARCHIVE}*"):
        if path != except_for:
            path.unlink()


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it, or it is gone
        folder.rmdir()


def _remove_unless_locked(folder: Path) -> None:
    """Remove the workspace of a chat that no run uses."""
    with suppress(OSError):
        lock = lock_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        _remove_if_empty(folder.parent)
