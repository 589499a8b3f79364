"""The benchmarks run and judge their goals; no time is asserted."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bench import cost, crowd, first, inside, inventory, load, stream
from bench.all import BENCHES, Bench, run
from bench.crowd import Crowd
from bench.first import Pair, Wait
from bench.health import Gap, watched_health
from bench.host import Address
from bench.inside import Answered
from bench.network import run_network
from bench.process_size import Size
from bench.soak import (
    ALLOWED_GROWTH,
    CASES,
    Case,
    Sample,
    growth_a_minute,
    log_complaints,
    problem_of,
    report,
)
from bench.stream import Pace
from simulator import RecordedRequest, Simulator
from simulator.options import find_spec, parse_spec
from simulator.scenarios.catalog import SCENARIOS
from simulator.sealing import Seal, seal_content

BENCH = Path(__file__).resolve().parents[1] / "scripts" / "bench"
IN_HOST = ("inside.py", "first.py", "cost.py")
"""They start an Open WebUI: tests/hosts/test_bench_inside.py."""


# ---------------------------------------------------------------- all tables


def test_every_benchmark_runs_at_a_tiny_size() -> None:
    """One command prints a heading and a table for each, and all goals at the end."""
    done = subprocess.run(
        [sys.executable, BENCH / "all.py", "--quick", "--without", *IN_HOST],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{os.cpu_count()} cores" in done.stdout.splitlines()[0]
    programs = [bench.program for bench in BENCHES if bench.program not in IN_HOST]
    for program in programs:
        assert f"({program})" in done.stdout
    goals = done.stdout.partition("== Goals\n")[2].split("\n")
    assert [line.split()[0] for line in goals if line][:1] == ["stream.py"]
    assert {line.split()[0] for line in goals if line} == set(programs)
    assert "FAILED" not in done.stdout


def test_failed_benchmark_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    """The others run all the same."""
    bench = Bench("stream.py", "CPU", "--no-such-option")

    assert run(bench, quick=True) == ([], False)
    assert "== CPU (stream.py)" in capfd.readouterr().out


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("pipe", "verdict"), [(3.6, "met (0.90)"), (4.0, "MISSED (1.00)")]
)
def test_stream_is_judged_round_by_round(pipe: float, verdict: str) -> None:
    """The machine slows down from round to round, the ratio stays."""
    measured = {
        stream.YARDSTICK: [4.0, 8.0, 36.0],
        stream.PIPE: [pipe, 2 * pipe, 9 * pipe],
    }

    result = stream.result(Pace("at once", "burst", 4000, 3), measured)

    assert result.endswith(f"Goal: the pipe at most 0.9 x json.loads: {verdict}.")


def test_host_is_judged_round_by_round() -> None:
    """A machine that slows down in the middle slows both connections down."""
    answers = {
        inside.NATIVE: [Answered(cpu, 4000) for cpu in (1.0, 3.0, 1.0)],
        inside.PIPE: [Answered(cpu, 300) for cpu in (0.4, 1.2, 0.6)],
    }

    result = inside.cpu_result(answers, 4000)

    assert "Goal: at most 0.5 of the native CPU: met (0.40; 0.40 to 0.60)." in result


@pytest.mark.parametrize(
    ("pipe", "verdict"),
    [([85, 131, 99], "MISSED (+41 to +41 ms)."), ([45, 95, 40], "met (-5 to -5 ms).")],
)
def test_first_text_is_judged_round_by_round(pipe: list[float], verdict: str) -> None:
    """The differences within each round are compared, not the medians."""
    native = [50.0, 90.0, 50.0]
    pairs = [
        Pair(Wait(theirs, 200), Wait(ours, 203))
        for theirs, ours in zip(native, pipe, strict=True)
    ]

    result = first.result({"1 turn": pairs}, 3)

    assert result.endswith(f"native connection's: {verdict}")
    assert result.splitlines()[2].split()[-1] == "+3"


@pytest.mark.parametrize(
    ("faults", "last_lines"),
    [
        ((), ["All answers were whole."]),
        (
            ("'word': None", "'': Broken.", "'word': None"),
            ["'': Broken.", "'word': None"],
        ),
    ],
    ids=["whole", "broken"],
)
def test_crowd_is_reported_in_all_and_each(
    faults: tuple[str, ...], last_lines: list[str]
) -> None:
    """What was there before the crowd is not part of its share; each fault is told once."""
    size = Size(400_000, 20, 430_000, 90)
    gap = Gap()
    gap.milliseconds = 80.0
    firsts = (100.0, 200.0, 900.0)

    lines = crowd.crowd_lines(
        Crowd(30.0, 6.0, size, firsts, 3, 150.0, gap, faults, (1.0, 2.0)), "streams"
    ).splitlines()

    assert lines[0].startswith("3 streams at once inside Open WebUI, 30.0 s")
    assert "2.00 s each" in lines[1]
    assert "30 MB more at most, 10000 kB each, 400 MB before" in lines[2]
    assert "20 before, 90 at most" in lines[3]
    assert "80 ms" in lines[4]
    assert "200 ms, at most 900" in lines[5]
    assert "150 ms to its first text, 3 running" in lines[6]
    assert lines[7:] == last_lines


@pytest.mark.asyncio
async def test_longest_gap_is_that_of_the_slowest_answer() -> None:
    """Another process asks; it ends with the block."""
    asked = asyncio.Event()
    seconds = [0.0, 0.4, 0.0]

    async def health(_: web.Request) -> web.Response:
        if seconds:
            await asyncio.sleep(seconds.pop())
        else:
            asked.set()
        return web.Response()

    app = web.Application()
    app.router.add_get("/health", health)
    async with TestServer(app) as server:
        address = str(server.make_url("/health"))
        async with watched_health([address]) as gap:
            await asyncio.wait_for(asked.wait(), 60)

    assert gap.milliseconds >= 400


# ---------------------------------------------------------------- dollars


def billed(cached: int = 0, *, replayed: int = 0) -> RecordedRequest:
    """A request with an input of 10,000 tokens, and its answer of 1,000."""
    seal = Seal("rs_1", "org", "gpt-5.6", "", None, replayed)
    reasoning = {"type": "reasoning", "encrypted_content": seal_content(seal)}
    writes = 10_000 - cached
    usage = {
        "input_tokens": 10_000,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": writes},
        "output_tokens": 1_000,
    }
    return RecordedRequest(
        path="/v1/responses",
        headers={},
        body={"input": [{"role": "user", "content": "?"}, *[reasoning] * 2]},
        started_at=0,
        response={"usage": usage, "service_tier": "default"},
    )


def test_dollars_are_those_of_each_request() -> None:
    """At $5 for a million tokens written to the cache, $0.40 read, $20 of output."""
    whole = cost.spent([billed(), billed(8_000, replayed=64)])

    assert (whole.requests, whole.replayed) == (2, 2 * 64)
    assert (whole.usage.input, whole.usage.cached) == (20_000, 8_000)
    assert whole.usage.output == 2_000
    assert whole.dollars == pytest.approx(0.05 + 0.02 + 0.01 + 0.0032 + 0.02)


def test_request_without_an_answer_is_not_free() -> None:
    """A chat that broke would seem cheap."""
    refused = billed()
    refused.response = {"error": {"message": "No."}}

    with pytest.raises(RuntimeError, match="not answered"):
        cost.spent([refused])


@pytest.mark.parametrize(("cached", "verdict"), [(0, "met (1.00)"), (9_000, "MISSED")])
def test_dollars_of_both_are_compared(cached: int, verdict: str) -> None:
    """In all, and by the parts of the chat, each of which has its own requests."""
    steps = cost.plan(4)
    native = [[billed(cached)], *[[billed()]] * 3]
    turns = {inside.NATIVE: native, inside.PIPE: [[billed()]] * 4}

    result = cost.result("a prompt", steps, turns)

    assert f"a prompt: at most 1 x the native dollars: {verdict}" in result
    cells = [line.split() for line in result.splitlines()]
    [text] = [row for row in cells if row[:1] == ["text"]]
    [tools] = [row for row in cells if row[:1] == ["tools"]]
    assert (text[-1] == "1.00") is (cached == 0)
    assert tools == ["tools", "0.070", "0.070", "1.00"]


def test_chat_has_all_parts() -> None:
    """A question is edited behind the answers of tools; then a file is attached."""
    steps = cost.plan(20)

    assert [step.part for step in steps[::5]] == list(cost.PARTS)
    assert [index for index, step in enumerate(steps) if step.edits] == [10]
    assert [index for index, step in enumerate(steps) if step.attaches] == [15]


# ---------------------------------------------------------------- the network

ROUND_TRIP = 0.04


@pytest.mark.asyncio
async def test_network_takes_round_trips_over_tls() -> None:
    """Two to open a connection and one for each request; without any, there is none."""
    async with Simulator() as simulator:
        address = Address(simulator.base_url, simulator.api_key)
        headers = {"Authorization": f"Bearer {address.api_key}"}
        with run_network(address, ROUND_TRIP * 1e3) as network:
            trusted = ssl.create_default_context(
                cafile=network.environment["SSL_CERT_FILE"]
            )
            connector = aiohttp.TCPConnector(ssl=trusted)
            url = f"{network.address.base_url}/models"
            async with aiohttp.ClientSession(connector=connector) as http:
                for round_trips in (3, 1):
                    began = time.perf_counter()
                    async with http.get(url, headers=headers) as response:
                        assert (await response.json())["object"] == "list"
                    assert time.perf_counter() - began >= round_trips * ROUND_TRIP

        with run_network(address, 0) as network:
            assert network == (address, {})


# ---------------------------------------------------------------- the soak


def samples_growing_by(**per_minute: float) -> list[Sample]:
    """Return one sample a minute, with figures that grow by so much."""
    samples = []
    for minute in range(21):
        held = dict.fromkeys(ALLOWED_GROWTH, 100.0)
        for key, more in per_minute.items():
            held[key] += minute * more
        samples.append(Sample(minute, held))
    return samples


def test_growth_is_measured_by_the_minute() -> None:
    """A moment in which more was held is no growth."""
    moment = Sample(21, dict.fromkeys(ALLOWED_GROWTH, 900.0))

    assert growth_a_minute(samples_growing_by(tasks=2.5), "tasks") == 2.5
    assert growth_a_minute([*samples_growing_by(), moment], "tasks") == 0


WHOLE = Case("chat")
FAILED = Case("cut", "failed")
STOPPED = Case("slow", "stopped")


@pytest.mark.parametrize(
    ("case", "text", "error", "problem"),
    [
        (WHOLE, "That is all.", None, ""),
        (WHOLE, "", None, "no text"),
        (WHOLE, "That", "Broken.", "Broken."),
        (FAILED, "That", "Broken.", ""),
        (FAILED, "That", None, "no error message"),
        (STOPPED, "", None, ""),
        (STOPPED, "word0", "Broken.", "Broken."),
    ],
)
def test_turn_ends_as_its_case_says(
    case: Case, text: str, error: object, problem: str
) -> None:
    """What nobody planned is a problem."""
    assert problem_of(case, text, error) == problem


def test_every_case_is_one_of_the_simulator() -> None:
    """A misspelled scenario would be answered with an error."""
    for case in CASES:
        name, _ = parse_spec(find_spec(f"sim:{case.scenario} Hello") or "")
        assert name in SCENARIOS, case.scenario


UNCLOSED = "ERROR asyncio: Unclosed client session"


@pytest.mark.parametrize(
    ("samples", "problems", "verdict"),
    [
        (samples_growing_by(), [], "met (nothing grows; 0 problems)."),
        (samples_growing_by()[:3], [], "met (fewer than 12 samples"),
        (samples_growing_by(tasks=1), [], "MISSED (grows: tasks; 0 problems)."),
        (samples_growing_by(), [UNCLOSED], "MISSED (nothing grows; 1 problems)."),
    ],
)
def test_soak_ends_with_its_verdict(
    capsys: pytest.CaptureFixture[str],
    samples: list[Sample],
    problems: list[str],
    verdict: str,
) -> None:
    """The exit code is 1 where the goal is missed."""
    exit_code = report(samples, problems)

    last_line = capsys.readouterr().out.splitlines()[-1]
    assert verdict in last_line
    assert exit_code == (0 if "met (" in last_line else 1)


def test_task_of_the_host_is_not_the_pipes() -> None:
    """The next line says where it was begun."""
    lost = "Task exception was never retrieved"
    path = "defined at /lib/site-packages/open_webui/utils/misc.py:1194>"

    assert log_complaints(f"{lost}\nfuture: <Task {path}") == []
    assert log_complaints(f"{lost}\nfuture: <Task defined at <string>:1>") == [lost]
    assert log_complaints(UNCLOSED) == [UNCLOSED]


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
    assert held["resident"] > held["allocated"] > 10_000


# ---------------------------------------------------------------- loading


@pytest.mark.parametrize(("packed", "verdict"), [(0.2, "met"), (0.21, "MISSED")])
def test_goal_of_loading_holds_for_both_forms_of_the_pipe(
    packed: float, verdict: str
) -> None:
    """Whatever the agents need."""
    sizes = {load.READABLE_PIPE: 600_000, load.PACKED_PIPE: 9_000, "others": 9_000_000}
    seconds = {load.READABLE_PIPE: 0.1, load.PACKED_PIPE: packed, "others": 1.0}

    result = load.result(sizes, seconds, 1)

    goal = f"at most 0.2 s of CPU, in both forms: {verdict} ({packed:.2f})."
    assert result.endswith(goal)
    assert "9000" in result
