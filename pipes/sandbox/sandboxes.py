"""The sandbox of the options that hold now, and those of earlier options.

A call ends in the sandbox in which it began. So the sandbox of earlier options stays
until its last call has ended; then it is closed, and its packages are removed. All share
the limit of the server's runs.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspacePool

_Options = TypeVar("_Options", bound=Hashable)


class Sandboxes(Generic[_Options]):
    """Lends the sandbox of some options to each call."""

    def __init__(
        self,
        make: Callable[[_Options, WorkspacePool], SandboxTools],
        shared: WorkspacePool,
    ) -> None:
        """`shared` has the queue of all runs, and the packages of all sandboxes."""
        self._make = make
        self._shared = shared
        self._sandboxes: dict[_Options, SandboxTools] = {}
        self._calls = Counter[_Options]()
        self._newest: _Options | None = None

    @asynccontextmanager
    async def lend(self, options: _Options) -> AsyncGenerator[SandboxTools, None]:
        """Lend the sandbox of these options, which are those that hold now."""
        if options not in self._sandboxes:
            self._sandboxes[options] = self._make(options, self._shared)
        self._newest = options
        self._calls[options] += 1
        try:
            yield self._sandboxes[options]
        finally:
            self._calls[options] -= 1
            for earlier in list(self._sandboxes):
                if earlier != self._newest and not self._calls[earlier]:
                    del self._calls[earlier]
                    closed = self._sandboxes.pop(earlier, None)
                    if closed:  # not by another call that ended meanwhile
                        await closed.close()

    async def close(self) -> None:
        """Close all of them, whatever runs there."""
        while self._sandboxes:
            _, sandbox = self._sandboxes.popitem()
            await sandbox.close()
