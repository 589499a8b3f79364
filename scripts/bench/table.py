"""What was measured, as text."""

from collections.abc import Iterator, Sequence
from statistics import median

from bench.measuring import Measured, Pace

GOAL = 1.5
YARDSTICK, JUDGED = 1, 2
"""The places of the `json.loads` line and of the pipe."""


def table_of(pace: Pace, measured: Sequence[Measured]) -> str:
    """Return the lines for one pace, ending with the goal."""
    return "\n".join(_lines(pace, measured))


def _lines(pace: Pace, measured: Sequence[Measured]) -> Iterator[str]:
    yield f"{pace.title}: {pace.deltas:,} deltas, {pace.rounds} rounds, medians"
    yield f"  {'':26}{'CPU µs/delta':>14}{'x json.loads':>14}{'(from to)':>15}{'yielded':>9}"
    for line in measured:
        ratios = _ratios(line, measured[YARDSTICK])
        span = f"({min(ratios):.2f} {max(ratios):.2f})"
        yield (
            f"  {line.name:26}{median(line.microseconds):14.1f}"
            f"{median(ratios):14.2f}{span:>15}{line.yielded:9,}"
        )
    reached = median(_ratios(measured[JUDGED], measured[YARDSTICK]))
    verdict = "met" if reached <= GOAL else "MISSED"
    yield f"  Goal: the pipe at most {GOAL:g} x json.loads: {verdict} ({reached:.2f}).\n"


def _ratios(line: Measured, yardstick: Measured) -> list[float]:
    """Compare round by round: what slows a machine lasts longer than a round."""
    pairs = zip(line.microseconds, yardstick.microseconds, strict=True)
    return [own / other for own, other in pairs]
