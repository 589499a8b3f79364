"""The soak says what grows and what is unexplained; its pure parts, without a server."""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from bench import inventory
from bench.cases import CASES, FAILED, STOPPED, WHOLE, Case, Seen, explain
from bench.growth import (
    FEWEST_SAMPLES,
    FIGURES,
    Sample,
    growths,
    slope_of,
    table_of_growths,
)
from bench.people import Asked
from bench.soak import Soak, left_open, report, table_of_turns, what_grew
from simulator.options import find_spec, parse_spec
from simulator.scenarios.catalogue import SCENARIOS

Json = dict[str, Any]
HELD = {figure.key: 100.0 for figure in FIGURES}
CUT = next(case for case in FAILED if case.name == "cut")
STOP = STOPPED[0]


def samples(by: Mapping[str, float], count: int = 12) -> list[Sample]:
    """One a minute, each of which holds so much more than the one before."""
    return [
        Sample(n, {k: v + n * by.get(k, 0) for k, v in HELD.items()})
        for n in range(count)
    ]


def grown(by: Mapping[str, float]) -> list[str]:
    """The figures that grow after two minutes."""
    return [one.figure.key for one in growths(samples(by), 2) if one.grows]


def test_nothing_grows_where_all_stays() -> None:
    """Nor where a figure falls, or where one moment held more."""
    moment = [*samples({}), Sample(12, {k: 9 * v for k, v in HELD.items()})]

    assert grown({}) == grown({"tasks": -5}) == []
    assert not any(one.grows for one in growths(moment, 2))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.key)
def test_one_more_for_each_round_grows(figure: Any) -> None:
    """Of a count, one a minute; of memory, a little more than what is allowed."""
    more = max(1.0, 1.1 * figure.allowed / figure.scale)

    assert grown({figure.key: more}) == [figure.key]


def test_what_grows_before_is_the_warm_up() -> None:
    """Caches fill in the first minutes; the first sample after them counts."""
    filled = [
        Sample(one.minute, HELD | {"tasks": min(one.minute, 4)}) for one in samples({})
    ]

    assert [one.figure.key for one in growths(filled, 0) if one.grows] == []
    steep = [one.slope for one in growths(filled[:5], 0) if one.figure.key == "tasks"]
    assert steep == [1]
    assert [one.slope for one in growths(filled, 4)] == [0] * len(FIGURES)


def test_answer_that_the_host_did_not_store_is_told_apart() -> None:
    """It was shown whole: another process held SQLite's lock when it was to be stored."""
    whole = Seen(ended=True, streamed=WHOLE[1].words, stored=False)

    assert explain(WHOLE[1], whole).verdict == "not stored by the host"
    for other in (replace(whole, stored=True), replace(whole, streamed="That")):
        assert explain(WHOLE[1], other).verdict == "UNEXPLAINED"


def test_sentence_that_the_host_did_not_store_is_told_apart() -> None:
    """The page showed it, and no other."""
    fault = next(case for case in CASES if case.sentence)
    lost = Seen(ended=True, told=fault.sentence, stored=False)

    assert explain(fault, lost).verdict == "not stored by the host"
    for other in (replace(lost, stored=True), replace(lost, told="That")):
        assert explain(fault, other).verdict == "UNEXPLAINED"


def test_few_samples_make_no_verdict() -> None:
    """The table says so."""
    few = samples({}, FEWEST_SAMPLES + 1)

    assert growths(few, 2) == []
    assert "no verdict" in table_of_growths([])
    assert len(growths(few, 1)) == len(FIGURES)


def test_a_slope_is_that_of_most() -> None:
    """One outlier does not move it."""
    line = [(float(n), 2.0 * n) for n in range(9)]

    assert slope_of(line) == 2
    assert slope_of([*line, (9.0, 900.0)]) == 2


# ---------------------------------------------------------------- turns


def test_every_case_is_one_of_the_simulator() -> None:
    """A misspelt one would be answered with an error, and so be unexplained."""
    for case in CASES:
        name, _ = parse_spec(find_spec(case.question) or "")
        assert name in SCENARIOS, case.name
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.sentence for case in FAILED)
    assert not any(case.sentence or case.stopped for case in WHOLE)


@pytest.mark.parametrize(
    ("case", "seen", "verdict"),
    [
        (WHOLE[0], Seen(True, "Here I am."), "finished"),
        (WHOLE[1], Seen(True, "This is turn 1."), "UNEXPLAINED"),
        (WHOLE[1], Seen(True, "", CUT.sentence), "UNEXPLAINED"),
        (WHOLE[1], Seen(False), "UNEXPLAINED"),
        (CUT, Seen(True, "This", f"{CUT.sentence} (Error id: 1)"), "injected fault"),
        (CUT, Seen(True, "This", "Something else."), "UNEXPLAINED"),
        (CUT, Seen(True, "This"), "UNEXPLAINED"),
        (STOP, Seen(True, "word0", stop_pressed=True), "stopped by the user"),
        (STOP, Seen(True, "word0", "Failed.", stop_pressed=True), "UNEXPLAINED"),
        (STOP, Seen(False, "word0", stop_pressed=True), "UNEXPLAINED"),
    ],
)
def test_only_what_was_planned_explains(case: Case, seen: Seen, verdict: str) -> None:
    """A sentence that the fault does not have, or a missing one, is not explained."""
    assert explain(case, seen).verdict == verdict


