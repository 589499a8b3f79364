"""Measure many answers at once in the real Open WebUI.

python scripts/bench/crowd.py                 200 streams through the pipe
python scripts/bench/crowd.py --native 1      the same through Open WebUI's connection
python scripts/bench/crowd.py --servers 2     the same in two processes
python scripts/bench/crowd.py --agents 50     agents, each with six rounds of a tool

Each answer has a chat of its own. While the streams run, one more question is asked, and
`health.py` asks the servers whether they are well.

The streams are stored in PostgreSQL: with SQLite, Open WebUI refuses some of so many
questions ("database is locked"). The agents are fewer; theirs are stored in SQLite.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.first import has_text_or_end
from bench.health import Gap, watched_health
from bench.host import (
    MODEL,
    Address,
    address_valves,
    packed_pipe,
    parse_options,
    run_simulator,
    server_cpu,
)
from bench.inside import NATIVE, PIPE, SUMMARY, both_connections
from bench.process_size import Size, watched_size
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.shared import shared_servers
from hosts.setup.pipes import install_pipe, install_toolkit

AGENT = "gpt5_function_calling"
PAUSE_MS = 100
WARM_UP = 3
ASKED_TOGETHER = 20
ANSWER_TIMEOUT = 900
PATIENT = {"DATABASE_POOL_TIMEOUT": str(ANSWER_TIMEOUT)}
"""A process with more streams than its core carries lets a question wait for a free
connection of the database; after 30 seconds, Open WebUI refuses it."""


@dataclass(frozen=True)
class Kind:
    """What everybody in a crowd asks, and how an answer begins and ends."""

    model: str
    question: str
    is_whole: Callable[[str], bool]
    has_begun: Callable[[Turn], bool] = has_text_or_end
    body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Crowd:
    """What many answers at once took; `firsts` are milliseconds to the first text.

    `running` answers had not ended when one more question was asked, whose first text
    came after `late` milliseconds. `load` is that of the machine, before and after.
    """

    seconds: float
    cpu: float
    size: Size
    firsts: Sequence[float]
    running: int
    late: float
    gap: Gap
    faults: Sequence[str]
    load: tuple[float, float]


def main() -> None:
    """Print what a crowd took."""
    options = parse_options(
        __doc__,
        streams=(200, "at once"),
        deltas=(300, f"in each of them, one every {PAUSE_MS} ms"),
        servers=(1, "or 2, the processes of Open WebUI"),
        native=(0, "or 1, Open WebUI's own connection instead of the pipe"),
        agents=(0, "at once, instead of the streams"),
    )
    with run_simulator() as address:
        if options.agents:
            crowd = asyncio.run(measure_agents(address, options.agents))
            print(crowd_lines(crowd, "agents"))
            return
        kind = streams(NATIVE if options.native else PIPE, options.deltas)
        crowd = asyncio.run(
            measure_streams(address, kind, options.streams, options.servers)
        )
    print(crowd_lines(crowd, f"streams of {kind.model}, {options.servers} process(es)"))


def streams(model: str, deltas: int) -> Kind:
    """Return the kind of an answer that is long, and as slow as a model's."""
    return Kind(
        model=model,
        question=f"sim:long,deltas={deltas},delay={PAUSE_MS}",
        is_whole=lambda text: text.count("word") == deltas,
        body={"params": SUMMARY} if model == NATIVE else {},
    )


def agents() -> Kind:
    """Return the kind of an agent that calls a tool in six rounds."""
    return Kind(
        model=f"bench.{AGENT}",
        question="sim:agent-steps,delay=20 get_weather",
        is_whole=lambda text: "This is what I have so far" in text,
        has_begun=_has_words_or_end,
        body={"tool_ids": ["toolkit"]},
    )


def _has_words_or_end(turn: Turn) -> bool:
    """Say whether the page shows something of the model: commentary, or the answer."""
    return "One more step" in str(turn.events) or turn.finished.is_set()


