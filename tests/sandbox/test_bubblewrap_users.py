"""The sandbox of a server that is not root, and of one that dies.

The server runs under the system's Python: others may not reach the one of the tests.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.bubblewrap import find_interpreters
from sandboxes.real import sandboxed_processes
from upstream.server import until

SOURCES = Path(__file__).resolve().parents[2] / "pipes" / "sandbox"
SOMEBODY = 12_345
SERVER = """
import asyncio, json, sys
from sandbox.backend import SandboxLimits
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspaceKey, WorkspacePool

async def serve(codes):
    limits = SandboxLimits(float(sys.argv[1]), memory=128 << 20, disk=8 << 20, processes=8)
    backends = [BubblewrapBackend(python) for python in find_interpreters()]
    log = lambda line: print(line, file=sys.stderr)
    pool = WorkspacePool()
    tools = SandboxTools(pool, limits, "", log, lambda _: backends)
    for code in codes:
        answer = await tools.call(WorkspaceKey("", "a chat"), "python_execute", {"code": code})
        assert answer.files == ()
        print(json.dumps(answer.text), flush=True)
    await tools.close()
    await pool.close()

asyncio.run(serve(json.load(sys.stdin)))
"""


@pytest.fixture
def sources() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCES, Path(folder, "sandbox"))
        Path(folder, "tmp").mkdir()
        Path(folder, "tmp").chmod(0o777)
        Path(folder).chmod(0o755)
        yield folder


def start(folder: str, codes: list[str], seconds: int) -> "subprocess.Popen[str]":
    """Start a server that is no one special, and let it run codes."""
    user = SOMEBODY if os.geteuid() == 0 else None
    process = subprocess.Popen(
        [str(find_interpreters()[-1]), "-B", "-c", SERVER, str(seconds)],
        cwd=folder,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        env={"PATH": os.environ["PATH"], "TMPDIR": f"{folder}/tmp"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    assert process.stdin
    process.stdin.write(json.dumps(codes))
    process.stdin.close()
    return process


def answers(folder: str, *codes: str) -> list[Any]:
    """Return what a server answers to codes, and to a harmless one after each."""
    asked = [each for code in codes for each in (code, "6 * 7")]
    with start(folder, asked, 60) as process:
        assert process.stdout
        replies = [json.loads(line) for line in process.stdout]
    assert process.returncode == 0
    assert [json.loads(text)["result"] for text in replies[1::2]] == [42] * len(codes)
    return replies[::2]


FORK = """
import os, signal
children = 0
try:
    while True:
        if not os.fork():
            held = bytearray({size} << 20)
            signal.pause()
        children += 1
except BlockingIOError:
    pass
children or signal.pause()
"""


CHILDREN = """
import os, time
for _ in range(6):
    os.fork() or os._exit(0)
time.sleep(0.5)
6 * 7
"""


def test_walls_and_limits_are_the_same_for_anybody(sources: str) -> None:
    """The run has the server's user and nothing of its rights.

    Processes are counted for each run, and the sum of their memory can be read. Children
    that nobody waits for stop nothing: they have no memory any more, and no one but root
    may look at the rest.
    """
    walls, counted, watched, orphaned = answers(
        sources,
        "import os\nstatus = open('/proc/self/status').read()\n"
        "[os.getuid() > 0, 'CapBnd:\\t0000000000000000' in status,"
        " os.path.exists('/etc/passwd'), 'PATH' in open('/proc/1/environ').read()]",
        FORK.format(size=1),
        FORK.format(size=50) + "signal.pause()",
        CHILDREN,
    )

    assert json.loads(walls)["result"] == [True, True, False, False]
    assert json.loads(counted)["result"] == 7
    assert watched.startswith("Error: The run was stopped, because its processes")
    assert json.loads(orphaned)["result"] == 42


OPEN = "import os, signal\npipe = os.open('/proc/1/fd/{}', os.O_WRONLY)\n"
FORGE = OPEN.format(1) + "os.write(pipe, {!r})\nsignal.pause()"
PAUSE = 2
"""Seconds after which code is stopped that does nothing more."""
FLOOD = OPEN.format(1) + "while True: os.write(pipe, b'x' * 65536)"
COMPLAIN = (
    "import os\npipe = os.open('/proc/1/fd/2', os.O_WRONLY | os.O_NONBLOCK)\n"
    "try:\n    while True: os.write(pipe, b'x' * 65536)\nexcept BlockingIOError: 'full'"
)


def test_answers_of_the_code_itself_do_no_harm(sources: str) -> None:
    """Here the code has the right to write into the pipes of the first process.

    A forged workspace cannot be laid out again, so the chat begins with an empty one.
    """
    line = b'{"done": 5, "changed": [["/etc/passwd", 0, 900000]]}\n'
    flooded, complained = answers(sources, FLOOD, COMPLAIN)

    forged = [FORGE.format(b"nothing\n"), FORGE.format(line), "1", "6 * 7"]
    with start(sources, forged, PAUSE) as server:
        assert server.stdout
        nothing, invalid, damaged, after = [json.loads(told) for told in server.stdout]

    assert "it wrote more than fits into the workspace" in flooded
    assert json.loads(complained)["stdout"] == ""
    assert nothing == "Error: The run ended without an answer."
    assert invalid == "Error: The sandbox returned an invalid answer."
    assert damaged.startswith("Error: An earlier run damaged the workspace")
    assert json.loads(after)["result"] == 42


@pytest.mark.asyncio
async def test_dead_server_leaves_nobody_behind(sources: str) -> None:
    """The kernel ends the run with the server, however that died."""
    server = start(sources, ["import os\nos.fork()\nwhile True: pass"], seconds=100)
    assert server.stdout
    await until(lambda: len(sandboxed_processes()) == 4)

    server.kill()
    server.wait()
    server.stdout.close()

    await until(lambda: not sandboxed_processes())  # orphans are this process's


@pytest.mark.asyncio
async def test_files_of_a_dead_server_are_removed(sources: str) -> None:
    """By the next one; what a living one uses stays."""
    waiting = ["import signal\nsignal.pause()"]
    dead, living = (start(sources, waiting, seconds=100) for _ in range(2))
    await until(lambda: len(sandboxed_processes()) == 6)
    left = set(os.listdir(f"{sources}/tmp"))
    dead.kill()
    dead.wait()
    await until(lambda: len(sandboxed_processes()) == 3)

    assert json.loads(answers(sources, "1")[0])["result"] == 1

    assert len(left) == 2
    assert len(left & set(os.listdir(f"{sources}/tmp"))) == 1
    for server in (dead, living):
        server.kill()
        server.wait()
        assert server.stdout
        server.stdout.close()
