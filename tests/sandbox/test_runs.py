"""A sandbox that breaks: the server waits for nothing, and takes only so much."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from threading import Event

import pytest

from sandbox.backend import SandboxLimits
from sandbox.bubblewrap import (
    BubblewrapBackend,
    _BubblewrapProcess,
    find_interpreters,
)
from sandbox.processes import ChildProcess, start_process
from sandbox.runs import (
    RunStopped,
    Sandbox,
    SandboxReply,
    SandboxReplyMissing,
    WorkspaceArchive,
)
from sandboxes.pretended import Pretended, answering
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = SandboxLimits(seconds=-9.5, disk=1000, output=10)
"""With the time that we grant for the answer, everything ends after half a second."""
PATIENT = SandboxLimits(seconds=60.0, disk=1000, output=10)


async def test_sandbox_that_is_stopped_before_it_has_its_share_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel lets a user lower few shares a second: several runs wait for it."""
    begun: asyncio.Queue[ChildProcess] = asyncio.Queue()

    def refuse(process: ChildProcess) -> None:
        begun.put_nowait(process)
        raise BlockingIOError

    monkeypatch.setattr(ChildProcess, "lower_share", refuse)
    backend = BubblewrapBackend(next(iter(find_interpreters())))
    start = asyncio.create_task(backend.start("input()", PATIENT))
    process = await begun.get()

    start.cancel()

    with pytest.raises(asyncio.CancelledError):
        await start
    assert process.returncode == -9


