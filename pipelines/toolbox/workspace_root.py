"""A folder of our own for the workspaces, swept of those that dead servers left.

As long as its server lives it holds a lock on the folder, which also tells those who
clean up temporary files to leave it alone. The kernel lets go of the lock however the
server ended.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_ROOT_PREFIX = "sandbox-workspaces-"


class WorkspaceRoot:
    """A fresh folder that nobody else may read."""

    def __init__(self) -> None:
        """Make it, after removing what was left behind."""
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_ROOT_PREFIX}*"):
            _remove_abandoned(folder)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
        self._lock = _locked(made)
        # Under this name it would be swept, had it no lock yet.
        self.path = made.rename(parent / (_ROOT_PREFIX + made.name))

    def close(self) -> None:
        """Remove it with all that it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """Return a folder, opened, with a lock on it; raises OSError if another has one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl = import_module("fcntl")  # Windows has none, but must load this module
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder of ours unless it is in use; touch nothing of others."""
    if folder.lstat().st_uid == os.geteuid():
        with suppress(OSError):
            lock = _locked(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
