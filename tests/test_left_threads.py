"""A run of tests ends although a test hung in a thread."""

import subprocess
import sys

import left_threads

HANG = """
import asyncio, sys, threading
from event_loops.idle_clock import IdleClockLoop
import left_threads

left_threads.GRACE_SECONDS = 0.2

async def hang():
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)

with asyncio.Runner(loop_factory=IdleClockLoop) as runner:
    runner.run(hang())
left_threads.exit_soon(int(sys.argv[1]))
"""


def end_of_run(status: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HANG, str(status)],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_thread_that_hangs_is_named_and_not_waited_for() -> None:
    """A good run that leaves one is not good; a bad one keeps its own status."""
    good, bad = end_of_run(0), end_of_run(2)

    assert (good.returncode, bad.returncode) == (1, 2)
    assert "left running: thread asyncio_0" in good.stderr
    assert "threading.py" in good.stderr  # where it stands
    assert left_threads.GRACE_SECONDS > 1  # threads that are about to end may do so
