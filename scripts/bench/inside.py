"""Measure the same answer inside the real Open WebUI, through its own connection and the pipe.

python scripts/bench/inside.py                two tables, in about two minutes
python scripts/bench/inside.py --agents 50    what so many agents at once take instead

Open WebUI's own Responses connection and the pipe answer in turns, so that a busy
machine slows both alike: the ratio is the result. Counted is the CPU of the server's
process, from the question to the end of its saving; a tab reads along as the page does.
The simulator writes a delta every two milliseconds.

The wait for the first text is measured with short answers of its own. There a bare pipe
takes part, which hands on the bytes as they come: what it takes longer than the
connection is Open WebUI's own time for any function.

Each agent has a chat of its own, and calls a tool in six rounds before its answer.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.host import BUILT, MODEL, Address, run_simulator, verdict
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, install_toolkit

NATIVE = f"native.{MODEL}"
BARE = "bare"
PIPE = f"bench.{MODEL}"
NAMES = {NATIVE: "the native connection", BARE: "a bare pipe", PIPE: "the pipe"}
BARE_PIPE = Path(__file__).with_name("bare_pipe.py")
PAUSE_MS = 2
SUMMARY = {"custom_params": {"reasoning": {"summary": "auto"}}}
"""Open WebUI's connection asks for no summary by itself; the pipe does."""
GOAL = 0.5
"""Of the CPU of the native connection."""
GOAL_MS = 10.0
"""How much later the first text may come than through the native connection."""
SHORT_DELTAS = 20
"""Of an answer whose beginning is measured."""
AGENT_NAME = "gpt5_function_calling"
AGENT_QUESTION = "sim:agent-steps,delay=20 get_weather"
WARM_UP_AGENTS = 3
TEXT_TIMEOUT = 60
ANSWER_TIMEOUT = 600


@dataclass(frozen=True)
class Answered:
    """What one answer took: seconds of the server's CPU, milliseconds to the first text."""

    cpu: float
    first: float
    events: int


@dataclass(frozen=True)
class Crowd:
    """What many agents at once took; `firsts` are milliseconds to the first text.

    Memory is in kB and threads are the most beside those of an idle server. `load` is
    that of the machine, before and after.
    """

    seconds: float
    cpu: float
    memory: float
    threads: int
    firsts: Sequence[float]
    faults: Sequence[str]
    load: tuple[float, float]


Answers = Mapping[str, Sequence[Answered]]
"""By the way that the questions took, round by round."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--deltas", type=int, default=4000, help="in an answer")
    parser.add_argument("--rounds", type=int, default=3, help="of both")
    parser.add_argument("--firsts", type=int, default=21, help="rounds of short ones")
    parser.add_argument("--agents", type=int, default=0, help="at once")
    arguments = parser.parse_args()
    with run_simulator() as address:
        if arguments.agents:
            print(crowd_lines(asyncio.run(measure_agents(address, arguments.agents))))
            return
        long_answers, short_answers = asyncio.run(measure(address, arguments))
    print(cpu_table(long_answers, arguments.deltas), end="\n\n")
    print(first_text_table(short_answers))


async def measure(
    address: Address, arguments: argparse.Namespace
) -> tuple[Answers, Answers]:
    """Let all answer in turns, after a short answer of each that does not count."""
    async with (
        OpenWebUI() as server,
        both_ways(server.admin, address),
        Tab(server.admin) as tab,
    ):
        await _ask_in_turns(server, tab, tuple(NAMES), SHORT_DELTAS, 1)
        short_answers = await _ask_in_turns(
            server, tab, tuple(NAMES), SHORT_DELTAS, arguments.firsts
        )
        long_answers = await _ask_in_turns(
            server, tab, (NATIVE, PIPE), arguments.deltas, arguments.rounds
        )
    return long_answers, short_answers


async def _ask_in_turns(
    server: OpenWebUI, tab: Tab, ways: Sequence[str], deltas: int, rounds: int
) -> Answers:
    """Ask each way once in a round; which of them begins changes each round."""
    answers: dict[str, list[Answered]] = {way: [] for way in ways}
    for number in range(rounds):
        start = number % len(ways)
        for way in (*ways[start:], *ways[:start]):
            answers[way].append(await answer(server, tab, way, deltas))
    return answers


async def measure_agents(address: Address, count: int) -> Crowd:
    """Let so many agents work at once, after a few that do not count."""
    async with OpenWebUI() as server, Tab(server.admin) as tab:
        await install_toolkit(server.admin)
        await install_agent(server.admin, address)
        await ask_agents(server, tab, WARM_UP_AGENTS)
        return await ask_agents(server, tab, count)


async def install_agent(admin: User, address: Address) -> None:
    """Install the pipe with an agent; its tools are those of the tests' toolkit."""
    valves = {"BASE_URL": address.base_url, "API_KEY": address.api_key}
    valves["MODEL_ID"] = f"{MODEL}, {AGENT_NAME}"
    await install_pipe(admin, "bench", BUILT.read_text("utf-8"), valves)


