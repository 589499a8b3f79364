"""Whether what a server holds grows: the figures of its samples, and a verdict on each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

FEWEST_SAMPLES = 5
"""With fewer after the warm-up a slope says nothing."""


@dataclass(frozen=True)
class Figure:
    """Something that is counted, and how much more of it a minute is no growth."""

    name: str
    key: str
    allowed: float
    """By the minute. Of what is counted: less than one for each round."""
    scale: float = 1.0


@dataclass(frozen=True)
class Sample:
    """What the server held at a moment at which nobody asked anything."""

    minute: float
    held: Mapping[str, float]


@dataclass(frozen=True)
class Growth:
    """How a figure went after the warm-up."""

    figure: Figure
    first: float
    last: float
    slope: float

    @property
    def grows(self) -> bool:
        """Say whether it is more than may be."""
        return self.slope > self.figure.allowed

    @property
    def verdict(self) -> str:
        """Return the last cell of its line."""
        return f"GROWS: {self.slope:+.2f} a minute" if self.grows else "flat"


MEMORY = (
    Figure("memory (RSS), MB", "resident", allowed=0.5, scale=1e-3),
    # What a turn leaves is seen here at once. The RSS also holds what lies free between
    # blocks in use, and tells of a leak much later. SQLite counts for itself: its
    # caches belong to Open WebUI, and are bounded.
    Figure("memory in use by malloc, MB", "malloc", allowed=0.1, scale=1e-3),
    Figure("memory blocks of Python, 1000", "blocks", allowed=1.0, scale=1e-3),
)
COUNTED = (
    Figure("file descriptors", "descriptors", allowed=0.3),
    Figure("asyncio tasks", "tasks", allowed=0.3),
    Figure("open aiohttp sessions", "sessions", allowed=0.3),
    Figure("threads", "threads", allowed=0.3),
    Figure("objects of the pipe", "objects", allowed=3),
    Figure("loaded copies of the pipe", "copies", allowed=0.3),
    Figure("open requests at the API", "open", allowed=0.3),
)
FIGURES = (*MEMORY, *COUNTED)


def growths(samples: Sequence[Sample], warm_up: float) -> list[Growth]:
    """Judge every figure by the samples after the warm-up; empty: they are too few."""
    judged = [one for one in samples if one.minute >= warm_up]
    if len(judged) < FEWEST_SAMPLES:
        return []
    return [_growth(figure, judged) for figure in FIGURES]


def _growth(figure: Figure, samples: Sequence[Sample]) -> Growth:
    points = [(one.minute, one.held[figure.key] * figure.scale) for one in samples]
    third = max(1, len(points) // 3)
    return Growth(
        figure,
        first=median(value for _, value in points[:third]),
        last=median(value for _, value in points[-third:]),
        slope=slope_of(points),
    )


def slope_of(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes of all pairs (Theil and Sen).

    A moment in which more was held does not move it, other than a straight line that is
    fitted to the points.
    """
    return median(
        (later - earlier) / (end - begin)
        for (begin, earlier), (end, later) in combinations(points, 2)
        if end > begin
    )


def table_of_growths(found: Sequence[Growth]) -> str:
    """Return a line for each figure."""
    if not found:
        return f"Fewer than {FEWEST_SAMPLES} samples after the warm-up: no verdict."
    lines = [f"  {'after the warm-up':30}{'first':>9}{'last':>9}{'a minute':>10}"]
    for one in found:
        numbers = f"{one.first:9,.1f}{one.last:9,.1f}{one.slope:+10.2f}"
        lines.append(f"  {one.figure.name:30}{numbers}  {one.verdict}")
    return "\n".join(lines)
