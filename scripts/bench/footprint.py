"""What this process holds: memory, sockets, tasks.

Memory is read where Linux tells it, in `/proc/self`. The peak there is that of this
program alone; `ru_maxrss` would begin with that of the process that started it.
"""

import asyncio
import gc
import os
import stat
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

_PROCESS = Path("/proc/self")
_FORGET_THE_PEAK = "5"
"""The word for `clear_refs` (proc_pid_clear_refs(5))."""
_KILOBYTE = 1000


@dataclass(frozen=True)
class Footprint:
    """What is held once nothing runs any more; memory in kB.

    `traced` is what Python handed out, `peak` the most of it since peaks were forgotten.
    """

    resident: int
    traced: int
    peak: int
    sockets: int
    tasks: int


async def footprint() -> Footprint:
    """Collect the garbage, then count; the caller's own task does not count."""
    for _ in range(3):
        await asyncio.sleep(0)  # what was told to close closes
        gc.collect()
    traced, peak = tracemalloc.get_traced_memory()
    return Footprint(
        resident=_status("VmRSS"),
        traced=traced // _KILOBYTE,
        peak=peak // _KILOBYTE,
        sockets=_open_sockets(),
        tasks=len(asyncio.all_tasks()) - 1,
    )


def forget_peaks() -> None:
    """Let the peaks begin with what is held now."""
    (_PROCESS / "clear_refs").write_text(_FORGET_THE_PEAK)
    tracemalloc.reset_peak()


def resident_peak() -> int:
    """Return the most memory that the process had, in kB."""
    return _status("VmHWM")


def _status(name: str) -> int:
    """Return a size of the process in kB; the file counts in KiB."""
    lines = (_PROCESS / "status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024 // _KILOBYTE


def _open_sockets() -> int:
    return sum(map(_is_socket, os.listdir(_PROCESS / "fd")))


def _is_socket(descriptor: str) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(int(descriptor)).st_mode)
    except OSError:  # the descriptor with which the folder itself was read
        return False