async def ask_agents(server: OpenWebUI, tab: Tab, count: int) -> Crowd:
    """Ask all agents, one question after the other, and read their answers together."""
    load_before = os.getloadavg()[0]
    memory, threads = process_size(server.pid)
    peak = asyncio.create_task(_watch_size(server.pid))
    cpu_before = cpu_seconds(server.pid)
    began = time.perf_counter()
    asked = await asyncio.gather(*(_ask_agent(tab) for _ in range(count)))
    seconds = time.perf_counter() - began
    peak.cancel()
    most_memory, most_threads = await peak
    return Crowd(
        seconds=seconds,
        cpu=cpu_seconds(server.pid) - cpu_before,
        memory=most_memory - memory,
        threads=most_threads - threads,
        firsts=[first for first, _ in asked],
        faults=[fault for _, fault in asked if fault],
        load=(load_before, os.getloadavg()[0]),
    )


async def _ask_agent(tab: Tab) -> tuple[float, str]:
    """Ask one agent; return the milliseconds to its first text, and what was wrong."""
    began = time.perf_counter()
    body = {"tool_ids": ["toolkit"]}
    turn = await tab.begin(f"bench.{AGENT_NAME}", AGENT_QUESTION, body=body)
    await turn.until(_has_words_or_end, ANSWER_TIMEOUT)
    first = time.perf_counter() - began
    await asyncio.wait_for(turn.finished.wait(), ANSWER_TIMEOUT)
    await tab.settle(turn, ANSWER_TIMEOUT)
    is_whole = "This is what I have so far" in turn.text
    fault = "" if is_whole and not turn.error else f"{turn.text!r}: {turn.error}"
    return first * 1e3, fault


def _has_words_or_end(turn: Turn) -> bool:
    """Say whether the page shows something of the model: commentary, or the answer."""
    return "One more step" in str(turn.events) or turn.finished.is_set()


async def _watch_size(pid: int) -> tuple[float, int]:
    """Return the largest size of a process until the task is cancelled."""
    most_memory, most_threads = process_size(pid)
    try:
        while True:
            await asyncio.sleep(0.1)
            memory, threads = process_size(pid)
            most_memory = max(most_memory, memory)
            most_threads = max(most_threads, threads)
    except asyncio.CancelledError:
        return most_memory, most_threads


