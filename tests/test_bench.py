"""The benchmarks run and say what they found; no time is asserted."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.crowd import Heard, Load
from bench.footprint import Footprint
from bench.measuring import Measured, Pace
from bench.remains import complaints
from bench.table import table_of

BENCH = Path(__file__).resolve().parents[1] / "scripts" / "bench"
NAMES = [
    "the bytes alone",
    "json.loads of each event",
    "the pipe",
    "the pipe, json.dumps",
    "the openai SDK's events",
]
PACE = Pace("at once", (), 0, 4000, 3)


def printed_by(script: str, *arguments: str) -> str:
    """What a benchmark prints that ends well."""
    done = subprocess.run(
        [sys.executable, BENCH / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def printed() -> str:
    """What a tiny run of the benchmark of streams prints."""
    return printed_by("stream.py", "--deltas", "50", "--rounds", "1")


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


# ---------------------------------------------------------------- load

LOAD = Load(streams=4, deltas=10, pause=20)
WHOLE = Heard(whole=4, together=4, faults=())
BEFORE = Footprint(resident=50_000, traced=0, peak=0, sockets=2, tasks=0)
HELD = Footprint(resident=60_000, traced=1_000, peak=2_000, sockets=6, tasks=0)
FLAT = [HELD] * 10


def test_tiny_load_leaves_nothing_behind() -> None:
    """Five chats at once, twice: each answer whole, and the pool's sockets alone."""
    tiny = ("--streams", "5", "--deltas", "20", "--rounds", "2")
    lines = printed_by("load.py", *tiny).splitlines()

    assert lines[0].startswith("5 streams of 20 deltas through one pipe, 5 open")
    assert [line.split()[:2] for line in lines if line.startswith("  round")] == [
        ["round", "1"],
        ["round", "2"],
    ]
    assert lines[-2].startswith("Goal: at most 150 kB a stream: ")
    assert lines[-1] == "No error, and nothing left behind."


def wrong(
    heard: Heard = WHOLE, held: list[Footprint] = FLAT, after: Footprint = BEFORE
) -> list[str]:
    """What is said of ten rounds, the last of which was heard so."""
    return complaints(LOAD, [WHOLE, heard], held, (BEFORE, after))


def grown(**by: int) -> list[Footprint]:
    """Ten rounds, each of which leaves more than the one before."""
    return [
        replace(HELD, **{k: getattr(HELD, k) + n * v for k, v in by.items()})
        for n in range(10)
    ]


def test_flat_rounds_are_fine() -> None:
    """Also with one that held more for a moment, and with a first one that fills."""
    moment = replace(HELD, traced=1_500)

    assert wrong() == []
    assert wrong(held=[BEFORE, *FLAT, moment]) == []
    assert wrong(held=grown(traced=6)) == []


def test_resident_memory_may_follow_a_higher_peak() -> None:
    """The allocator keeps what it once needed; more than that is a leak."""
    assert wrong(held=grown(resident=2_000, peak=2_000)) == []
    assert wrong(held=grown(resident=2_000, peak=100)) == [
        "Memory grew: 64,000 kB resident at first, 74,000 in the end."
    ]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("2 x 3 of 10 words came", {"heard": Heard(2, 4, ("3 of 10 words came",) * 2)}),
        ("Only 3 of 4 streams were open together.", {"heard": Heard(4, 3, ())}),
        ("1 tasks were left.", {"held": [*FLAT, replace(HELD, tasks=1)]}),
        ("1 tasks were left.", {"after": replace(BEFORE, tasks=1)}),
        (
            "5 sockets rested in the pool, for 4 streams.",
            {"held": [*FLAT, replace(HELD, sockets=7)]},
        ),
        ("1 sockets outlived the pool.", {"after": replace(BEFORE, sockets=3)}),
        (
            "Memory grew: 1,040 kB traced at first, 1,140 in the end.",
            {"held": grown(traced=20)},
        ),
    ],
)
def test_what_is_left_is_said(said: str, what: dict[str, Any]) -> None:
    """An answer that was not whole, a task, a socket, memory."""
    assert wrong(**what) == [said]
