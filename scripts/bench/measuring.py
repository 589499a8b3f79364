"""Readers timed in turns."""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.readers import Reader

WARM_UP_DELTAS = 50


@dataclass(frozen=True)
class Pace:
    """How the server writes: `pause` is in milliseconds, before each delta."""

    title: str
    server: tuple[str, ...]
    pause: int
    deltas: int
    rounds: int

    def question(self, deltas: int) -> str:
        """Return the words that make the simulator answer so."""
        pause = f",delay={self.pause}" if self.pause else ""
        return f"sim:long,deltas={deltas}{pause}"


@dataclass(frozen=True)
class Measured:
    """What one reader did: its CPU in each round, and how much it yielded."""

    name: str
    microseconds: tuple[float, ...]
    yielded: int


async def measure(readers: Sequence[Reader], pace: Pace) -> list[Measured]:
    """Let all readers read in turns, after a warm-up that does not count."""
    for reader in readers:
        await reader.read(pace.question(WARM_UP_DELTAS))
    rounds = [await _one_round(readers, pace) for _ in range(pace.rounds)]
    return [
        Measured(reader.name, tuple(cpu for cpu, _ in turns), turns[-1][1])
        for reader, turns in zip(readers, zip(*rounds, strict=True), strict=True)
    ]


async def _one_round(readers: Sequence[Reader], pace: Pace) -> list[tuple[float, int]]:
    """Return the microseconds of CPU per delta, and the yield, of each reader."""
    results = []
    for reader in readers:
        gc.collect()  # nobody pays for the garbage of the one before
        began = time.process_time()
        yielded = await reader.read(pace.question(pace.deltas))
        seconds = time.process_time() - began
        results.append((seconds * 1e6 / pace.deltas, yielded))
    return results
