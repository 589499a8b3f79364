"""The place where one run is shut in, as every backend offers it."""

from asyncio.subprocess import Process
from typing import Protocol

from toolbox.sandbox_limits import SandboxLimits

NOBODY = 65534
"""The user that runs are handed to; the kernel gives it no rights at all."""
RUN_VARIABLES = {"HOME": "/tmp", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a run; libraries of numbers would start a thread per core."""


class SandboxMissing(Exception):
    """A sandbox cannot be had here; the text says why, for an administrator."""


class Cell(Protocol):
    """One sandbox with one program in it, which reads stdin and answers on stdout."""

    process: Process

    def memory(self) -> int:
        """Return the bytes that its processes hold, where nothing else limits them."""

    async def kill(self) -> None:
        """End all that runs in it; its process ends when the last of them is gone."""

    def close(self) -> None:
        """Let go of what was held to watch it."""


class SandboxBackend(Protocol):
    """A way to make cells."""

    @property
    def name(self) -> str:
        """What an administrator calls it."""

    async def open_cell(self, program: str, limits: SandboxLimits) -> Cell:
        """Start a program in a cell of its own; raises SandboxMissing."""
