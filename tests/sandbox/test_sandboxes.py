"""The sandboxes of a server whose options change: what they share, and their ends."""

import asyncio
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from owui_sandbox.stored_workspaces import StoredWorkspaces
from sandbox.backend import SandboxLimits, SharedLimits
from sandbox.sandboxes import Sandboxes
from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspaceKey, WorkspacePool
from sandboxes.pretended import Pretended, PretendedCell, confined_answering
from upstream.server import until

pytestmark = pytest.mark.asyncio

RUN = {"stdout": "", "stderr": "", "result": "", "status": 0, "stopped": ""}


@dataclass
class Gate(Pretended):
    """A backend whose next runs wait for the gate; `started` counts all."""

    text: str = confined_answering(RUN)
    started: int = 0
    waiting: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, program: str, limits: SandboxLimits) -> PretendedCell:
        """Start a run, perhaps once the gate is open."""
        self.started += 1
        if self.waiting:
            self.waiting -= 1
            await self.gate.wait()
        return await super().start(program, limits)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, with a folder of one wheel in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels/tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
    return tmp_path


class Server:
    """The sandboxes of a server, each with options that are only a name."""

    def __init__(self, folder: Path, shared: SharedLimits | None = None) -> None:
        self.backend = Gate()
        self.sandboxes = Sandboxes(self.make, WorkspacePool(shared))
        self._folder = folder

    def make(self, options: str, shared: WorkspacePool) -> SandboxTools:
        """Return the sandbox of these options."""
        return SandboxTools(
            StoredWorkspaces(self._folder / "stored", SharedLimits(), shared),
            wheels=str(self._folder / "wheels"),
            make_backends=lambda _: [self.backend],
        )

    async def call(self, options: str, user: str = "ada") -> str:
        """Let the code of a user run."""
        async with self.sandboxes.lend(options) as sandbox:
            key = WorkspaceKey(user, "chat")
            result = await sandbox.call(key, "python_execute", {"code": "1"})
            return result.text

    def begin(self, options: str, user: str) -> asyncio.Task[str]:
        return asyncio.create_task(self.call(options, user))

    @property
    def packages(self) -> int:
        return len(list(self._folder.glob("*/packages-*")))


async def test_packages_of_earlier_options_go_with_their_last_call(
    folder: Path,
) -> None:
    """That call ends as it would have; options that come back have packages again."""
    server = Server(folder)
    copies = []
    for options in ("first", "first", "second", "first"):
        assert await server.call(options) == await server.call(options)
        copies.append(server.packages)
    server.backend.waiting = 2
    late = [server.begin("first", user) for user in ("ada", "bob")]
    await until(lambda: server.backend.waiting == 0)
    await server.call("third", "carl")
    copies.append(server.packages)
    server.backend.gate.set()
    answers = await asyncio.gather(*late)

    assert copies == [1, 1, 1, 1, 2]
    assert ["stdout" in answer for answer in answers] == [True, True]
    assert server.packages == 1
    earlier_runs = server.backend.started
    await server.call("third", "carl")  # whose sandbox stays: it has no first run
    assert server.backend.started == earlier_runs + 1


async def test_closing_removes_the_packages_of_all_options(folder: Path) -> None:
    """Nor are others installed, for a sandbox that was not looked for before."""
    server = Server(folder)
    lend = server.sandboxes.lend
    async with lend("first") as first, lend("second") as second, lend("last") as last:
        for sandbox in (first, second):
            await sandbox.specs()
        assert server.packages == 2
        await server.sandboxes.close()
        assert (await last.specs(), server.packages) == ([], 0)


async def test_sandbox_that_closes_slowly_costs_no_answer() -> None:
    """Another call may end meanwhile, and close the next one."""
    gate = asyncio.Event()

    class Slow(SandboxTools):
        async def close(self) -> None:
            await gate.wait()

    sandboxes: Sandboxes[str] = Sandboxes(
        lambda _, shared: Slow(shared), WorkspacePool()
    )

    async def call(options: str, answer: asyncio.Event) -> None:
        async with sandboxes.lend(options):
            await answer.wait()

    answers = [asyncio.Event() for _ in range(3)]
    calls: list[asyncio.Task[None]] = []
    for options, answer in zip(("first", "second", "third"), answers, strict=True):
        calls.append(asyncio.create_task(call(options, answer)))
        await asyncio.sleep(0)
        if options == "first":  # it is the newest, so it is not closed with its call
            answer.set()
            await calls[0]
    for answer in answers[:0:-1]:
        answer.set()
        await asyncio.sleep(0)  # the third closes the first, the second itself
    gate.set()

    assert await asyncio.gather(*calls) == [None] * 3


async def test_runs_of_all_options_count_together(folder: Path) -> None:
    """Else each change of the options would allow as many runs again."""
    server = Server(folder, SharedLimits(runs=2))
    lend = server.sandboxes.lend
    async with lend("first") as first, lend("second") as second:
        for sandbox in (first, second):
            await sandbox.specs()  # a first run, which does not count
        server.backend.started = 0
        server.backend.waiting = 3

        calls = [
            asyncio.create_task(
                sandbox.call(WorkspaceKey(user, "chat"), "python_execute", {"code": ""})
            )
            for user, sandbox in (("ada", second), ("bob", first), ("carl", second))
        ]
        await until(lambda: server.backend.started >= 2)
        for _ in range(50):
            await asyncio.sleep(0)

        assert server.backend.started == 2
        server.backend.gate.set()
        results = await asyncio.gather(*calls)
    assert [result.failed for result in results] == [False] * 3
