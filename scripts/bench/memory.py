"""Put one pipe under load: many streams at once, again and again, nothing left behind.

python scripts/bench/memory.py      200 streams of 500 deltas, 9 times: three minutes

First one round as it is: the memory a stream takes, and the CPU a delta costs. Then
several rounds in which Python's memory is traced, which doubles the CPU. Ends with 1
where an answer was not whole, or where something was left behind. The simulator runs in
a process of its own; only what reads it is measured.
"""

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import answer_chunks, open_pipe
from bench.servers import SIMULATOR, Address, run_server

GOAL = 150
"""Kilobytes a stream."""
WARM_UP_STREAMS = 5
GROWTH = 1.05
"""How much more may be held in the end than when it had settled.

The first round fills the caches, the next ones settle. What is left behind never goes
away, so the least of the last rounds shows it, and a moment in which one round held
more does not.
"""
SETTLING_ROUNDS = 3
LAST_ROUNDS = 3
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

    `resident` and `traced` are the peaks in kB a stream, `held` is the traced memory
    in kB after the round, `tasks` are those that still run then.
    """

    resident: float
    traced: float
    seconds: float
    cpu: float
    held: float
    tasks: int
    faults: tuple[str, ...]


def main() -> int:
    """Print what was measured; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=200, help="open at once")
    parser.add_argument("--deltas", type=int, default=500, help="in an answer")
    parser.add_argument("--rounds", type=int, default=8, help="of all streams")
    parser.add_argument("--pause", type=float, default=20.0, help="ms before a delta")
    arguments = parser.parse_args()
    load = Load(arguments.streams, arguments.deltas, arguments.pause)
    with run_server(*SIMULATOR) as address:
        return asyncio.run(put_under_load(address, load, arguments.rounds))


async def put_under_load(address: Address, load: Load, rounds: int) -> int:
    """Measure one round, then what more rounds leave behind; return the exit code."""
    async with open_pipe(address) as pipe:
        await run_round(pipe, Load(WARM_UP_STREAMS, load.deltas, 0))
        plain = await run_round(pipe, load)
    print(cost_lines(load, plain), flush=True)
    tracemalloc.start()  # before the next pipe is made, so that all it holds is known
    traced = []
    async with open_pipe(address) as pipe:
        for number in range(1, rounds + 1):
            traced.append(await run_round(pipe, load))
            print(round_line(number, traced[-1]), flush=True)
    tracemalloc.stop()
    print(goal_line(plain, traced))
    wrong = complaints([plain, *traced], traced)
    print("\n".join(wrong) or "No error, and nothing left behind.")
    return 1 if wrong else 0


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
    held, traced_peak = tracemalloc.get_traced_memory()
    return Round(
        resident=resident / load.streams,
        traced=(traced_peak - traced_before) / 1000 / load.streams,
        seconds=seconds,
        cpu=cpu,
        held=held / 1000,
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


def complaints(rounds: Sequence[Round], traced: Sequence[Round]) -> list[str]:
    """Return a line for each thing that is not as it must be."""
    wrong = sorted({fault for one in rounds for fault in one.faults})
    tasks = max(one.tasks for one in rounds)
    if tasks:
        wrong.append(f"{tasks} tasks were left.")
    if len(traced) > SETTLING_ROUNDS + LAST_ROUNDS:
        settled = median(one.held for one in traced[1 : 1 + SETTLING_ROUNDS])
        last = min(one.held for one in traced[-LAST_ROUNDS:])
        if last > settled * GROWTH:
            wrong.append(f"Memory grew: from {settled:,.0f} to {last:,.0f} kB.")
    return wrong


def cost_lines(load: Load, plain: Round) -> str:
    """Return what one round took."""
    microseconds = plain.cpu * 1e6 / (load.streams * load.deltas)
    share = 100 * plain.cpu / plain.seconds
    return (
        f"{load.streams} streams of {load.deltas} deltas through one pipe, "
        f"{plain.seconds:.1f} s\n"
        f"  memory  {plain.resident:.1f} kB a stream (peak growth of the RSS)\n"
        f"  CPU     {microseconds:.1f} µs a delta ({share:.0f} % of one core)"
    )


def round_line(number: int, done: Round) -> str:
    """Return what is held after a round in which memory was traced."""
    return (
        f"  round {number}: {done.held:9,.0f} kB held afterwards, "
        f"{done.traced:.1f} kB a stream at the peak"
    )


def goal_line(plain: Round, traced: Sequence[Round]) -> str:
    """Judge the larger of both measures.

    The RSS grows too little where memory freed earlier is taken again, and the traced
    memory leaves out what the allocator itself needs.
    """
    traced_peak = median(one.traced for one in traced)
    verdict = "met" if max(plain.resident, traced_peak) <= GOAL else "MISSED"
    return (
        f"Goal: at most {GOAL} kB a stream: {verdict} "
        f"(RSS {plain.resident:.1f}; traced {traced_peak:.1f})."
    )


if __name__ == "__main__":
    sys.exit(main())
