"""Put one pipe under load: many streams at once, again and again, nothing left behind.

python scripts/bench/load.py      200 streams of 500 deltas, 10 times: four minutes

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
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.crowd import Crowd, Heard, Load
from bench.footprint import (
    Footprint,
    footprint,
    forget_peaks,
    resident_peak,
    traced_peak,
)
from bench.host import load_pipe
from bench.remains import complaints
from bench.servers import Address, run_server

SIMULATOR = ("simulator", "--port", "0")
GOAL = 150
"""Kilobytes a stream."""
WARM_UP_STREAMS = 5


@dataclass(frozen=True)
class Cost:
    """What one round took: memory above what was held before it, in kB, and CPU."""

    heard: Heard
    resident: float
    traced: float
    seconds: float
    cpu: float


def main() -> int:
    """Print what was measured; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=200, help="open at once")
    parser.add_argument("--deltas", type=int, default=500, help="in an answer")
    parser.add_argument("--rounds", type=int, default=10, help="of all streams")
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
        cost = await _measured(Crowd(pipe, load))
    print(_cost_lines(load, cost), flush=True)
    tracemalloc.start()  # before its pipe is made, so that all it holds is known
    async with open_pipe(address) as pipe:
        costs, held = await _repeated(Crowd(pipe, load), rounds)
    after = await footprint()
    print(f"  pool closed{_row(after)}\n{_verdict([cost, *costs])}")
    heard = [one.heard for one in (cost, *costs)]
    wrong = complaints(load, heard, held, (before, after))
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


async def _repeated(crowd: Crowd, rounds: int) -> tuple[list[Cost], list[Footprint]]:
    """Let the crowd ask again and again; print what is held after each round."""
    costs, held = [], []
    heads = ("RSS kB", "traced kB", "sockets", "tasks", "traced peak")
    print(f"  {'held after':11}{''.join(f'{head:>12}' for head in heads)}")
    for number in range(1, rounds + 1):
        costs.append(await _measured(crowd))
        held.append(await footprint())
        peak = f"{costs[-1].traced:7.1f} kB a stream"
        print(f"  round {number:<5}{_row(held[-1])}{peak}", flush=True)
    return costs, held


async def _measured(crowd: Crowd) -> Cost:
    """Let the crowd ask once; return what it took."""
    before = await footprint()
    forget_peaks()
    began, cpu = time.monotonic(), time.process_time()
    heard = await crowd.ask()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    streams = crowd.streams
    resident = (resident_peak() - before.resident) / streams
    traced = (traced_peak() - before.traced) / streams
    return Cost(heard, resident, traced, seconds, cpu)


def _row(held: Footprint) -> str:
    numbers = (held.resident, held.traced, held.sockets, held.tasks)
    return "".join(f"{number:12,}" for number in numbers)


def _verdict(costs: Sequence[Cost]) -> str:
    """Judge the larger of both measures.

    The RSS grows too little where memory freed earlier is taken again, what Python
    hands out leaves out the allocator's own.
    """
    most = max(kilobytes for one in costs for kilobytes in (one.resident, one.traced))
    verdict = "met" if most <= GOAL else "MISSED"
    return f"Goal: at most {GOAL} kB a stream: {verdict} ({most:.1f})."


def _cost_lines(load: Load, cost: Cost) -> str:
    """Return what one round took."""
    deltas = load.streams * load.deltas
    return "\n".join(
        [
            f"{load.streams} streams of {load.deltas} deltas through one pipe, "
            f"{cost.heard.together} open together, {cost.seconds:.1f} s",
            f"  memory  {cost.resident:.1f} kB a stream (peak growth of the RSS)",
            f"  CPU     {cost.cpu * 1e6 / deltas:.1f} µs a delta "
            f"({100 * cost.cpu / cost.seconds:.0f} % of one core)\n",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