def process_size(pid: int) -> tuple[float, int]:
    """Return the memory of a process in kB, and its threads (proc_pid_status(5))."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["VmRSS"].split()[0]) * 1.024, int(fields["Threads"])


def crowd_lines(crowd: Crowd) -> str:
    """Return what the agents took, in all and each."""
    count = len(crowd.firsts)
    lines = [
        f"{count} agents at once inside Open WebUI, {crowd.seconds:.1f} s "
        f"(load of the machine {crowd.load[0]:.1f}, then {crowd.load[1]:.1f})",
        f"  CPU         {crowd.cpu:.1f} s, {crowd.cpu / count:.2f} s an agent",
        f"  memory      {crowd.memory / 1000:.0f} MB more at most, "
        f"{crowd.memory / count:.0f} kB an agent",
        f"  threads     {crowd.threads} more at most",
        f"  first text  {median(crowd.firsts):.0f} ms, at most {max(crowd.firsts):.0f}",
    ]
    faults = sorted(set(crowd.faults)) or ["All answers were whole."]
    return "\n".join([*lines, *faults])


@asynccontextmanager
async def both_ways(admin: User, address: Address) -> AsyncIterator[None]:
    """Connect Open WebUI with the simulator natively and through both pipes."""
    native_config = {
        "enable": True,
        "api_type": "responses",
        "prefix_id": "native",
        "model_ids": [MODEL],
    }
    connection = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [address.base_url],
        "OPENAI_API_KEYS": [address.api_key],
        "OPENAI_API_CONFIGS": {"0": native_config},
    }
    valves = {"BASE_URL": address.base_url, "API_KEY": address.api_key}
    before = await admin.call("GET", "/openai/config")
    await admin.call("POST", "/openai/config/update", connection)
    source = BUILT.read_text("utf-8")
    await install_pipe(admin, "bench", source, {**valves, "MODEL_ID": MODEL})
    await install_pipe(admin, BARE, BARE_PIPE.read_text("utf-8"), valves)
    try:
        yield
    finally:
        await admin.delete_function("bench")
        await admin.delete_function(BARE)
        await admin.call("POST", "/openai/config/update", before)


async def answer(server: OpenWebUI, tab: Tab, model: str, deltas: int) -> Answered:
    """Ask in a new chat, read to the end; raise RuntimeError where words are missing."""
    question = f"sim:long,deltas={deltas},delay={PAUSE_MS}"
    body = {"params": SUMMARY} if model == NATIVE else {}
    cpu_before = cpu_seconds(server.pid)
    began = time.perf_counter()
    turn = await tab.begin(model, question, body=body)
    await turn.until(_has_text_or_end, TEXT_TIMEOUT)
    first = time.perf_counter() - began
    await asyncio.wait_for(turn.finished.wait(), ANSWER_TIMEOUT)
    await tab.settle(turn)
    cpu = cpu_seconds(server.pid) - cpu_before
    _check(turn, deltas)
    return Answered(cpu, first * 1e3, len(turn.events))


def _has_text_or_end(turn: Turn) -> bool:
    return bool(turn.text) or turn.finished.is_set()


def _check(turn: Turn, deltas: int) -> None:
    """Raise RuntimeError where the answer is not whole, or has no reasoning."""
    words = turn.text.count("word")
    if words != deltas or turn.error:
        raise RuntimeError(f"{words} of {deltas} words came: {turn.error}")
    if "reasoning_summary" not in str(turn.events):
        raise RuntimeError("The answer came without its reasoning.")


def cpu_seconds(pid: int) -> float:
    """Return the CPU that a process has used (proc_pid_stat(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu_table(answers: Answers, deltas: int) -> str:
    """Return a line for each way, then the goal."""
    pairs = zip(answers[PIPE], answers[NATIVE], strict=True)
    ratios = [ours.cpu / theirs.cpu for ours, theirs in pairs]
    lines = [
        f"Inside Open WebUI: {deltas:,} deltas and reasoning, one every {PAUSE_MS} ms, "
        f"{len(ratios)} rounds, medians",
        f"  {'':28}{'CPU s':>8}{'x native':>10}{'events':>9}",
    ]
    for model, ratio in ((NATIVE, 1.0), (PIPE, median(ratios))):
        cpu = median(answered.cpu for answered in answers[model])
        events = answers[model][-1].events
        lines.append(f"  {NAMES[model]:28}{cpu:8.2f}{ratio:10.2f}{events:9,}")
    lines.append(
        f"Goal: at most {GOAL:g} of the native CPU: {verdict(median(ratios) <= GOAL)} "
        f"({median(ratios):.2f}; {min(ratios):.2f} to {max(ratios):.2f})."
    )
    return "\n".join(lines)


def first_text_table(answers: Answers) -> str:
    """Return a line for each way, compared with the native one within each round."""
    count = len(answers[NATIVE])
    lines = [f"First visible text, {count} short answers each, medians"]
    lines.append(f"  {'':28}{'ms':>8}{'later ms':>10}")
    for way, name in NAMES.items():
        first = median(answered.first for answered in answers[way])
        later = _later(answers[way], answers[NATIVE])
        lines.append(f"  {name:28}{first:8.0f}{later:10.0f}")
    reached = _later(answers[PIPE], answers[NATIVE])
    over_bare = _later(answers[PIPE], answers[BARE])
    lines.append(
        f"Goal: first text at most {GOAL_MS:g} ms later: {verdict(reached <= GOAL_MS)} "
        f"({reached:.0f}; {over_bare:.0f} later than the bare pipe)."
    )
    return "\n".join(lines)


def _later(ours: Sequence[Answered], theirs: Sequence[Answered]) -> float:
    """Return the median of the differences within each round, in milliseconds."""
    pairs = zip(ours, theirs, strict=True)
    return median(own.first - other.first for own, other in pairs)


if __name__ == "__main__":
    main()
