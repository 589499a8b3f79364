"""Tools of a sandbox for one test, with workspaces that go with them."""

from typing import Any

from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspacePool


class OwnedTools(SandboxTools):
    """The tools, and the pool of their workspaces."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._pool = WorkspacePool()
        super().__init__(self._pool, *given, **named)

    async def close(self) -> None:
        """Close both: no run begins any more, and what is under way ends."""
        await super().close()
        await self._pool.close()
