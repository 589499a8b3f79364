"""Child processes: what is ended, and what is no longer theirs to end."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from sandbox.processes import ChildProcess, start_process

pytestmark = pytest.mark.asyncio

LEAVING = """
import os
if os.fork():
    os._exit(3)
print(input(), flush=True)
"""
"""It leaves a process behind, which answers one line."""


async def test_group_of_a_process_that_has_ended_is_left_alone() -> None:
    """Nobody waits for the process any more, so its number may be somebody else's."""
    process = await start_process(
        sys.executable, "-c", LEAVING, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin
    assert process.stdout
    await process.wait()

    process.kill_group()
    process.stdin.write(b"still here\n")

    assert process.returncode == 3
    assert await process.stdout.read() == b"still here\n"
    process.close()


async def test_running_process_is_ended_with_its_group() -> None:
    """Its pipes close only if all that it started has ended."""
    code = "import os, signal; os.fork(); print(1, flush=True); signal.pause()"
    process = await start_process(sys.executable, "-c", code, stdout=PIPE)
    assert process.stdout
    await process.stdout.readexactly(4)  # a line of each

    process.kill_group()

    assert await process.stdout.read() == b""
    await process.wait()
    assert process.returncode == -9
    process.close()


async def test_pipes_to_a_process_that_still_reads_are_closed() -> None:
    process = await start_process(sys.executable, "-c", "input()", stdin=PIPE)
    assert process.stdin

    process.close()

    assert process.stdin.is_closing()
    process.kill_group()
    await process.wait()


async def test_process_whose_pipes_cannot_be_opened_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_read_pipe", refuse)
    code = "import signal; signal.pause()"
    options = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    child = ChildProcess((sys.executable, "-c", code), options)

    with pytest.raises(OSError, match=r"^$"):
        await child.connect()

    assert child.returncode == -9
    assert child._process.stderr
    assert child._process.stderr.closed
    assert child._process.stdout
    child._process.stdout.close()  # the loop has it
