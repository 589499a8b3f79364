"""Finds the processes that a test leaves behind, and ends them.

Orphans come to this process (prctl(2)), so that none is missed. Only Linux tells of
children; elsewhere none is found.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_THREADS = Path("/proc/self/task")
_GRACE_SECONDS = 5.0
"""For a process that was killed and is not gone yet."""
_PYTHONS_OWN = b"multiprocessing.resource_tracker"
"""It stays until this process ends."""


def adopt_orphans() -> None:
    """Become the parent of each process below this one whose own parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def child_processes() -> Set[int]:
    """Return the children of this process, by their numbers."""
    numbers = set[int]()
    if sys.platform != "linux":
        return numbers
    # Most tests start none. To hear that from the kernel takes a hundredth of the time
    # in which the files of all threads are read, and every test asks three times.
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return numbers
    for listed in _THREADS.glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            numbers.update(map(int, listed.read_text().split()))
    return numbers


def end_new_processes(known: Set[int]) -> list[str]:
    """End the children that are not `known`; return the commands of those at work."""
    end = time.monotonic() + _GRACE_SECONDS
    while (left := _at_work(known)) and time.monotonic() < end:
        time.sleep(0.01)
    for number in left:
        with suppress(ProcessLookupError):
            group = os.getpgid(number)
            if group == os.getpgrp():
                os.kill(number, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
    for number in child_processes() - known:
        with suppress(ChildProcessError):  # whoever started it has waited for it
            os.waitpid(number, 0 if number in left else os.WNOHANG)
    return [command.replace(b"\0", b" ").decode() for command in left.values()]


def _at_work(known: Set[int]) -> dict[int, bytes]:
    """Return the commands of new children; one that has ended has none."""
    commands = dict[int, bytes]()
    for number in child_processes() - known:
        with suppress(OSError):
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            if command and _PYTHONS_OWN not in command:
                commands[number] = command
    return commands
