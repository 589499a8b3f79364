"""Measure the memory of many open streams, and that nothing of them is left behind.

python scripts/bench/memory.py      200 streams of 500 deltas, twice: in a minute

First a round as it is: the memory a stream takes, and the CPU a delta costs. Then one
in which Python's memory is traced, which doubles the CPU. Ends with 1 where an answer
was not whole, or where a task was left. Whether memory grows over many rounds is what
`soak.py` finds out.
"""

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import Address, answer_chunks, open_pipe, run_simulator, verdict

GOAL = 150
"""Kilobytes a stream."""
WARM_UP_STREAMS = 5
_PROCESS = Path("/proc/self")
_RESET_PEAK = "5"
"""The word for `clear_refs` that makes the peak begin anew (proc_pid_clear_refs(5))."""


@dataclass(frozen=True)
class Load:
    """How many streams at once, how long each is, and how fast it is written.

    `pause` is in milliseconds, before each delta: without it the simulator writes one
    answer after the other, and the streams are not open together.
    """

    streams: int
    deltas: int
    pause: float

    @property
    def question(self) -> str:
        """The words that make the simulator answer so."""
        return f"sim:long,deltas={self.deltas},delay={self.pause:g}"


@dataclass(frozen=True)
class Round:
    """What one round took, and what it left.

    `resident` and `traced` are the peaks in kB a stream, `tasks` are those that still
    run at its end.
    """

    resident: float
    traced: float
    seconds: float
    cpu: float
    tasks: int
    faults: tuple[str, ...]


def main() -> int:
    """Print what was measured; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=200, help="open at once")
    parser.add_argument("--deltas", type=int, default=500, help="in an answer")
    parser.add_argument("--pause", type=float, default=20.0, help="ms before a delta")
    arguments = parser.parse_args()
    load = Load(arguments.streams, arguments.deltas, arguments.pause)
    with run_simulator() as address:
        plain = asyncio.run(measure(address, load))
        tracemalloc.start()  # before the next pipe is made, so that all it holds is known
        traced = asyncio.run(measure(address, load))
    print(result_lines(load, plain, traced))
    wrong = complaints(plain, traced)
    print("\n".join(wrong) or "No error, and nothing left behind.")
    return 1 if wrong else 0


async def measure(address: Address, load: Load) -> Round:
    """Measure a round of a new pipe, behind a small one that does not count."""
    async with open_pipe(address) as pipe:
        await run_round(pipe, Load(WARM_UP_STREAMS, load.deltas, 0))
        return await run_round(pipe, load)


async def run_round(pipe: Any, load: Load) -> Round:
    """Let all chats ask at the same time; return what that took."""
    await collect_garbage()
    resident_before = process_memory("VmRSS")
    traced_before, _ = tracemalloc.get_traced_memory()
    (_PROCESS / "clear_refs").write_text(_RESET_PEAK)
    tracemalloc.reset_peak()
    began = time.monotonic()
    cpu_before = time.process_time()
    reading = [fault_of_answer(pipe, load, number) for number in range(load.streams)]
    faults = await asyncio.gather(*reading)
    seconds = time.monotonic() - began
    cpu = time.process_time() - cpu_before
    resident = process_memory("VmHWM") - resident_before
    await collect_garbage()
    _, traced_peak = tracemalloc.get_traced_memory()
    return Round(
        resident=resident / load.streams,
        traced=(traced_peak - traced_before) / 1000 / load.streams,
        seconds=seconds,
        cpu=cpu,
        tasks=len(asyncio.all_tasks()) - 1,  # its own
        faults=tuple(fault for fault in faults if fault),
    )


async def fault_of_answer(pipe: Any, load: Load, number: int) -> str:
    """Read one answer, whose words are counted, not kept; return what was wrong."""
    words = 0
    try:
        async for chunk in answer_chunks(pipe, load.question, str(number)):
            if chunk.get("type") == "response.output_text.delta":
                words += chunk["delta"].count("word")
    except Exception as error:  # whatever it is, the round found it out
        return f"{type(error).__name__}: {error}"
    if words != load.deltas:
        return f"{words} of {load.deltas} words came"
    return ""


async def collect_garbage() -> None:
    """Let everything close that was told to close, and free what nobody holds."""
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
    """Return a line for each thing that is not as it must be."""
    wrong = sorted({fault for each in rounds for fault in each.faults})
    tasks = max(each.tasks for each in rounds)
    if tasks:
        wrong.append(f"{tasks} tasks were left.")
    return wrong


def result_lines(load: Load, plain: Round, traced: Round) -> str:
    """Return what the rounds took, and judge the larger of both measures.

    The RSS grows too little where memory freed earlier is taken again, and the traced
    memory leaves out what the allocator itself needs.
    """
    microseconds = plain.cpu * 1e6 / (load.streams * load.deltas)
    share = 100 * plain.cpu / plain.seconds
    largest = max(plain.resident, traced.traced)
    return (
        f"{load.streams} streams of {load.deltas} deltas through one pipe, "
        f"{plain.seconds:.1f} s\n"
        f"  memory  {plain.resident:.1f} kB a stream (peak growth of the RSS)\n"
        f"  memory  {traced.traced:.1f} kB a stream (peak of what Python traces)\n"
        f"  CPU     {microseconds:.1f} µs a delta ({share:.0f} % of one core)\n"
        f"Goal: at most {GOAL} kB a stream: {verdict(largest <= GOAL)} "
        f"(RSS {plain.resident:.1f}; traced {traced.traced:.1f})."
    )


if __name__ == "__main__":
    sys.exit(main())
