"""The code interpreter's tools, offered only where a sandbox holds.

What an agent needs of them: `specs()`, then `call()` for each call, `close()` at the
end.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolbox.bubblewrap import Bubblewrap, interpreters
from toolbox.cells import SandboxBackend, SandboxMissing
from toolbox.containers import Containers
from toolbox.conversations import RunStopped, Sandbox
from toolbox.probing import find_sandbox
from toolbox.replies import SandboxSilent
from toolbox.sandbox_answers import SandboxAnswer, failed_in_sandbox, sandbox_answer
from toolbox.sandbox_limits import SandboxLimits
from toolbox.sandbox_specs import (
    SandboxMisused,
    SandboxSpec,
    sandbox_request,
    sandbox_specs,
)
from toolbox.workspaces import SandboxClosed, Workspace, Workspaces

_CONTAINER_IMAGE = "python:3.12-slim"


def usual_backends(
    wheels: str = "", image: str = _CONTAINER_IMAGE
) -> list[SandboxBackend]:
    """Return the ways to a sandbox in the order in which they are tried.

    `image` is what containers are made of: one that is there, with a `python3` in it.
    """
    return [
        *(Bubblewrap(python, wheels) for python in interpreters()),
        *(Containers(client, image, wheels) for client in ("docker", "podman")),
    ]


class SandboxTools:
    """The tools of one server; `chat_id` tells the chats' workspaces apart.

    Whoever calls vouches for the chat: who knows its id works in its workspace.
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        wheels: str = "",
        log: Callable[[str], object] = str,
        backends: Iterable[SandboxBackend] | None = None,
    ) -> None:
        """Try nothing yet; `wheels` is the folder that dependencies come out of."""
        self._limits = limits or SandboxLimits()
        self._with_dependencies = bool(wheels)
        self._log = log
        self._backends = usual_backends(wheels) if backends is None else backends
        self._workspaces = Workspaces(self._limits)
        self._slots = asyncio.Semaphore(self._limits.at_once)
        self._looking = asyncio.Lock()
        self._has_looked = False
        self._sandbox: Sandbox | None = None

    async def specs(self) -> list[SandboxSpec]:
        """Return name, description and parameters of each tool; none, no sandbox.

        The first time looks for a sandbox; why there is none is logged once.
        """
        has_sandbox = await self._find() is not None
        return sandbox_specs(self._with_dependencies) if has_sandbox else []

    async def call(
        self, chat_id: str, name: str, arguments: Mapping[str, Any]
    ) -> SandboxAnswer:
        """Run a tool; cancelling the call ends the run."""
        try:
            request = sandbox_request(name, arguments, self._with_dependencies)
            sandbox = await self._find()
            if sandbox is None:
                return failed_in_sandbox("There is no sandbox on this server.")
            async with self._workspaces.lend(chat_id) as workspace, self._slots:
                return await self._answer(sandbox, request, workspace)
        except SandboxMisused as bad:
            return failed_in_sandbox(str(bad))
        except SandboxClosed:
            return failed_in_sandbox("The sandbox was closed.")
        except RunStopped as stopped:
            return failed_in_sandbox(
                f"The run was stopped, because {stopped}. The workspace is as it was."
            )
        except (SandboxMissing, SandboxSilent, OSError) as silent:
            self._log(f"A run in the sandbox gave no answer: {silent}")
            return failed_in_sandbox("The run ended without an answer.")

    async def close(self) -> None:
        """End what runs, then remove all workspaces."""
        self._workspaces.shut()
        if self._sandbox is not None:
            await self._sandbox.stop()
        await self._workspaces.close()

    async def _answer(
        self, sandbox: Sandbox, request: dict[str, Any], workspace: Workspace
    ) -> SandboxAnswer:
        with workspace.spool() as spool:
            reply = await sandbox.ask(request, workspace.archive, spool)
            files = workspace.hand_out(spool, reply.changed[: self._limits.returned])
            workspace.keep(spool, reply)
            if "damaged" in reply.answer:
                workspace.empty()
            return sandbox_answer(reply, files, self._limits)

    async def _find(self) -> Sandbox | None:
        """Return the sandbox, which the first call looks for."""
        async with self._looking:
            if not self._has_looked:
                self._sandbox = await self._look()
                self._has_looked = True
        return self._sandbox

    async def _look(self) -> Sandbox | None:
        async with self._workspaces.lend("") as workspace:
            with workspace.spool() as spool:
                try:
                    return await find_sandbox(self._backends, self._limits, spool)
                except SandboxMissing as missing:
                    self._log(f"The tools of the sandbox are not offered: {missing}.")
        return None
