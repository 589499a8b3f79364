"""The benchmarks run and judge their goals; no time is asserted."""

import asyncio
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench import inside, inventory, load, memory, stream
from bench.all import BENCHES, Bench, run
from bench.first_text import measure_firsts, table_of_firsts
from bench.growth import FIGURES, Sample, growths, table_of_growths
from bench.inside import Answered
from bench.load import Loaded
from bench.memory import Round
from bench.people import CASES, Asked, Case, Seen, problem_of
from bench.soak import Soak, log_complaints, report
from bench.stream import Measured, Pace
from simulator.options import find_spec, parse_spec
from simulator.scenarios.catalog import SCENARIOS

BENCH = Path(__file__).resolve().parents[1] / "scripts" / "bench"


# ---------------------------------------------------------------- all tables


def test_every_benchmark_runs_at_a_tiny_size() -> None:
    """One command prints a heading and a table for each, and all goals in the end."""
    done = subprocess.run(
        [sys.executable, BENCH / "all.py", "--quick", "--without", "inside.py"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{os.cpu_count()} cores" in done.stdout.splitlines()[0]
    programs = [bench.program for bench in BENCHES if bench.program != "inside.py"]
    for program in programs:
        assert f"({program})" in done.stdout
    goals = done.stdout.partition("== Goals\n")[2].split("\n")
    assert [line.split()[0] for line in goals if line][:1] == ["stream.py"]
    assert {line.split()[0] for line in goals if line} == set(programs)
    assert "FAILED" not in done.stdout
    assert "No error, and nothing left behind." in done.stdout


def test_failed_benchmark_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """The others run all the same."""
    bench = Bench("stream.py", "CPU", ("--no-such-option",))

    assert run(bench, quick=True) == ([], False)
    assert "== CPU (stream.py)" in capfd.readouterr().out


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("pipe", "verdict"), [(6.0, "met (1.50)"), (6.4, "MISSED (1.60)")]
)
def test_stream_is_judged_round_by_round(pipe: float, verdict: str) -> None:
    """The machine slows down from round to round, the ratio stays."""
    measured = {
        stream.YARDSTICK: Measured([4.0, 8.0, 36.0], 7),
        stream.PIPE: Measured([pipe, 2 * pipe, 9 * pipe], 7),
    }

    table = stream.table(Pace("at once", (), 0, 4000, 3), measured)

    assert table.endswith(f"Goal: the pipe at most 1.5 x json.loads: {verdict}.")


def test_host_is_judged_round_by_round() -> None:
    """A machine that slows down in the middle slows both ways."""
    answers = {
        inside.NATIVE: [Answered(cpu, 50, 4000) for cpu in (1.0, 3.0, 1.0)],
        inside.PIPE: [Answered(cpu, 55, 300) for cpu in (0.4, 1.2, 0.6)],
    }

    table = inside.table(answers, 4000, 3)

    assert "Goal: at most 0.5 of the native CPU: met (0.40; 0.40 to 0.60)." in table


@pytest.mark.parametrize(
    ("pipe", "verdict"),
    [
        ([85, 131, 99], "MISSED (41; 5 later than the bare pipe)."),
        ([55, 95, 70], "met (5; -25 later than the bare pipe)."),
    ],
)
def test_first_text_is_judged_round_by_round(pipe: list[float], verdict: str) -> None:
    """What any function takes longer is told beside what the pipe takes."""
    firsts: dict[str, list[float]] = {
        "native": [50, 90, 50],
        "bare": [80, 130, 81],
        "pipe": pipe,
    }
    names = {way: way for way in firsts}

    table = table_of_firsts(firsts, names, "native", "bare", "pipe")

    assert table.endswith(f"later: {verdict}")


def test_ways_take_turns_in_another_order_each_round() -> None:
    """Nobody always comes behind the same other."""
    asked: list[str] = []

    async def ask(way: str) -> float:
        asked.append(way)
        return float(len(asked))

    firsts = asyncio.run(measure_firsts(ask, ("a", "b", "c"), 3))

    assert "".join(asked) == "abcbcacab"
    assert firsts["c"] == [3, 5, 7]


def memory_rounds(*held: float, tasks: int = 0, faults: tuple[str, ...] = ()) -> Any:
    """Return rounds of the load, each with the kilobytes that it left."""
    return [Round(40, 46, 12, 6, kilobytes, tasks, faults) for kilobytes in held]


FLAT = [1000.0] * 7


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (memory_rounds(*FLAT), []),
        (memory_rounds(500, *FLAT, 1200), []),
        (
            memory_rounds(*FLAT, 1060, 1070, 1080),
            ["Memory grew: from 1,000 to 1,060 kB."],
        ),
        (memory_rounds(*FLAT, tasks=2), ["2 tasks were left."]),
        (memory_rounds(*FLAT, faults=("3 words came",)), ["3 words came"]),
    ],
)
def test_what_is_left_behind_is_told(rounds: list[Round], expected: list[str]) -> None:
    """Memory that stays, a task, an answer that is not whole."""
    assert memory.complaints(rounds, rounds) == expected


