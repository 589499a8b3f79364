"""The benchmarks run and say what they found; no time is asserted."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import inside, load, parallel, wire
from bench.all import Bench, Ran, run
from bench.crowd import Heard, Load
from bench.first_text import BARE, measure_firsts, table_of_firsts
from bench.footprint import Footprint
from bench.growing import find_changes, losses_of
from bench.inside import Answered
from bench.load import Loaded
from bench.measuring import Measured, Pace
from bench.parallel import Took
from bench.prefix import Share
from bench.prefix import table as table_of_shares
from bench.remains import complaints
from bench.table import table_of
from simulator import RecordedRequest

BENCH = Path(__file__).resolve().parents[1] / "scripts" / "bench"
NAMES = [
    "the bytes alone",
    "json.loads of each event",
    "the pipe",
    "the pipe, json.dumps",
    "the openai SDK's events",
]
SEALED = 150
"""Fewer characters than the encrypted reasoning of one answer has."""
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
    assert ["Goal: the pipe at most 1.5 x json.loads: " in t for t in tables] == [
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
    ("pipe", "verdict"), [(6.0, "met (1.50)"), (6.4, "MISSED (1.60)")]
)
def test_missed_goal_is_said(pipe: float, verdict: str) -> None:
    """The pipe is compared with json.loads, whatever the machine did meanwhile."""
    table = table_of(PACE, measured(pipe))

    assert table.endswith(f"Goal: the pipe at most 1.5 x json.loads: {verdict}.\n")
    assert rows(table)["the openai SDK's events"] == [
        "160.0",
        "20.00",
        "(20.00",
        "20.00)",
        "7",
    ]


# ---------------------------------------------------------------- memory

LOAD = Load(streams=4, deltas=10, pause=20)
WHOLE = Heard(whole=4, together=4, faults=())
BEFORE = Footprint(resident=50_000, traced=0, peak=0, sockets=2, tasks=0)
HELD = Footprint(resident=60_000, traced=1_000, peak=2_000, sockets=6, tasks=0)
FLAT = [HELD] * 10


def test_tiny_load_leaves_nothing_behind() -> None:
    """Five chats at once, twice: each answer whole, and the pool's sockets alone."""
    tiny = ("--streams", "5", "--deltas", "20", "--rounds", "2")
    lines = printed_by("memory.py", *tiny).splitlines()

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


# ---------------------------------------------------------------- long chats


def test_tiny_chat_is_built_and_read_once() -> None:
    """Six items a turn, and the question."""
    lines = printed_by("history.py", "--turns", "3", "--rounds", "2").splitlines()

    assert lines[0].startswith("3 turns, 13 items: ")
    assert lines[0].endswith(" of 2 rounds, 1 reads of the database each.")
    assert lines[1].startswith("Goal: at most 50 ms and one read: ")


@pytest.mark.parametrize(
    ("cached", "verdict"), [(1900, "met (95.0%)"), (1880, "MISSED (94.0%)")]
)
def test_request_that_was_least_cached_is_judged(cached: int, verdict: str) -> None:
    """Against what the request before it held."""
    shares = [Share(2000, 1000, 1000), Share(9000, 2000, cached)]

    lines = table_of_shares(shares).splitlines()

    assert lines[2].split()[:4] == ["3", "9,000", "2,000", f"{cached:,}"]
    assert lines[-1] == f"Goal: at least 95% of the request before: {verdict}."


# ---------------------------------------------------------------- a chat that changes


def request_of(cached: int, *, removed: int = 0, **body: Any) -> RecordedRequest:
    """Return an answered request of 1,000 tokens, whose answer was a thought."""
    items = [{"type": "message"}, {"type": "reasoning"}]
    response = {
        "usage": {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": cached},
        },
        "input_transformations": [{"type": "reasoning"}] * removed,
        "output": [{"type": "reasoning"}],
    }
    body = {"input": items, **body}
    return RecordedRequest("/v1/responses", {}, body, 0.0, response=response)


@pytest.mark.parametrize(
    ("last", "is_met"),
    [
        (request_of(950), True),
        (request_of(949), False),
        (request_of(1000, removed=1), False),
    ],
)
def test_what_a_chat_lost_is_judged(last: RecordedRequest, is_met: bool) -> None:
    """By its worst request, and by reasoning that the API took out."""
    found = losses_of([request_of(0), last])

    assert found.is_met == is_met
    assert (found.thought, found.given) == (1, 1 - found.dropped)


