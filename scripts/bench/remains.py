"""What is wrong with a pipe after rounds of load."""

from collections.abc import Iterator, Sequence
from statistics import median

from bench.crowd import Heard, Load, counted
from bench.footprint import Footprint

FEWEST_ROUNDS = 7
"""With fewer there is nothing to compare."""
SETTLED = slice(1, 4)
"""Rounds after which caches are full, and before which nothing can have piled up."""
LAST = slice(-3, None)
GROWTH = 1.05
"""How much more memory may be held in the end than when it had settled."""


def complaints(
    load: Load,
    heard: Sequence[Heard],
    held: Sequence[Footprint],
    ends: tuple[Footprint, Footprint],
) -> list[str]:
    """Return one line for each thing that is not as it must be.

    `held` is what each round left, `ends` what there was before the pipe was made and
    after its pool was closed.
    """
    return [*_unheard(load, heard), *_unreleased(load, held, *ends), *_growth(held)]


def _unheard(load: Load, heard: Sequence[Heard]) -> Iterator[str]:
    yield from counted(fault for one in heard for fault in one.faults)
    together = min(one.together for one in heard)
    if together < load.streams:
        yield f"Only {together} of {load.streams} streams were open together."


def _unreleased(
    load: Load, held: Sequence[Footprint], before: Footprint, after: Footprint
) -> Iterator[str]:
    tasks = max(one.tasks for one in (*held, after))
    if tasks:
        yield f"{tasks} tasks were left."
    sockets = max(one.sockets - before.sockets for one in held)
    if sockets > load.streams:
        yield f"{sockets} sockets rested in the pool, for {load.streams} streams."
    if after.sockets > before.sockets:
        yield f"{after.sockets - before.sockets} sockets outlived the pool."


def _growth(held: Sequence[Footprint]) -> Iterator[str]:
    """Compare the last rounds with those in which memory had settled.

    What is left behind never goes away, so the least of the last rounds shows it, and
    a moment in which one round held more does not.
    """
    if len(held) < FEWEST_ROUNDS:
        return
    for name, excuse in (("traced", 0), ("resident", _higher_peak(held))):
        settled = median(getattr(one, name) for one in held[SETTLED])
        last = min(getattr(one, name) for one in held[LAST])
        if last > settled * GROWTH + excuse:
            yield f"Memory grew: {settled:,.0f} kB {name} at first, {last:,} in the end."


def _higher_peak(held: Sequence[Footprint]) -> int:
    """Return how much higher a later peak was: the RSS does not come down from it."""
    before = max(one.peak for one in held[: SETTLED.stop])
    return max(one.peak for one in held) - before
