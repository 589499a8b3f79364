"""What the chats keep between their runs: an archive each, with the files handed out.

The server never unpacks an archive. What code leaves in its workspace (links, odd
names) exists as such inside sandboxes alone.
"""

import asyncio
import mimetypes
import shutil
from collections.abc import AsyncGenerator, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from toolbox.conversations import KeptArchive
from toolbox.replies import FilePart, SandboxReply
from toolbox.sandbox_limits import MEBIBYTE, SandboxLimits
from toolbox.workspace_root import WorkspaceRoot

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class SandboxClosed(Exception):
    """The tools were closed; there are no workspaces any more."""


@dataclass(frozen=True, slots=True)
class SandboxFile:
    """A file that a run wrote: `path` is where its bytes are.

    They stay there until later runs of the chat have handed out more than a workspace
    holds, or until the workspace is forgotten. `name` is only for people.
    """

    name: str
    media_type: str
    path: Path

    @property
    def is_image(self) -> bool:
        """Say whether every browser can show it."""
        return self.media_type in _IMAGES


class Workspace:
    """What one chat keeps."""

    def __init__(self, folder: Path, limits: SandboxLimits) -> None:
        """Begin empty, in a folder that is there."""
        self.archive: KeptArchive | None = None
        self.lock = asyncio.Lock()
        self.borrowers = 0
        self._folder = folder
        self._limits = limits
        self._numbers = count(1)
        self._files: list[Path] = []

    def _new_path(self) -> Path:
        return self._folder / str(next(self._numbers))

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """Lend a path for a reply; what is written there goes unless it is kept."""
        path = self._new_path()
        try:
            yield path
        finally:
            if self.archive is None or self.archive.path != path:
                path.unlink(missing_ok=True)

    def keep(self, spool: Path, reply: SandboxReply) -> None:
        """Let the workspace in a reply, if it has one, replace what was kept."""
        if reply.archive is not None:
            self.empty()
            self.archive = KeptArchive(spool, reply.archive)

    def empty(self) -> None:
        """Keep nothing of the workspace."""
        if self.archive is not None:
            self.archive.path.unlink()
            self.archive = None

    def hand_out(
        self, spool: Path, parts: Iterable[FilePart]
    ) -> tuple[SandboxFile, ...]:
        """Copy files that a run wrote, each to a path of its own."""
        files = tuple(self._copied(spool, part) for part in parts)
        self._files += [file.path for file in files]
        self._make_room()
        return files

    def _copied(self, spool: Path, part: FilePart) -> SandboxFile:
        path = self._new_path()
        _copy(part, spool, path)
        name = _printable(part.name)
        media_type, _ = mimetypes.guess_type(name)
        return SandboxFile(name, media_type or "application/octet-stream", path)

    def remove(self) -> None:
        """Remove it with the files that were handed out."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_room(self) -> None:
        """Remove the oldest of the files that were handed out, if they are too many."""
        sizes = [path.stat().st_size for path in self._files]
        while sum(sizes) > self._limits.disk:
            sizes.pop(0)
            self._files.pop(0).unlink()


class Workspaces:
    """The workspaces of all chats, each lent to one run at a time."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Make nothing yet."""
        self._limits = limits
        self._root: WorkspaceRoot | None = None
        self._kept: dict[Hashable, Workspace] = {}
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._is_closed = False

    @asynccontextmanager
    async def lend(self, chat_id: str) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a fresh one. Raises SandboxClosed."""
        chat: Hashable = chat_id or object()
        workspace = self._borrow(chat)
        try:
            async with workspace.lock:
                if self._is_closed:
                    raise SandboxClosed
                yield workspace
        finally:
            workspace.borrowers -= 1
            self._return(chat, workspace)

    def _borrow(self, chat: Hashable) -> Workspace:
        if self._is_closed:
            raise SandboxClosed
        if chat in self._timers:
            self._timers.pop(chat).cancel()
        workspace = self._kept.pop(chat, None) or self._new_workspace()
        self._kept[chat] = workspace  # the last of all: it was used last
        workspace.borrowers += 1
        return workspace

    def _new_workspace(self) -> Workspace:
        self._root = self._root or WorkspaceRoot()
        folder = self._root.path / str(next(self._numbers))
        folder.mkdir()
        return Workspace(folder, self._limits)

    def _return(self, chat: Hashable, workspace: Workspace) -> None:
        """Begin to count the idle time; forget those that were not used for longest."""
        if workspace.borrowers or self._is_closed:
            return
        loop = asyncio.get_running_loop()
        seconds = self._limits.idle_seconds
        self._timers[chat] = loop.call_later(seconds, self._forget, chat)
        surplus = len(self._kept) - self._limits.chats
        idle = [one for one in self._kept if one in self._timers]
        for oldest in idle[: max(0, surplus)]:
            self._forget(oldest)

    def _forget(self, chat: Hashable) -> None:
        self._timers.pop(chat).cancel()
        self._kept.pop(chat).remove()

    def shut(self) -> None:
        """Lend nothing any more."""
        self._is_closed = True

    async def close(self) -> None:
        """Remove all workspaces, once those that are lent have come back."""
        self.shut()
        for timer in self._timers.values():
            timer.cancel()
        for workspace in self._kept.values():
            async with workspace.lock:
                pass
        self._kept.clear()
        if self._root is not None:
            self._root.close()
            self._root = None


def _copy(part: FilePart, source: Path, target: Path) -> None:
    left = part.size
    with source.open("rb") as spool, target.open("wb") as file:
        spool.seek(part.start)
        while left:
            left -= file.write(spool.read(min(left, MEBIBYTE)))


def _printable(name: str) -> str:
    """Return the last part of a path, fit for being shown."""
    last = name.rsplit("/", 1)[-1]
    return "".join(sign if sign.isprintable() else "_" for sign in last) or "file"