# ---------------------------------------------------------------- the soak


def samples_growing_by(**per_minute: float) -> list[Sample]:
    """Return one sample a minute, each of which holds so much more."""
    samples = []
    for minute in range(20):
        held = {figure.key: 100.0 for figure in FIGURES}
        for key, more in per_minute.items():
            held[key] += minute * more
        samples.append(Sample(minute, held))
    return samples


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.key for figure in FIGURES])
def test_figure_grows_that_is_above_its_allowance(figure: Any) -> None:
    """A moment in which more was held is no growth."""
    moment = {one.key: 900.0 for one in FIGURES}
    flat = [*samples_growing_by(), Sample(20, moment)]
    growing = samples_growing_by(**{figure.key: 1.1 * figure.allowed})

    assert not [growth for growth in growths(flat, 2) if growth.grows]
    grown = [growth.figure for growth in growths(growing, 2) if growth.grows]
    assert grown == [figure]


def test_few_samples_make_no_verdict() -> None:
    """The table says so."""
    assert growths(samples_growing_by(tasks=1), 15) == []
    assert "no verdict" in table_of_growths([])


WHOLE = Case("whole", "chat")
FAILED = Case("cut", "cut", "failed")
STOPPED = Case("stopped", "slow", "stopped")


@pytest.mark.parametrize(
    ("case", "seen", "problem"),
    [
        (WHOLE, Seen(True, "That is all for now."), ""),
        (WHOLE, Seen(True, "That"), "not whole: ...'That'"),
        (WHOLE, Seen(False, "That is all for now."), "it did not end"),
        (WHOLE, Seen(True, "That is all for now.", "Broken."), "Broken."),
        (FAILED, Seen(True, "That", "Broken."), ""),
        (FAILED, Seen(True, "That"), "no message tells of the fault"),
        (STOPPED, Seen(True, "word0"), ""),
        (STOPPED, Seen(True, "word0", "Broken."), "Broken."),
    ],
)
def test_turn_ends_as_its_case_says(case: Case, seen: Seen, problem: str) -> None:
    """What nobody planned is a problem."""
    assert problem_of(case, seen) == problem


def test_every_case_is_one_of_the_simulator() -> None:
    """A misspelled scenario would be answered with an error."""
    for case in CASES:
        name, _ = parse_spec(find_spec(case.question) or "")
        assert name in SCENARIOS, case.name
    assert len({case.name for case in CASES}) == len(CASES)


UNCLOSED = "ERROR asyncio: Unclosed client session"


@pytest.mark.parametrize(
    ("per_minute", "problem", "log", "verdict"),
    [
        ({}, "", "INFO fine", "met (nothing grows; 0 turns"),
        ({"tasks": 1.0}, "", "", "MISSED (grows: asyncio tasks; 0 turns"),
        ({}, "it did not end", "", "MISSED (nothing grows; 1 turns"),
        ({}, "", UNCLOSED, "otherwise; 1 complaints in the log)."),
    ],
)
def test_soak_ends_with_its_verdict(
    capsys: pytest.CaptureFixture[str],
    per_minute: dict[str, float],
    problem: str,
    log: str,
    verdict: str,
) -> None:
    """The exit code is 1 where the goal is missed."""
    exit_code = report(
        samples_growing_by(**per_minute), [Asked(WHOLE, problem)], log, 2
    )

    last_line = capsys.readouterr().out.splitlines()[-1]
    assert verdict in last_line
    assert exit_code == (0 if "met (" in last_line else 1)


def test_task_of_the_host_is_not_the_pipes() -> None:
    """The next line says where it was begun."""
    lost = "Task exception was never retrieved"
    path = "defined at /lib/site-packages/open_webui/utils/misc.py:1194>"

    assert log_complaints(f"{lost}\nfuture: <Task {path}") == []
    assert log_complaints(f"{lost}\nfuture: <Task defined at <string>:1>") == [lost]


def test_all_cases_come_equally_often() -> None:
    """In another order each time."""
    nobody: Any = None
    soak = Soak(nobody, nobody, [], random.Random(0))

    drawn = [soak._draw_case().name for _ in range(3 * len(CASES))]

    assert set(Counter(drawn).values()) == {3}
    assert drawn[: len(CASES)] != drawn[len(CASES) : 2 * len(CASES)]


@pytest.mark.asyncio
async def test_inventory_counts_what_is_held() -> None:
    """A session, a socket, a task, objects of a copy."""
    left_type = type("Left", (), {"__module__": f"function_one_{'a' * 32}"})
    before = inventory.count_held("function_one_")
    task = asyncio.create_task(asyncio.sleep(0))
    async with aiohttp.ClientSession():
        with socket.socket():
            kept = [left_type() for _ in range(12)]
            held = inventory.count_held("function_one_")
    await task

    for key in ("descriptors", "sessions", "tasks"):
        assert held[key] == before[key] + 1
    assert (held["objects"], held["copies"]) == (len(kept), 1)
    assert held["resident"] > 10_000


# ---------------------------------------------------------------- loading


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
