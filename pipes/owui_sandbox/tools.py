"""
title: Sandbox
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model run Python and shell commands, and keep files, in a sandbox.

The tools that Open WebUI offers to the model.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, Field

from owui_host.lookup import HostTooOld
from owui_sandbox.calls import (
    SandboxCall,
    give_files,
    read_sandbox_call,
    receive_attached,
)
from owui_sandbox.host import data_folder, private_paths
from owui_sandbox.stored_workspaces import StoredWorkspaces, discard_files
from sandbox.backend import SandboxBackend, SandboxLimits, SharedLimits
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.options import SandboxOptions, build_sandbox_limits
from sandbox.sandboxes import Sandboxes
from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspacePool
from shells.valve_texts import read_json_valve

_FOLDER = "openai_responses_sandbox"
"""Where the workspaces are, in the server's data folder."""
_SECONDS_PER_HOUR = 3600.0
_LOG = logging.getLogger("openai_responses_sandbox")


class StoredSandboxOptions(SandboxOptions):
    """What SANDBOX_OPTIONS of this tool can hold."""

    hours: int = Field(
        default=24,
        ge=1,
        le=720,
        description="How long the files of a chat are kept after their last use, 1 to "
        "720.",
    )


class SandboxValves(BaseModel):
    """The settings that an administrator sees."""

    SANDBOX_OPTIONS: str = Field(
        default="",
        description="A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of "
        "one chat, `hours` that its files are kept, `wheels` (a folder of packages to "
        'import). Example: `{"seconds": 60, "wheels": "/srv/wheels"}`.',
    )


class Tools:
    """Runs code, and works on files, in the workspace of the chat that calls.

    Open WebUI offers each public method as a tool: its docstring is the description
    that the model reads.
    """

    Valves = SandboxValves

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._sandboxes = Sandboxes(_make_sandbox, WorkspacePool())

    async def python_execute(
        self,
        code: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Run Python code in a sandbox without network access. Each run is a fresh
        process; the files in the current folder (/work, the workspace of this chat)
        outlive it, and its modules can be imported. What the user attached is there,
        by name. Returns JSON with what was printed (stdout, stderr), the value of the
        last expression (result), and the files that were written, which the user is
        shown.

        :param code: The Python code.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "python_execute", {"code": code})

    async def shell_execute(
        self,
        command: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Run a shell command (sh) in a sandbox without network access, in the
        workspace of this chat (/work). Returns JSON with stdout, stderr, and the
        files that were written, which the user is shown.

        :param command: The command, like: grep -n total *.csv | head
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "shell_execute", {"command": command})

    async def sandbox_fs_list(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """List a folder of this chat's workspace.

        :param path: A path in the workspace, like plots; the whole workspace is ".".
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_list", {"path": path})

    async def sandbox_fs_read(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Read a text file of this chat's workspace; any other file is shown to the
        user.

        :param path: A path in the workspace, like data/a.csv.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_read", {"path": path})

    async def sandbox_fs_write(
        self,
        path: str,
        content: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Write a text file in this chat's workspace, with the folders above it.

        :param path: A path in the workspace, like src/main.py.
        :param content: The whole new text of the file.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(
            call, "sandbox_fs_write", {"path": path, "content": content}
        )

    async def sandbox_fs_edit(  # noqa: PLR0913, PLR0917 (four are Open WebUI's)
        self,
        path: str,
        old: str,
        new: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Replace one passage of a text file in this chat's workspace. The passage
        must occur exactly once.

        :param path: A path in the workspace, like src/main.py.
        :param old: The exact passage, with its spaces and line breaks.
        :param new: The text that replaces it.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(
            call, "sandbox_fs_edit", {"path": path, "old": old, "new": new}
        )

    async def sandbox_fs_mkdir(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Create a folder in this chat's workspace, with those above it.

        :param path: A path in the workspace, like plots.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_mkdir", {"path": path})

    async def sandbox_fs_remove(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Remove a file of this chat's workspace, or a folder with all that it holds.

        :param path: A path in the workspace, like plots/old.png.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_remove", {"path": path})

    async def _run(
        self, call: SandboxCall, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Run a tool; return what the model reads."""
        if sys.platform != "linux":
            return "Error: The sandbox does not run on this server: it needs Linux."
        try:
            async with self._sandboxes.lend(self.valves.SANDBOX_OPTIONS) as sandbox:
                notes = await receive_attached(sandbox, call)
                result = await sandbox.call(call.key, name, arguments)
                lacking = sandbox.missing
        except HostTooOld as missing:
            return f"Error: The sandbox does not run on this server: {missing}"
        if lacking:
            return (
                f"Error: The sandbox does not run on this server: {lacking}. "
                "An administrator can change that; some minutes later it is used."
            )
        try:
            notes += await give_files(call, result.files)
        finally:
            discard_files(result.files)
        return "\n".join([result.text, *notes])


def _make_sandbox(text: str, shared: WorkspacePool) -> SandboxTools:
    """Return a sandbox with the options of the valve; raises HostTooOld."""
    options, problems = read_json_valve("SANDBOX_OPTIONS", text, StoredSandboxOptions)
    for problem in problems:
        _LOG.warning(problem)
    limits = SharedLimits(idle_seconds=options.hours * _SECONDS_PER_HOUR)
    return SandboxTools(
        StoredWorkspaces(data_folder() / _FOLDER, limits, shared),
        build_sandbox_limits(options, SandboxLimits().output),
        options.wheels,
        _LOG.warning,
        _list_bubblewraps,
        private_paths(),
    )


def _list_bubblewraps(packages: str) -> Iterator[SandboxBackend]:
    """Yield the backends: the system's programs are in each, for shell commands."""
    for python in find_interpreters():
        yield BubblewrapBackend(python, packages, with_programs=True)
