"""Measure the same answer inside the real Open WebUI, through its own connection and the pipe.

python scripts/bench/inside.py      two tables, in about two minutes

Open WebUI's own Responses connection and the pipe answer in turns, so that a busy
machine slows both alike: the ratio is the result. Counted is the CPU of the server's
process, from the question to the end of its saving; a tab reads along as the page does.
The simulator, in a process of its own, writes a delta every two milliseconds.

The wait for the first text is measured with short answers of its own (`first_text`).
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

from bench.first_text import BARE_PIPE, Firsts, measure_firsts, table_of_firsts
from bench.host import BUILT, MODEL
from bench.servers import SIMULATOR, Address, run_server
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe

NATIVE = f"native.{MODEL}"
BARE = "bare"
PIPE = f"bench.{MODEL}"
NAMES = {NATIVE: "the native connection", BARE: "a bare pipe", PIPE: "the pipe"}
PAUSE_MS = 2
SUMMARY = {"custom_params": {"reasoning": {"summary": "auto"}}}
"""Open WebUI's connection asks for no summary by itself; the pipe does."""
GOAL = 0.5
"""Of the CPU of the native connection."""
SHORT_DELTAS = 20
"""Of an answer whose beginning is measured."""
TEXT_TIMEOUT = 60
ANSWER_TIMEOUT = 600


@dataclass(frozen=True)
class Answered:
    """What one answer took: seconds of the server's CPU, milliseconds to the first text."""

    cpu: float
    first: float
    events: int


Answers = Mapping[str, Sequence[Answered]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--deltas", type=int, default=4000, help="in an answer")
    parser.add_argument("--rounds", type=int, default=3, help="of both")
    parser.add_argument("--firsts", type=int, default=21, help="rounds of short ones")
    arguments = parser.parse_args()
    with run_server(*SIMULATOR) as address:
        answers, firsts = asyncio.run(measure(address, arguments))
    print(table(answers, arguments.deltas, arguments.rounds), end="\n\n")
    print(table_of_firsts(firsts, NAMES, NATIVE, BARE, PIPE))


async def measure(
    address: Address, arguments: argparse.Namespace
) -> tuple[Answers, Firsts]:
    """Let all answer in turns, after a short answer of each that does not count."""
    answers: dict[str, list[Answered]] = {NATIVE: [], PIPE: []}
    async with (
        OpenWebUI() as server,
        both_ways(server.admin, address),
        Tab(server.admin) as tab,
    ):

        async def first_text(model: str) -> float:
            answered = await answer(server, tab, model, SHORT_DELTAS)
            return answered.first

        ways = tuple(NAMES)
        await measure_firsts(first_text, ways, 1)
        firsts = await measure_firsts(first_text, ways, arguments.firsts)
        for _ in range(arguments.rounds):
            for model, answered in answers.items():
                answered.append(await answer(server, tab, model, arguments.deltas))
    return answers, firsts


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
    await install_pipe(admin, BARE, BARE_PIPE, valves)
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


def table(answers: Answers, deltas: int, rounds: int) -> str:
    """Return a line for each way, then the goal."""
    pairs = zip(answers[PIPE], answers[NATIVE], strict=True)
    ratios = [ours.cpu / theirs.cpu for ours, theirs in pairs]
    lines = [
        f"Inside Open WebUI: {deltas:,} deltas and reasoning, one every {PAUSE_MS} ms, "
        f"{rounds} rounds, medians",
        f"  {'':28}{'CPU s':>8}{'x native':>10}{'events':>9}",
    ]
    for model, ratio in ((NATIVE, 1.0), (PIPE, median(ratios))):
        cpu = median(answered.cpu for answered in answers[model])
        events = answers[model][-1].events
        lines.append(f"  {NAMES[model]:28}{cpu:8.2f}{ratio:10.2f}{events:9,}")
    verdict = "met" if median(ratios) <= GOAL else "MISSED"
    lines.append(
        f"Goal: at most {GOAL:g} of the native CPU: {verdict} ({median(ratios):.2f}; "
        f"{min(ratios):.2f} to {max(ratios):.2f})."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
