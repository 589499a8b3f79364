"""What is wrong with a pipe after rounds of load."""

from collections.abc import Iterator, Sequence

from bench.crowd import Heard, Load, counted
from bench.footprint import Footprint

SETTLED = 3
"""Until then caches fill: the rounds after it are compared with it."""
GROWTH = 1.05
"""How much more memory the last round may leave than the one that settled."""


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
    """Compare the last round with the one in which memory had settled.

    What Python handed out is exact; the RSS also moves with how the allocator packs,
    so it is held to the same measure but only tells of what is larger.
    """
    if len(held) <= SETTLED:
        return
    settled, last = held[SETTLED - 1], held[-1]
    for name in ("traced", "resident"):
        kilobytes = getattr(last, name), getattr(settled, name)
        if kilobytes[0] > kilobytes[1] * GROWTH:
            yield (
                f"Memory grew ({name}): {kilobytes[0]:,} kB after round {len(held)}, "
                f"{kilobytes[1]:,} kB after round {SETTLED}."
            )