def asked(case: Case, seen: Seen) -> Asked:
    """A turn of somebody that ended so."""
    return Asked(case, "person1@example.com", "chat-1", explain(case, seen))


LOST = asked(WHOLE[1], Seen(False))
FINE = asked(WHOLE[0], Seen(True, "."))
BROKEN = asked(CUT, Seen(True, "", CUT.sentence))


def test_unfinished_turns_are_listed_with_their_reason() -> None:
    """The same ones together; of an unexplained one also whose it is."""
    lines = table_of_turns([FINE, BROKEN, BROKEN, LOST]).splitlines()

    assert lines[1].split()[:3] == ["1", "UNEXPLAINED", "a"]
    assert lines[2].split()[:4] == ["2", "injected", "fault", "cut"]
    assert lines[2].endswith(CUT.sentence)
    assert lines[3].split() == ["1", "finished"]
    assert lines[4] == "  person1@example.com, chat chat-1: a chat turn: it did not end"


# ---------------------------------------------------------------- the verdict


def a_soak(held: list[Sample], turns: list[Asked]) -> Soak:
    """One that has ended."""
    names = [{"tasks": {"sleep": n}, "python": {"dict": 5}} for n in range(len(held))]
    nobody: Any = None
    found = Soak(nobody, nobody, [], "", random.Random(0))
    found.samples, found.names, found.asked = held, names, turns
    return found


UNCLOSED = "ERROR asyncio: Unclosed client session"


@pytest.mark.parametrize(
    ("more", "turns", "log", "said"),
    [
        ({}, [FINE, BROKEN], "INFO fine", "met (nothing grows; 0 turns"),
        ({"tasks": 1.0}, [FINE], "", "MISSED (grows: asyncio tasks; 0 turns"),
        ({}, [LOST], "", "MISSED (nothing grows; 1 turns unexplained"),
        ({}, [FINE], UNCLOSED, "unexplained; 1 complaints in the log)."),
    ],
)
def test_the_last_line_is_the_verdict(
    capsys: pytest.CaptureFixture[str],
    more: dict[str, float],
    turns: list[Asked],
    log: str,
    said: str,
) -> None:
    """The exit status is 1 where it is missed."""
    status = report(a_soak(samples(more), turns), log, 2)

    last = capsys.readouterr().out.splitlines()[-1]
    assert said in last
    assert status == (0 if "met (" in last else 1)


def test_a_short_run_neither_meets_nor_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its turns are judged, its figures are not."""
    assert report(a_soak(samples({}, 3), [FINE]), "", 2) == 0
    assert ": not judged (nothing grows; " in capsys.readouterr().out


def test_what_grew_is_named() -> None:
    """Counted from the first sample after the warm-up."""
    assert what_grew(a_soak(samples({}), []), 2).splitlines()[1:] == [
        "        +9 tasks: sleep"
    ]


def test_python_complains_of_what_is_left_open() -> None:
    """The words of asyncio and of aiohttp; other errors are explained by the turns."""
    log = f"ERROR a 502\n{UNCLOSED}\nTask was destroyed but it is pending!"

    assert left_open(log) == log.splitlines()[1:]


def test_task_of_the_host_is_not_the_pipes() -> None:
    """The next line says where it was begun."""
    lost = "Task exception was never retrieved"
    path = "defined at /lib/site-packages/open_webui/utils/misc.py:1194>"

    assert left_open(f"{lost}\nfuture: <Task {path}") == []
    assert left_open(f"{lost}\nfuture: <Task defined at <string>:1>") == [lost]


def test_all_cases_come_equally_often() -> None:
    """In another order each time."""
    soak = a_soak([], [])
    drawn = [soak._draw().name for _ in range(3 * len(CASES))]

    assert set(Counter(drawn).values()) == {3}
    assert drawn[: len(CASES)] != drawn[len(CASES) : 2 * len(CASES)]


# ---------------------------------------------------------------- counting


@pytest.mark.asyncio
async def test_the_inventory_sees_what_is_held() -> None:
    """A session, a socket, a task, an object of a copy, by name too."""
    Left = type("Left", (), {"__module__": f"function_one_{'a' * 32}"})
    before = inventory._count("function_one_")
    task = asyncio.create_task(asyncio.sleep(0))
    async with aiohttp.ClientSession():
        with socket.socket():
            kept = [Left() for _ in range(12)]
            held = inventory._count("function_one_")
    await task

    more = {
        key: held[key] - before[key] for key in ("descriptors", "sessions", "tasks")
    }
    assert more == {"descriptors": 1, "sessions": 1, "tasks": 1}
    assert (held["objects"], held["copies"]) == (len(kept), 1)
    assert held["names"]["python"]["function_one_.Left"] == len(kept)
    assert held["resident"] > 10_000