async def test_run_waits_for_its_share_while_others_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last of many that begin at once would have as much as the server."""
    tries = []

    def refuse_some(_: ChildProcess) -> None:
        tries.append(1)
        if len(tries) < 20:
            raise BlockingIOError

    monkeypatch.setattr(ChildProcess, "lower_share", refuse_some)
    monkeypatch.setattr("sandbox.bubblewrap._SHARE_PAUSE_SECONDS", 0)
    backend = BubblewrapBackend(next(iter(find_interpreters())))
    started = await backend.start("input()", PATIENT)
    started.process.kill_group()
    started.process.close()
    await started.process.wait()
    started.close()
    assert len(tries) == 20


async def ask(
    backend: Pretended, spool: Path, limits: SandboxLimits = PATIENT
) -> SandboxReply:
    """Ask a pretended sandbox; nothing of it is left afterwards."""
    before = len(os.listdir("/proc/self/fd"))
    try:
        return await Sandbox(backend, limits).run({"operation": "x"}, None, spool)
    finally:
        [cell] = backend.cells
        assert cell.process.returncode is not None
        assert cell.closed
        assert len(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def size_of(path: Path) -> int:
    return path.stat().st_size


async def test_answer_is_read(spool: Path) -> None:
    """The request is one line with the limits in it."""
    echo = "import json, sys\nprint(json.dumps({'asked': json.loads(sys.stdin.readline())}))"

    reply = await ask(Pretended(echo), spool)

    assert reply.answer["asked"]["operation"] == "x"
    assert reply.answer["asked"]["limits"]["disk"] == 1000


@pytest.mark.parametrize(
    ("program", "counted"),
    [
        ("sys.stdin.readline(); print('{\"n\": %d}' % len(sys.stdin.read()))", 500_000),
        ("print('{\"n\": 0}')", 0),
    ],
    ids=["one that reads", "a deaf one"],
)
async def test_workspace_follows_the_request(
    tmp_path: Path, spool: Path, program: str, counted: int
) -> None:
    """From its place in the file where it was kept; larger than any pipe."""
    (tmp_path / "kept").write_bytes(b"answer\n" + b"x" * 500_000)
    sandbox = Sandbox(Pretended(f"import sys; {program}"), PATIENT)

    reply = await sandbox.run({}, WorkspaceArchive(tmp_path / "kept", 7), spool)

    assert reply.answer == {"n": counted}


@pytest.mark.parametrize(
    ("program", "beginning"),
    [
        ("", ""),
        ("raise SystemExit('no room')", "no room"),
        ("import sys\nsys.stderr.write('x' * 9_000)", "x" * 100),
        ("import os\nos.kill(os.getpid(), 9)", ""),
        (r"raise SystemExit('no\x1b[2J\nroom \u202e')", "no?[2J room ?"),
    ],
)
async def test_silence_is_told_with_its_reason(
    spool: Path, program: str, beginning: str
) -> None:
    with pytest.raises(SandboxReplyMissing) as caught:
        await ask(Pretended(program), spool)

    assert str(caught.value).startswith(beginning)
    assert len(str(caught.value)) < 5_000


@pytest.mark.parametrize(
    "program",
    [
        "import signal\nsignal.pause()",
        "import os, signal\nos.close(0); os.close(2)\nprint('{}', flush=True)\nsignal.pause()",
        "import sys\nwhile True: sys.stderr.write('x' * 999)",
    ],
)
async def test_sandbox_that_does_not_end_is_ended(spool: Path, program: str) -> None:
    """Also one that has answered, or that complains for ever."""
    with pytest.raises(RunStopped, match="it did not end within"):
        await ask(Pretended(program), spool, LIMITS)


async def test_flood_is_ended(spool: Path) -> None:
    with pytest.raises(RunStopped, match="it wrote more than fits"):
        await ask(Pretended("while True: print('x' * 9999)"), spool)

    assert size_of(spool) < 22 << 20


async def test_memory_is_watched(spool: Path) -> None:
    sizes = iter([0, 0, PATIENT.memory, PATIENT.memory + 1])
    backend = Pretended("import signal\nsignal.pause()", lambda: next(sizes))

    with pytest.raises(RunStopped, match="its processes and files held more"):
        await ask(backend, spool)


async def test_memory_is_read_in_a_thread_until_its_end(spool: Path) -> None:
    """Others go on meanwhile, and nothing is closed that it still reads."""
    begun, go_on = Event(), Event()

    def measure() -> int:
        begun.set()
        go_on.wait()
        return 0

    backend = Pretended("import signal\nsignal.pause()", measure)
    asking = asyncio.create_task(ask(backend, spool))
    await asyncio.to_thread(begun.wait)
    asking.cancel()
    for _ in range(10):
        await asyncio.sleep(0)

    assert not backend.cells[0].killed
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_memory_of_the_host_is_not_counted() -> None:
    """Until the sandbox has a root of its own, its processes are not in sight."""
    process = await start_process(sys.executable, "-c", "input()", stdin=PIPE)
    read_end, write_end = os.pipe()
    cell = _BubblewrapProcess(process, read_end)
    sizes = [cell.measure_memory()]

    os.write(write_end, json.dumps({"child-pid": process.pid}).encode())
    os.close(write_end)
    sizes.append(cell.measure_memory())

    await cell.kill()
    await process.wait()
    assert [*sizes, cell.measure_memory()] == [0, 0, 0]
    cell.close()


async def test_code_whose_memory_cannot_be_read_is_not_run(spool: Path) -> None:
    """A limit that no one sees is none."""

    def hidden() -> int:
        raise PermissionError

    with pytest.raises(RunStopped, match="cannot be read on this server"):
        await ask(Pretended("import signal\nsignal.pause()", hidden), spool)


@pytest.mark.parametrize("more", [0, 1])
async def test_memory_up_to_the_limit_may_be_held(spool: Path, more: int) -> None:
    backend = Pretended("import signal\nsignal.pause()")

    def held() -> int:
        backend.cells[0].process.kill_group()
        return PATIENT.memory + more

    backend.memory = held
    with pytest.raises(RunStopped if more else SandboxReplyMissing) as ended:
        await ask(backend, spool)

    assert ("bytes of memory" in str(ended.value)) is bool(more)


async def test_stopped_sandbox_starts_nothing(spool: Path) -> None:
    backend = Pretended(answering({}))
    sandbox = Sandbox(backend, PATIENT)
    asking = asyncio.create_task(sandbox.run({}, None, spool))
    await asyncio.sleep(0)

    await sandbox.stop()

    with pytest.raises(SandboxReplyMissing):
        await asking
    assert [cell.closed for cell in backend.cells] == [True]


async def test_second_stop_leaves_no_process(spool: Path) -> None:
    """The first one waits for a thread that still measures; the run ends without it."""
    is_measuring = Event()
    may_go_on = Event()

    def measure() -> int:
        is_measuring.set()
        may_go_on.wait()
        return 0

    backend = Pretended("import signal\nsignal.pause()", memory=measure)
    sandbox = Sandbox(backend, PATIENT)
    run = asyncio.create_task(sandbox.run({}, None, spool))
    await asyncio.to_thread(is_measuring.wait)
    for _ in range(2):
        run.cancel()
        for _ in range(9):
            await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await run

    [cell] = backend.cells
    await until(lambda: cell.closed)
    assert cell.killed
