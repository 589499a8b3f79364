"""Put one pipe under load: many streams at once, again and again, nothing left behind.

python scripts/bench/memory.py      200 streams of 500 deltas, 5 times: two minutes

First one round as it is: the memory a stream takes, and the CPU a delta costs. Then
many rounds in which Python's memory is traced, which doubles the CPU: after each, what
is still held. Ends with 1 where an answer was not whole, or where something was left
behind. The simulator runs in a process of its own; only what reads it is measured.
"""

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.crowd import Crowd, Heard, Load
from bench.footprint import Footprint, footprint, forget_peaks, resident_peak
from bench.host import load_pipe
from bench.remains import complaints
from bench.servers import Address, run_server

SIMULATOR = ("simulator", "--port", "0")
GOAL = 150
"""Kilobytes a stream."""
WARM_UP_STREAMS = 5


@dataclass(frozen=True)
class Round:
    """What one round took, and what it left; memory in kB a stream."""

    heard: Heard
    resident: float
    traced: float
    seconds: float
    cpu: float
    left: Footprint


def main() -> int:
    """Print what was measured; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=200, help="open at once")
    parser.add_argument("--deltas", type=int, default=500, help="in an answer")
    parser.add_argument("--rounds", type=int, default=4, help="of all streams")
    parser.add_argument("--pause", type=float, default=20.0, help="ms before a delta")
    given = parser.parse_args()
    load = Load(given.streams, given.deltas, given.pause)
    with run_server(*SIMULATOR) as address:
        return asyncio.run(put_under_load(address, load, given.rounds))


async def put_under_load(address: Address, load: Load, rounds: int) -> int:
    """Measure one round, then what many rounds leave behind."""
    before = await footprint()
    async with open_pipe(address) as pipe:
        await Crowd(pipe, Load(WARM_UP_STREAMS, load.deltas, 0)).ask()
        plain = await _round(Crowd(pipe, load))
    print(_cost_lines(load, plain), flush=True)
    tracemalloc.start()  # before its pipe is made, so that all it holds is known
    async with open_pipe(address) as pipe:
        traced = await _repeated(Crowd(pipe, load), rounds)
    after = await footprint()
    print(f"  pool closed{_row(after)}\n{_verdict(plain, traced)}")
    heard = [one.heard for one in (plain, *traced)]
    wrong = complaints(load, heard, [one.left for one in traced], (before, after))
    print("\n".join(wrong) or "No error, and nothing left behind.")
    return 1 if wrong else 0


@asynccontextmanager
async def open_pipe(address: Address) -> AsyncIterator[Any]:
    """Lend a pipe of the built file; its pool is closed afterwards."""
    pipe = load_pipe(address.base_url, address.api_key)
    try:
        yield pipe
    finally:
        await pipe._connections.close()


async def _repeated(crowd: Crowd, rounds: int) -> list[Round]:
    """Let the crowd ask again and again; print what is held after each round."""
    done: list[Round] = []
    heads = ("RSS kB", "traced kB", "sockets", "tasks", "traced peak")
    print(f"  {'held after':11}{''.join(f'{head:>12}' for head in heads)}")
    for number in range(1, rounds + 1):
        done.append(await _round(crowd))
        peak = f"{done[-1].traced:7.1f} kB a stream"
        print(f"  round {number:<5}{_row(done[-1].left)}{peak}", flush=True)
    return done


async def _round(crowd: Crowd) -> Round:
    """Let the crowd ask once; return what it took."""
    before = await footprint()
    forget_peaks()
    began, cpu = time.monotonic(), time.process_time()
    heard = await crowd.ask()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    resident = (resident_peak() - before.resident) / crowd.streams
    left = await footprint()
    traced = (left.peak - before.traced) / crowd.streams
    return Round(heard, resident, traced, seconds, cpu, left)


def _row(held: Footprint) -> str:
    numbers = (held.resident, held.traced, held.sockets, held.tasks)
    return "".join(f"{number:12,}" for number in numbers)


def _verdict(plain: Round, traced: Sequence[Round]) -> str:
    """Judge the larger of both measures.

    The RSS grows too little where memory freed earlier is taken again, and what Python
    hands out leaves out the allocator's own. A busy machine makes for higher peaks:
    what nobody has time to read waits in memory.
    """
    peaks = [one.traced for one in traced]
    most = max(plain.resident, median(peaks))
    verdict = "met" if most <= GOAL else "MISSED"
    return (
        f"Goal: at most {GOAL} kB a stream: {verdict} (RSS {plain.resident:.1f}; traced "
        f"{median(peaks):.1f} as the median, {max(peaks):.1f} at most)."
    )


def _cost_lines(load: Load, plain: Round) -> str:
    """Return what one round took."""
    deltas = load.streams * load.deltas
    return "\n".join(
        [
            f"{load.streams} streams of {load.deltas} deltas through one pipe, "
            f"{plain.heard.together} open together, {plain.seconds:.1f} s",
            f"  memory  {plain.resident:.1f} kB a stream (peak growth of the RSS)",
            f"  CPU     {plain.cpu * 1e6 / deltas:.1f} µs a delta "
            f"({100 * plain.cpu / plain.seconds:.0f} % of one core)\n",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
