"""Memory and threads of running processes, and the largest size they had meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PAUSE = 0.1


@dataclass
class Size:
    """What processes had before something began, and at most since; memory in kB."""

    memory_before: float
    threads_before: int
    memory: float = 0.0
    threads: int = 0


@asynccontextmanager
async def watched_size(pids: Sequence[int]) -> AsyncIterator[Size]:
    """Note the size of processes, and their largest one during the block."""
    memory, threads = processes_size(pids)
    size = Size(memory, threads)
    watching = asyncio.create_task(_watch(pids, size))
    try:
        yield size
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _watch(pids: Sequence[int], size: Size) -> None:
    while True:
        memory, threads = processes_size(pids)
        size.memory = max(size.memory, memory)
        size.threads = max(size.threads, threads)
        await asyncio.sleep(PAUSE)


def processes_size(pids: Sequence[int]) -> tuple[float, int]:
    """Return the memory in kB and the threads of processes (proc_pid_status(5))."""
    memory = 0.0
    threads = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        memory += int(fields["VmRSS"].split()[0]) * 1.024
        threads += int(fields["Threads"])
    return memory, threads
