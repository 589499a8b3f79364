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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.first_text import (
    BARE,
    BARE_PIPE,
    Firsts,
    measure_firsts,
    table_of_firsts,
)
from bench.host import BUILT
from bench.readers import MODEL
from bench.servers import Address, run_server
from hosts.open_webui import OpenWebUI
from hosts.pipes import install_pipe
from hosts.tabs import Tab, Turn
from hosts.users import User

SIMULATOR = ("simulator", "--port", "0")
NATIVE, PIPE = f"native.{MODEL}", f"bench.{MODEL}"
PAUSE = 2
SUMMARY = {"custom_params": {"reasoning": {"summary": "auto"}}}
"""Open WebUI's connection asks for no summary by itself; the pipe does."""
NAMES = {
    NATIVE: "the native connection",
    BARE: "a bare pipe",
    PIPE: "the pipe",
}
GOAL = 0.5
"""Of the CPU of the native connection."""
SHORT = 20
"""Deltas of an answer whose beginning counts."""


@dataclass(frozen=True)
class Answered:
    """What one answer took: CPU of the server, time to the first visible text."""

    cpu: float
    first: float
    events: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--deltas", type=int, default=4000, help="in an answer")
    parser.add_argument("--rounds", type=int, default=3, help="of both")
    parser.add_argument("--firsts", type=int, default=21, help="rounds of short ones")
    given = parser.parse_args()
    with run_server(*SIMULATOR) as address:
        found, firsts = asyncio.run(measure(address, given))
    print(table(found, given.deltas, given.rounds), end="\n\n")
    print(table_of_firsts(firsts, NAMES))


async def measure(
    address: Address, given: argparse.Namespace
) -> tuple[dict[str, list[Answered]], Firsts]:
    """Let all answer in turns, after a short answer of each that does not count."""
    found: dict[str, list[Answered]] = {NATIVE: [], PIPE: []}
    async with (
        OpenWebUI() as server,
        both_ways(server.admin, address),
        Tab(server.admin) as tab,
    ):

        async def first(model: str) -> float:
            return (await answer(server, tab, model, SHORT)).first

        await measure_firsts(first, tuple(NAMES), 1)
        firsts = await measure_firsts(first, tuple(NAMES), given.firsts)
        for _ in range(given.rounds):
            for model, answers in found.items():
                answers.append(await answer(server, tab, model, given.deltas))
    return found, firsts


@asynccontextmanager
async def both_ways(admin: User, address: Address) -> AsyncIterator[None]:
    """Let Open WebUI have both ways to the simulator for a while."""
    connection = {
        "enable": True,
        "api_type": "responses",
        "prefix_id": "native",
        "model_ids": [MODEL],
    }
    form = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [address.base_url],
        "OPENAI_API_KEYS": [address.api_key],
        "OPENAI_API_CONFIGS": {"0": connection},
    }
    valves = {
        "BASE_URL": address.base_url,
        "API_KEY": address.api_key,
        "MODEL_ID": MODEL,
    }
    before = await admin.call("GET", "/openai/config")
    await admin.call("POST", "/openai/config/update", form)
    await install_pipe(admin, "bench", BUILT.read_text("utf-8"), valves)
    bare = {name: valves[name] for name in ("BASE_URL", "API_KEY")}
    await install_pipe(admin, BARE, BARE_PIPE, bare)
    try:
        yield
    finally:
        await admin.delete_function("bench")
        await admin.delete_function(BARE)
        await admin.call("POST", "/openai/config/update", before)


async def answer(server: OpenWebUI, tab: Tab, model: str, deltas: int) -> Answered:
    """Ask in a new chat, read to the end; raise where words are missing."""
    question = f"sim:long,deltas={deltas},delay={PAUSE}"
    body = {"params": SUMMARY} if model == NATIVE else {}
    cpu, began = cpu_seconds(server.pid), time.perf_counter()
    turn = await tab.begin(model, question, body=body)
    await turn.until(lambda seen: seen.text or seen.finished.is_set(), 60)
    first = time.perf_counter() - began
    await asyncio.wait_for(turn.finished.wait(), 600)
    await tab.settle(turn)
    spent = cpu_seconds(server.pid) - cpu
    check(turn, deltas)
    return Answered(spent, first * 1e3, len(turn.events))


def check(turn: Turn, deltas: int) -> None:
    """Raise where the answer was not whole, or came without its reasoning."""
    words = turn.text.count("word")
    if words != deltas or turn.error:
        raise RuntimeError(f"{words} of {deltas} words came: {turn.error}")
    if "reasoning_summary" not in str(turn.events):
        raise RuntimeError("The answer came without its reasoning.")


def cpu_seconds(pid: int) -> float:
    """Return the CPU that a process has used (proc_pid_stat(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table(found: dict[str, list[Answered]], deltas: int, rounds: int) -> str:
    """Return a line for each way, then the goals."""
    native, pipe = found[NATIVE], found[PIPE]
    ratios = [ours.cpu / theirs.cpu for ours, theirs in zip(pipe, native, strict=True)]
    lines = [
        f"Inside Open WebUI: {deltas:,} deltas and reasoning, one every {PAUSE} ms, "
        f"{rounds} rounds, medians",
        f"  {'':28}{'CPU s':>8}{'x native':>10}{'events':>9}",
    ]
    for model, ratio in ((NATIVE, 1.0), (PIPE, median(ratios))):
        cpu, events = median(one.cpu for one in found[model]), found[model][-1].events
        lines.append(f"  {NAMES[model]:28}{cpu:8.2f}{ratio:10.2f}{events:9,}")
    verdict = "met" if median(ratios) <= GOAL else "MISSED"
    lines.append(
        f"Goal: at most {GOAL:g} of the native CPU: {verdict} ({median(ratios):.2f}; "
        f"{min(ratios):.2f} to {max(ratios):.2f})."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
