"""The ends of runs that do not end by themselves: cancelled, closed, orphaned."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandbox.backend import SandboxLimits, SandboxProcess, SharedLimits
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspacePool
from sandboxes.real import CANARY, TIGHT, Chat, Ran, sandboxed, sandboxed_processes
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENDLESS = "import os\nopen('written', 'w')\nos.fork()\nwhile True: pass"
INSIDE = 4
"""Bubblewrap, the first process inside, and the two of the code."""


@asynccontextmanager
async def running(chat: Chat) -> AsyncIterator[asyncio.Task[Ran]]:
    task = asyncio.create_task(chat.run(ENDLESS))
    await until(lambda: len(sandboxed_processes()) == INSIDE)
    yield task
    assert task.done()


async def test_cancelled_call_ends_the_run(chat: Chat) -> None:
    async with running(chat) as task:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sandboxed_processes() == []

    assert (await chat.run("import os\nos.listdir()")).result == []


async def test_cancelled_at_any_moment(chat: Chat) -> None:
    """Before it begins, while it is told, while it runs: no process, no open file."""
    await chat.run("1")
    before = len(os.listdir("/proc/self/fd"))

    for steps in range(24):
        task = asyncio.create_task(chat.run(ENDLESS))
        for _ in range(steps):
            await asyncio.sleep(0.005 if steps > 16 else 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not sandboxed_processes())  # killed, perhaps not yet gone
        assert len(os.listdir("/proc/self/fd")) <= before, steps

    assert await chat.still_works()


async def test_bubblewrap_has_no_environment_either(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is the first process inside, the code reads its environment."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    async with running(chat) as task:
        seen = [environment_of(number) for number in sandboxed_processes()]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert len(seen) == INSIDE
    assert [CANARY in text or "PATH=" in text for text in seen] == [False] * INSIDE


def environment_of(number: int) -> str:
    return Path(f"/proc/{number}/environ").read_text()


async def test_call_that_waits_can_be_cancelled(chat: Chat) -> None:
    async with running(chat) as task:
        waiting = asyncio.create_task(chat.run("1"))
        await asyncio.sleep(0)
        for each in (waiting, task):
            each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await each

    assert await chat.still_works()


async def test_closing_ends_all_runs() -> None:
    """Who waits is told; the workspaces are gone, and nothing works any more."""
    async with sandboxed() as chat:
        folder = (await chat.run("open('a.txt', 'w')")).answer.files[0].path.parent
        async with running(chat) as task:
            second = asyncio.create_task(Chat(chat.tools, "second").run(ENDLESS))
            await until(lambda: len(sandboxed_processes()) == 2 * INSIDE)
            queued = asyncio.create_task(chat.run("1"))
            await asyncio.sleep(0)

            await chat.tools.close()

            answers = [(await each).answer.text for each in (task, second, queued)]
    assert answers == [
        *["Error: The run ended without an answer."] * 2,
        "Error: The sandbox was closed.",
    ]
    assert (await chat.run("1")).answer.text == "Error: The sandbox was closed."
    assert not folder.parent.exists()


@dataclass
class Meeting:
    """Bubblewrap, whose cells wait for each other before they begin."""

    expected: int
    bubblewrap: BubblewrapBackend
    met: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0
    most: int = 0
    name = "a meeting"

    async def start(self, program: str, limits: SandboxLimits) -> "MeetingCell":
        """Open a cell; let all begin when as many as expected are open."""
        cell = await self.bubblewrap.start(program, limits)
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open == self.expected:
            self.met.set()
        await self.met.wait()
        return MeetingCell(cell, self)


class MeetingCell:
    """A cell that says when it is closed."""

    def __init__(self, cell: SandboxProcess, meeting: Meeting) -> None:
        self._cell = cell
        self._meeting = meeting
        self.process = cell.process
        self.measure_memory = cell.measure_memory
        self.kill = cell.kill

    def close(self) -> None:
        self._cell.close()
        self._meeting.open -= 1


FORK = """
import os, signal
children = 0
try:
    while True:
        if not os.fork():
            held = bytearray(4 << 20)
            signal.pause()
        children += 1
except BlockingIOError:
    pass
children
"""


async def test_many_at_once_stay_within_their_limits() -> None:
    """Each run has as many processes as if it were alone; no more runs than allowed."""
    chats, at_once = 9, 3
    bubblewrap = BubblewrapBackend(find_interpreters()[-1])
    meeting = Meeting(1, bubblewrap)
    workspaces = WorkspacePool(SharedLimits(runs=at_once))
    tools = SandboxTools(workspaces, TIGHT, "", print, lambda _: [meeting])
    assert await tools.specs()
    meeting.expected = at_once
    meeting.met = asyncio.Event()

    runs = [Chat(tools, str(number)).run(FORK) for number in range(chats)]
    results = [ran.result for ran in await asyncio.gather(*runs)]
    await tools.close()
    await workspaces.close()

    assert results == [TIGHT.processes - 1] * chats
    assert meeting.most == at_once
    assert sandboxed_processes() == []
