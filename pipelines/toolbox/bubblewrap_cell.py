"""A running bubblewrap, watched through the first process inside.

That process is known by its open folder in `/proc`: unlike a number, it never comes to
mean another process.
"""

import json
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress

from toolbox.process_handle import ProcessHandle

_BYTES_OF_AN_INODE = 1024
"""What an empty file costs the kernel; bwrap has no option that limits their number."""
_WRITABLE = ("work", "tmp", "packages")
_HELD = ("RssAnon:", "RssShmem:")
"""What a process holds of memory; the pages of files could be dropped at any time."""


class BubblewrapCell:
    """One run; `told` is where bubblewrap says which process is the first inside."""

    def __init__(self, process: Process, told: int) -> None:
        """Watch `process`; what `told` says is read when it is needed."""
        self.process = process
        self._outer = ProcessHandle(process.pid)
        self._told = told
        self._first: int | None = None
        os.set_blocking(told, False)

    def memory(self) -> int:
        """Return what the processes hold, with what the kernel needs for empty files.

        Raises PermissionError where the kernel does not let us look.
        """
        with suppress(FileNotFoundError, ProcessLookupError, BlockingIOError):
            first = self._first_process()
            if not os.path.samestat(os.stat("root", dir_fd=first), os.stat("/")):
                return _memory_of_processes(first) + _memory_of_inodes(first)
        return 0  # not begun, or over

    async def kill(self) -> None:
        """End the first process; the kernel ends all others in its namespace."""
        try:
            signal.pidfd_send_signal(self._first_process(), signal.SIGKILL)
        except (BlockingIOError, FileNotFoundError, ProcessLookupError):
            self._outer.kill()  # nothing runs inside yet, or any more

    def close(self) -> None:
        """Let go of the files through which we watched."""
        self._outer.close()
        os.close(self._told)
        if self._first is not None:
            os.close(self._first)

    def _first_process(self) -> int:
        """Return the folder of the first process, opened."""
        if self._first is None:
            told = os.read(self._told, 4096)
            number = json.loads(told)["child-pid"] if told else "none"
            self._first = os.open(f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY)
        return self._first


def _memory_of_processes(first: int) -> int:
    """Return the sum over all processes that the sandbox's own `/proc` shows."""
    processes = os.open("root/proc", os.O_RDONLY | os.O_DIRECTORY, dir_fd=first)
    try:
        numbers = [name for name in os.listdir(processes) if name.isdigit()]
        return sum(_memory_of(number, processes) for number in numbers)
    finally:
        os.close(processes)


def _memory_of(number: str, processes: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        status = os.open(f"{number}/status", os.O_RDONLY, dir_fd=processes)
        with open(status, encoding="utf-8", errors="replace") as lines:
            sizes = [line.split()[1] for line in lines if line.startswith(_HELD)]
        return 1024 * sum(map(int, sizes))
    return 0  # it has just ended


def _memory_of_inodes(first: int) -> int:
    """Return what the kernel needs for the files, whatever is in them."""
    number = 0
    for name in _WRITABLE:
        with suppress(FileNotFoundError):
            folder = os.open(f"root/{name}", os.O_PATH, dir_fd=first)
            try:
                filesystem = os.fstatvfs(folder)
            finally:
                os.close(folder)
            number += filesystem.f_files - filesystem.f_ffree
    return number * _BYTES_OF_AN_INODE
