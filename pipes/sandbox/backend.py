"""Limits of a sandbox, and what makes one."""

import shutil
from typing import NamedTuple, Protocol

from sandbox.processes import ChildProcess

MEBIBYTE = 1024 * 1024


class SandboxLimits(NamedTuple):
    """The limits of one run; sizes are in bytes.

    `memory` is for all processes of a run together, `processes` counts threads as well.
    The workspace and the folder for temporary files have `disk` each, a single file at
    most `file`; a workspace keeps `files` files and folders. `output` limits what is
    printed, the result, and a file that is read; `returned_files` are handed out.
    """

    seconds: float = 30.0
    memory: int = 512 * MEBIBYTE
    processes: int = 32
    disk: int = 64 * MEBIBYTE
    file: int = 32 * MEBIBYTE
    files: int = 1_000
    output: int = 50_000
    returned_files: int = 10


class SharedLimits(NamedTuple):
    """What the users of one server share, whatever the limits of their runs are.

    `runs` and `runs_per_user` are simultaneous. A workspace is removed `idle_seconds`
    after its last use; where there are too many, whoever has the most loses the one
    that was not used for the longest time.
    """

    runs: int = 4
    runs_per_user: int = 2
    workspaces: int = 50
    workspaces_per_user: int = 20
    idle_seconds: float = 3600.0


WRITABLE_FOLDERS = ("/work", "/tmp")
"""Each may hold `disk` bytes."""
NOBODY_UID = 65534
"""The user that runs are handed to; the kernel gives it no rights at all."""
RUN_ENVIRONMENT = {"HOME": "/tmp", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a run; libraries of numbers would start a thread per core."""


class SandboxUnavailable(Exception):
    """No sandbox works here; the text is for an administrator."""


def find_program(name: str) -> str:
    """Return the path of a program; raises SandboxUnavailable."""
    path = shutil.which(name)
    if path is None:
        raise SandboxUnavailable(f"{name} is not installed")
    return path


class SandboxProcess(Protocol):
    """One sandbox with one program in it, which reads stdin and answers on stdout."""

    process: ChildProcess

    def measure_memory(self) -> int:
        """Return the bytes that its processes hold, 0 if something else limits them."""

    async def kill(self) -> None:
        """End all that runs in it."""

    def close(self) -> None:
        """Close the descriptors."""


class SandboxBackend(Protocol):
    """A way to make sandboxes."""

    @property
    def name(self) -> str:
        """What an administrator calls it."""

    async def start(self, program: str, limits: SandboxLimits) -> SandboxProcess:
        """Start a program in a sandbox; raises SandboxUnavailable."""
