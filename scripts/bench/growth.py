"""Whether what a server holds grows: the figures of its samples, and a verdict on each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

MIN_SAMPLES = 12
"""With fewer after the warm-up the noise of the RSS looks like a slope."""


@dataclass(frozen=True)
class Sample:
    """What the server held at a moment at which nobody asked anything."""

    minute: float
    held: Mapping[str, float]


@dataclass(frozen=True)
class Figure:
    """Something that is counted, and how much more of it a minute is no growth.

    Of what is counted one by one it is less than one for each round.
    """

    name: str
    key: str
    allowed: float


@dataclass(frozen=True)
class Growth:
    """How a figure went after the warm-up; `slope` is by the minute."""

    figure: Figure
    first: float
    last: float
    slope: float

    @property
    def grows(self) -> bool:
        """Say whether it is more than may be."""
        return self.slope > self.figure.allowed


FIGURES = (
    Figure("memory (RSS), kB", "resident", 500),
    Figure("memory blocks of Python", "blocks", 1000),
    Figure("file descriptors", "descriptors", 0.3),
    Figure("asyncio tasks", "tasks", 0.3),
    Figure("open aiohttp sessions", "sessions", 0.3),
    Figure("threads", "threads", 0.3),
    Figure("objects of the pipe", "objects", 3),
    Figure("loaded copies of the pipe", "copies", 0.3),
    Figure("open requests at the API", "open", 0.3),
)


def growths(samples: Sequence[Sample], warm_up: float) -> list[Growth]:
    """Judge every figure by the samples after the warm-up; empty: they are too few."""
    judged = [sample for sample in samples if sample.minute >= warm_up]
    if len(judged) < MIN_SAMPLES:
        return []
    return [_growth(figure, judged) for figure in FIGURES]


def _growth(figure: Figure, samples: Sequence[Sample]) -> Growth:
    points = [(sample.minute, sample.held[figure.key]) for sample in samples]
    first = points[0][1]
    last = points[-1][1]
    return Growth(figure, first, last, median_slope(points))


def median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes of all pairs (Theil and Sen).

    A moment in which more was held does not move it, other than a straight line that is
    fitted to the points.
    """
    slopes = []
    for (begin, earlier), (end, later) in combinations(points, 2):
        if end > begin:
            slopes.append((later - earlier) / (end - begin))
    return median(slopes)


def table_of_growths(found: Sequence[Growth]) -> str:
    """Return a line for each figure."""
    if not found:
        return f"Fewer than {MIN_SAMPLES} samples after the warm-up: no verdict."
    lines = [f"  {'after the warm-up':28}{'first':>12}{'last':>12}{'a minute':>11}"]
    for growth in found:
        numbers = f"{growth.first:12,.0f}{growth.last:12,.0f}{growth.slope:+11.2f}"
        verdict = "GROWS" if growth.grows else "flat"
        lines.append(f"  {growth.figure.name:28}{numbers}  {verdict}")
    return "\n".join(lines)
