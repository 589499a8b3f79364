"""The benchmark of the sandbox runs, and says what it found; no time is asserted."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.sandbox import table

BENCH = Path(__file__).resolve().parents[3] / "scripts" / "bench" / "sandbox.py"
NAMES = ["a bare interpreter", "python_execute", "python_execute, 10 MB kept"]


def test_tiny_run_has_a_line_for_each() -> None:
    """All took their turns, and the goal has its verdict."""
    done = subprocess.run(
        [sys.executable, BENCH, "--rounds", "1"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    title, *lines, goal = done.stdout.splitlines()
    assert title.startswith("1 rounds, ms")
    assert [line[2:30].strip() for line in lines] == NAMES
    assert goal.startswith("Goal: at most 60 ms over bare: ")


@pytest.mark.parametrize(
    ("ms", "verdict"), [(75.0, "met (60.0)"), (76.0, "MISSED (61.0)")]
)
def test_missed_goal_is_said(ms: float, verdict: str) -> None:
    """The best rounds are compared, whatever the machine did meanwhile."""
    times = ([90.0, 15.0], [ms, 3 * ms], [99.0, 99.0])

    text = table(dict(zip(NAMES, times, strict=True)))

    assert text.endswith(f"Goal: at most 60 ms over bare: {verdict}.")
    assert text.splitlines()[1].split()[-4:] == ["15.0", "52.5", "0.0", "1.00"]
