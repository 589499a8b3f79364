"""Processes that can be ended at any time: while they start, whoever waits for them.

With Python 3.11 they cannot. A cancellation of `create_subprocess_exec` waits for ever
for pipes that were not connected yet (base_subprocess.py, _try_finish). `Process.kill`
takes the status away from those who wait (subprocess.py, send_signal).
"""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Any


class ProcessHandle:
    """Holds on to one process that leads a group."""

    def __init__(self, number: int) -> None:
        """Hold a child process that was just started."""
        self._number = number
        self._descriptor: int | None = None
        with suppress(ProcessLookupError):  # it has ended already
            self._descriptor = os.pidfd_open(number)

    def kill(self) -> None:
        """End it with its group, if it has not ended."""
        if self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, 0)  # it is still the same
                os.killpg(self._number, signal.SIGKILL)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


async def start_process(*command: str, **options: Any) -> Process:
    """Start a process as the head of a group; a cancellation ends all of it.

    Bubblewrap alone would leave a child behind that waits for it.
    """
    creating = asyncio.create_subprocess_exec(*command, process_group=0, **options)
    starting = asyncio.create_task(creating)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait({starting})
        if starting.exception() is None:
            process = starting.result()
            handle = ProcessHandle(process.pid)
            handle.kill()
            handle.close()
            # Who does not hear of the end of its parent hears that of its input.
            await process.communicate(b"")
        raise
