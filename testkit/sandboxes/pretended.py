"""Programs of the host in the place of a sandbox, to show what we do with any answer.

None of them runs code of anybody: each does one thing that a broken sandbox may do.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from subprocess import PIPE

from sandbox.backend import SandboxLimits, SandboxUnavailable
from sandbox.processes import ChildProcess, start_process
from sandbox.tools import SandboxResult, SandboxTools
from sandbox.workspaces import WorkspaceKey

CONFINED = {
    "capabilities": 0,
    "no_new_privileges": "1",
    "filtered": "2",
    "user": 65534,
    "networks": ["lo"],
    "namespaces": False,
    "seen": [],
}
"""What a good sandbox tells of itself."""


def answering(answer: object) -> str:
    """Return a program that gives an answer to whatever it is asked."""
    line = json.dumps(answer)
    return f"import sys\nsys.stdin.readline()\nprint({line!r})"


def confined_answering(answer: object, rest: bytes = b"") -> str:
    """Return a program that tells it is a good sandbox, then gives an answer."""
    given = json.dumps(answer).encode() + b"\n" + rest
    return (
        "import json, sys\n"
        "asked = json.loads(sys.stdin.readline())['operation']\n"
        f"told = {json.dumps(CONFINED).encode()!r} if asked == 'describe' else {given!r}\n"
        "sys.stdout.buffer.write(told)"
    )


async def execute(tools: SandboxTools, code: str = "1") -> SandboxResult:
    key = WorkspaceKey("", "a chat")
    return await tools.call(key, "python_execute", {"code": code})


@dataclass(eq=False)
class PretendedCell:
    """A process of the host; `memory` is what it pretends to hold."""

    process: ChildProcess
    measure_memory: Callable[[], int]
    killed: bool = False
    closed: bool = False

    async def kill(self) -> None:
        self.process.kill_group()
        self.killed = True

    def close(self) -> None:
        self.closed = True


@dataclass
class Pretended:
    """A backend whose cells run a program of ours instead of the one they are given."""

    text: str
    memory: Callable[[], int] = int
    name: str = "pretended"
    missing: str = ""
    cells: list[PretendedCell] = field(default_factory=list)

    async def start(self, program: str, limits: SandboxLimits) -> PretendedCell:
        if self.missing:
            raise SandboxUnavailable(self.missing)
        command = (sys.executable, "-c", self.text)
        process = await start_process(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        cell = PretendedCell(process, self.memory)
        self.cells.append(cell)
        return cell
