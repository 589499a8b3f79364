"""The benchmark of streams runs and says what it found; no time is asserted."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.measuring import Measured, Pace
from bench.table import table_of

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "bench" / "stream.py"
NAMES = [
    "the bytes alone",
    "json.loads of each event",
    "the pipe",
    "the pipe, json.dumps",
    "the openai SDK's events",
]
PACE = Pace("at once", (), 0, 4000, 3)


@pytest.fixture(scope="module")
def printed() -> str:
    """What a tiny run prints."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--deltas", "50", "--rounds", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(table: str) -> dict[str, list[str]]:
    """The cells of each reader's line: CPU, ratio, from, to, yielded."""
    lines = [(line[2:28].strip(), line[28:].split()) for line in table.splitlines()]
    return {name: cells for name, cells in lines if name in NAMES}


def test_every_reader_has_a_line_at_every_pace(printed: str) -> None:
    """Three tables, each with all readers, and each with its verdict."""
    tables = printed.strip().split("\n\n")

    assert [list(rows(table)) for table in tables] == [NAMES] * 3
    assert ["Goal: the pipe at most 2 x json.loads: " in t for t in tables] == [
        True
    ] * 3


def test_all_readers_read_the_whole_answer(printed: str) -> None:
    """Every event is counted where none is joined; the pipe joins deltas."""
    for table in printed.strip().split("\n\n"):
        yielded = {name: int(cells[-1]) for name, cells in rows(table).items()}

        assert yielded["json.loads of each event"] > 50
        assert yielded["the openai SDK's events"] == yielded["json.loads of each event"]
        assert 0 < yielded["the pipe"] < yielded["json.loads of each event"]


def measured(pipe: float) -> list[Measured]:
    """Three rounds of all readers, in which the machine slows down."""
    costs = zip(NAMES, (1.0, 4.0, pipe, pipe, 80.0), strict=True)
    return [Measured(name, (cpu, 2 * cpu, 9 * cpu), 7) for name, cpu in costs]


@pytest.mark.parametrize(
    ("pipe", "verdict"), [(8.0, "met (2.00)"), (8.4, "MISSED (2.10)")]
)
def test_missed_goal_is_said(pipe: float, verdict: str) -> None:
    """The pipe is compared with json.loads, whatever the machine did meanwhile."""
    table = table_of(PACE, measured(pipe))

    assert table.endswith(f"Goal: the pipe at most 2 x json.loads: {verdict}.\n")
    assert rows(table)["the openai SDK's events"] == [
        "160.0",
        "20.00",
        "(20.00",
        "20.00)",
        "7",
    ]
