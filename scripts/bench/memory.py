"""Measure the memory of many open streams, and that nothing of them is left behind.

python scripts/bench/memory.py      200 streams of 500 deltas, twice: in a minute

In the first round the process's memory is measured, in the second one the memory that
Python traces. Exits with 1 if an answer was not whole or a task was left. Whether memory
grows over many rounds is what `soak.py` finds out.
"""

import asyncio
import gc
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import (
    Address,
    answer_chunks,
    goal_line,
    open_pipe,
    parse_options,
    run_simulator,
)

GOAL = 150
"""Kilobytes a stream."""
WARM_UP_STREAMS = 5
PAUSE_MS = 20
"""Before each delta; without it the simulator writes one answer after the other, and the
streams are not open at the same time."""
_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"
"""What resets the peak when it is written to `clear_refs` (proc_pid_clear_refs(5))."""


@dataclass(frozen=True)
class Round:
    """The peaks of memory in kB a stream, the tasks left, and the answers' faults."""

    resident: float
    traced: float
    tasks: int
    faults: tuple[str, ...]


def main() -> int:
    """Print the figures; return 1 if something was wrong."""
    options = parse_options(
        __doc__, streams=(200, "open at once"), deltas=(500, "in an answer")
    )
    with run_simulator() as address:
        plain = asyncio.run(measure(address, options.streams, options.deltas))
        tracemalloc.start()  # before the next pipe is made: all that it holds is traced
        traced = asyncio.run(measure(address, options.streams, options.deltas))
    print(f"{options.streams} streams of {options.deltas} deltas through one pipe")
    print(result(plain.resident, traced.traced))
    wrong = complaints(plain, traced)
    print("\n".join(wrong) or "No error, and nothing left behind.")
    return 1 if wrong else 0


async def measure(address: Address, streams: int, deltas: int) -> Round:
    """Measure a round of a new pipe, after a small one that does not count."""
    async with open_pipe(address) as pipe:
        await run_round(pipe, WARM_UP_STREAMS, deltas)
        return await run_round(pipe, streams, deltas)


async def run_round(pipe: Any, streams: int, deltas: int) -> Round:
    """Let all chats ask at the same time."""
    await collect_garbage()
    resident_before = process_memory("VmRSS")
    traced_before, _ = tracemalloc.get_traced_memory()
    (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
    tracemalloc.reset_peak()
    reading = [read_answer(pipe, deltas, number) for number in range(streams)]
    faults = await asyncio.gather(*reading)
    resident = process_memory("VmHWM") - resident_before
    await collect_garbage()
    _, traced_peak = tracemalloc.get_traced_memory()
    return Round(
        resident=resident / streams,
        traced=(traced_peak - traced_before) / 1000 / streams,
        tasks=len(asyncio.all_tasks()) - 1,  # its own
        faults=tuple(fault for fault in faults if fault),
    )


async def read_answer(pipe: Any, deltas: int, number: int) -> str:
    """Read one answer, and count its words; return its fault, or nothing."""
    question = f"sim:long,deltas={deltas},delay={PAUSE_MS}"
    words = 0
    try:
        async for chunk in answer_chunks(pipe, question, str(number)):
            if chunk.get("type") == "response.output_text.delta":
                words += chunk["delta"].count("word")
    except Exception as error:  # any error is a fault of this answer
        return f"{type(error).__name__}: {error}"
    if words != deltas:
        return f"{words} of {deltas} words came"
    return ""


async def collect_garbage() -> None:
    """Let what is closing close, and free what nobody holds."""
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()


def process_memory(name: str) -> float:
    """Return a size of this process in kB (proc_pid_status(5), which counts in KiB).

    `VmHWM` is the peak of this program alone; `ru_maxrss` would begin with that of the
    process that started it.
    """
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1.024
    raise LookupError(name)


def complaints(*rounds: Round) -> list[str]:
    """Return a line for each fault, and one if tasks were left."""
    wrong = sorted({fault for each in rounds for fault in each.faults})
    tasks = max(each.tasks for each in rounds)
    if tasks:
        wrong.append(f"{tasks} tasks were left.")
    return wrong


def result(resident: float, traced: float) -> str:
    """Return the goal, judged by the larger of both measures.

    The RSS grows too little if memory that was freed earlier is used again, and the
    traced memory leaves out what the allocator itself needs.
    """
    is_met = max(resident, traced) <= GOAL
    figures = f"RSS {resident:.1f}; traced {traced:.1f}"
    return goal_line(f"at most {GOAL} kB a stream", is_met, figures)


if __name__ == "__main__":
    sys.exit(main())