def test_what_changed_in_a_chat_is_named() -> None:
    """Fields that no guide names may differ, and the input may grow."""
    first = request_of(0, tools=["a"], include=["x"])
    more = [*first.body["input"], {"type": "message"}]
    grown = request_of(0, tools=["a"], input=more)
    edited = request_of(0, tools=["b"], input=more[1:])

    assert find_changes([first, grown, edited]) == ["", "tools, input"]


# ---------------------------------------------------------------- all tables


def test_the_other_benchmarks_run() -> None:
    """One command, a heading and a table for each; nothing fails at tiny sizes."""
    hosts = ("inside.py", "prefix.py", "growing.py")
    without = ("stream.py", *hosts, "memory.py", "sandbox.py")
    printed = printed_by("all.py", "--quick", "--without", *without)

    headings = [line for line in printed.splitlines() if line.endswith(".py)")]
    assert [heading.split("(")[-1] for heading in headings] == [
        "wire.py)",
        "history.py)",
        "large.py)",
        "load.py)",
        "parallel.py)",
    ]
    assert f"{os.cpu_count()} cores" in printed.splitlines()[0]
    goals = printed.partition("== Goals\n")[2]
    assert [line.split()[0] for line in goals.split("\n") if line] == [
        "wire.py",
        "history.py",
        "large.py",
        "load.py",
        "parallel.py",
    ]


def test_the_chat_of_the_wire_keeps_its_reasoning() -> None:
    """What is measured is the whole way: kept items are read and sent again."""
    found = asyncio.run(wire.measure([1, 3], 1))

    assert [one.turns for one in found] == [1, 3]
    sizes = [one.size for one in found]
    assert sizes[1] > sizes[0] + 2 * len(wire.QUESTION) + 2 * SEALED


def test_a_failed_benchmark_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """The others run all the same, and the exit status says it."""
    bench = Bench("stream.py", "CPU", "--no-such-option")
    assert run(bench, quick=True) == Ran(succeeded=False, goals=())
    assert "== CPU (stream.py)" in capfd.readouterr().out


def test_goals_of_the_host_are_judged_by_pairs() -> None:
    """A machine that slows down in the middle slows both."""
    native = [Answered(1.0, 50, 4000), Answered(3.0, 90, 4000), Answered(1.0, 50, 9)]
    pipe = [Answered(0.4, 55, 300), Answered(1.2, 95, 300), Answered(0.6, 70, 300)]

    table = inside.table({inside.NATIVE: native, inside.PIPE: pipe}, 4000, 3)

    assert "Goal: at most 0.5 of the native CPU: met (0.40; 0.40 to 0.60)." in table


def test_the_first_text_is_judged_by_pairs() -> None:
    """What any function takes longer is told beside what the pipe takes."""
    firsts = {inside.NATIVE: [50, 90, 50], BARE: [80, 130, 81]}
    names = inside.NAMES

    slow = table_of_firsts({**firsts, inside.PIPE: [85, 131, 99]}, names)
    quick = table_of_firsts({**firsts, inside.PIPE: [55, 95, 70]}, names)

    told = "MISSED (41; 5 later than the bare pipe)."
    assert f"Goal: first text at most 10 ms later: {told}" in slow
    assert "later: met (5; -25 later than the bare pipe)." in quick


def test_ways_take_turns_in_another_order_each_round() -> None:
    """Nobody always comes behind the same other."""
    asked: list[str] = []

    async def ask(way: str) -> float:
        asked.append(way)
        return float(len(asked))

    found = asyncio.run(measure_firsts(ask, ("a", "b", "c"), 3))

    assert "".join(asked) == "abcbcacab"
    assert found["c"] == [3, 5, 7]


@pytest.mark.parametrize(("packed", "verdict"), [(0.2, "met"), (0.21, "MISSED")])
def test_goal_of_loading_holds_for_both_forms_of_the_pipe(
    packed: float, verdict: str
) -> None:
    """Whatever the others need, and however large they are."""
    loaded = [
        Loaded(load.PIPE, 600_000, 0.1, 100),
        Loaded(load.PACKED_PIPE, 9_000, packed, 100),
        Loaded("others", 9_000_000, 1.0, 9),
    ]

    table = load.table(loaded, 1)

    goal = f"at most 0.2 s of CPU, in both forms: {verdict} ({packed:.2f})."
    assert table.endswith(goal)
    assert "9000" in table


def test_calls_are_set_against_the_longest() -> None:
    """And against the time that they take one by one."""
    table = parallel.table([Took(600.0, 510.0)], 100)

    rows = [line.split()[-2:] for line in table.splitlines()[2:]]
    assert rows == [
        ["500.0", "1.00"],
        ["510.0", "1.02"],
        ["600.0", "1.20"],
        ["1500.0", "3.00"],
    ]
