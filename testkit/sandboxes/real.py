"""A real sandbox for tests: bubblewrap, or a failure that says why there is none."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from marking import require_mark
from sandbox.backend import MEBIBYTE, SandboxLimits, SharedLimits
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.program import SANDBOX_PROGRAM
from sandbox.tools import SandboxResult, SandboxTools
from sandbox.workspaces import WorkspaceKey, WorkspacePool

CANARY = "sk-proj-CANARY123"
TIGHT = SandboxLimits(
    seconds=60.0,
    memory=128 * MEBIBYTE,
    processes=8,
    disk=8 * MEBIBYTE,
    file=4 * MEBIBYTE,
    files=50,
    output=10_000,
)
"""Small enough that every attack meets its limit at once; time is never measured."""


@dataclass(frozen=True)
class Ran:
    """What a run of code told."""

    answer: SandboxResult
    log: Sequence[str] = ()

    @property
    def told(self) -> Mapping[str, Any]:
        assert self.answer.text.startswith("{"), (self.answer.text, self.log)
        output: Mapping[str, Any] = json.loads(self.answer.text)
        return output

    @property
    def result(self) -> Any:
        """The value of the last expression of code that ended well."""
        assert not self.answer.failed, self.answer.text[:2000]
        return self.told["result"]


@dataclass(frozen=True)
class Chat:
    """The tools as one chat uses them."""

    tools: SandboxTools
    name: str = "a chat"
    log: list[str] = field(default_factory=list)
    user: str = ""

    @property
    def key(self) -> WorkspaceKey:
        """The workspace of its user, or of one who has only this chat."""
        return WorkspaceKey(self.user or f"user of {self.name}", self.name)

    async def run(self, code: str, **more: Any) -> Ran:
        arguments = {"code": code, **more}
        answer = await self.tools.call(self.key, "python_execute", arguments)
        return Ran(answer, self.log)

    async def file(self, operation: str, **arguments: str) -> SandboxResult:
        return await self.tools.call(self.key, f"sandbox_fs_{operation}", arguments)

    async def still_works(self) -> bool:
        return bool((await self.run("6 * 7")).result == 42)


@asynccontextmanager
async def sandboxed(
    limits: SandboxLimits = TIGHT,
    wheels: str = "",
    shared: SharedLimits | None = None,
    pythons: Sequence[Path] = (),
) -> AsyncIterator[Chat]:
    """Lend a chat with tools that are closed afterwards.

    Its code runs in the first of `pythons` that works, or in what a server would use.
    """
    workspaces = WorkspacePool(shared)
    log: list[str] = []
    tools = SandboxTools(
        workspaces,
        limits,
        wheels,
        log.append,
        lambda packages: [
            BubblewrapBackend(python, packages)
            for python in pythons or find_interpreters()
        ],
    )
    try:
        if not await tools.specs():
            pytest.fail(
                "The sandbox is not tested: " + " ".join(log) + " Install it with "
                "`apt-get install bubblewrap`, on a kernel that lets users make "
                "namespaces."
            )
        require_mark("sandbox")
        yield Chat(tools, log=log)
    finally:
        await tools.close()
        await workspaces.close()
    assert sandboxed_processes() == []


def sandboxed_processes() -> list[int]:
    """Return the processes below this one that run in a sandbox, or around one."""
    parents = dict(_parents())
    below = {os.getpid()}
    while True:
        children = {pid for pid, parent in parents.items() if parent in below}
        if children <= below:
            break
        below |= children
    program = SANDBOX_PROGRAM.encode()[:200]
    return [pid for pid in sorted(below) if program in _command(pid)]


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each process of the host with its parent."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            yield int(name), int(fields[1])


def _command(number: int) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{number}/cmdline").read_bytes()
    return b""