async def measure_streams(
    address: Address, kind: Kind, count: int, servers: int
) -> Crowd:
    """Let so many streams run at once, after a few that do not count."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        running = await enter(shared_servers(servers, PATIENT))
        await enter(both_connections(running[0].admin, address))
        tabs = [await enter(Tab(server.admin)) for server in running]
        for tab in tabs:
            await ask_crowd(running, [tab], streams(kind.model, WARM_UP), WARM_UP)
        return await ask_crowd(running, tabs, kind, count)


async def measure_agents(address: Address, count: int) -> Crowd:
    """Let so many agents work at once, after a few that do not count."""
    async with OpenWebUI() as server, Tab(server.admin) as tab:
        await install_toolkit(server.admin)
        await install_agent(server.admin, address)
        await ask_crowd([server], [tab], agents(), WARM_UP)
        return await ask_crowd([server], [tab], agents(), count)


async def install_agent(admin: User, address: Address) -> None:
    """Install the pipe with an agent; its tools are those of the tests' toolkit."""
    valves = {**address_valves(address), "MODEL_ID": f"{MODEL}, {AGENT}"}
    await install_pipe(admin, "bench", packed_pipe(), valves)


async def ask_crowd(
    servers: Sequence[OpenWebUI], tabs: Sequence[Tab], kind: Kind, count: int
) -> Crowd:
    """Ask all, half of them in each of two tabs, and read their answers together."""
    load_before = os.getloadavg()[0]
    pids = [server.pid for server in servers]
    cpu_before = sum(map(server_cpu, pids))
    began = time.perf_counter()
    asked_in = [tabs[number % len(tabs)] for number in range(count)]
    health = [f"{server.url}/health" for server in servers]
    async with watched_health(health) as gap, watched_size(pids) as size:
        turn_to_ask = asyncio.Semaphore(ASKED_TOGETHER)
        begun = [_begin(tab, kind, turn_to_ask) for tab in asked_in]
        asked = await asyncio.gather(*begun)
        turns = [turn for turn, _ in asked]
        running = sum(not turn.finished.is_set() for turn in turns)
        one_more = Kind(kind.model, "sim:short", bool)
        late_turn, late = await _begin(tabs[0], one_more, turn_to_ask)
        asked_in.append(tabs[0])
        turns.append(late_turn)
        finished = [turn.finished.wait() for turn in turns]
        await asyncio.wait_for(asyncio.gather(*finished), ANSWER_TIMEOUT)
        # One after the other: all of them asking at once would keep the server busy.
        for tab, turn in zip(asked_in, turns, strict=True):
            await tab.settle(turn, ANSWER_TIMEOUT)
    faults = [_fault(turn, kind) for turn in turns[:-1]]
    faults.append(_fault(late_turn, one_more))
    return Crowd(
        seconds=time.perf_counter() - began,
        cpu=sum(map(server_cpu, pids)) - cpu_before,
        size=size,
        firsts=[first for _, first in asked],
        running=running,
        late=late,
        gap=gap,
        faults=[fault for fault in faults if fault],
        load=(load_before, os.getloadavg()[0]),
    )


async def _begin(
    tab: Tab, kind: Kind, turn_to_ask: asyncio.Semaphore
) -> tuple[Turn, float]:
    """Ask in a new chat; return the turn and the milliseconds to its first text."""
    async with turn_to_ask:
        began = time.perf_counter()
        turn = await tab.begin(kind.model, kind.question, body=dict(kind.body))
    await turn.until(kind.has_begun, ANSWER_TIMEOUT)
    return turn, (time.perf_counter() - began) * 1e3


def _fault(turn: Turn, kind: Kind) -> str:
    """Return what is wrong with an answer, if anything."""
    if kind.is_whole(turn.text) and not turn.error:
        return ""
    return f"{turn.text!r}: {turn.error}"


def crowd_lines(crowd: Crowd, name: str) -> str:
    """Return what the answers took, in all and each."""
    count = len(crowd.firsts)
    size = crowd.size
    memory = size.memory - size.memory_before
    lines = [
        f"{count} {name} at once inside Open WebUI, {crowd.seconds:.1f} s "
        f"(load of the machine {crowd.load[0]:.1f}, then {crowd.load[1]:.1f})",
        f"  CPU         {crowd.cpu:.1f} s, {crowd.cpu / count:.2f} s each",
        f"  memory      {memory / 1000:.0f} MB more at most, {memory / count:.0f} kB "
        f"each, {size.memory_before / 1000:.0f} MB before",
        f"  threads     {size.threads_before} before, {size.threads} at most",
        f"  /health     {crowd.gap.milliseconds:.0f} ms between two answers at most",
        f"  first text  {median(crowd.firsts):.0f} ms, at most {max(crowd.firsts):.0f}",
        f"  one more    {crowd.late:.0f} ms to its first text, {crowd.running} running",
    ]
    faults = sorted(set(crowd.faults)) or ["All answers were whole."]
    return "\n".join([*lines, *faults])


if __name__ == "__main__":
    main()
