"""Let many people use the pipe in a real Open WebUI for a while; nothing may grow.

python scripts/bench/soak.py                                30 people, 20 minutes
python scripts/bench/soak.py --people 6 --minutes 4 --warm-up 1

Everybody has an account, a tab and a chat, and asks in rounds: answers, tools, faults
of the API, stops, and the pipe uploaded anew while all of them are answered. Between
two rounds nobody asks, and a function beside the pipe counts what the server holds.
The simulator runs in this process; only the server is measured.

Ends with 1 where a figure grows after the warm-up, where a turn did not end as its case
says, and where Python complains in the server's log of what was left open.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.host import BUILT, verdict
from calls.valves import expert
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, install_toolkit
from simulator import Simulator

FUNCTION = "soak"
INVENTORY = "inventory"
VALVES: Json = {
    "MODEL_ID": "gpt-6.1-sol, gpt-5.2-pro",
    "BACKGROUND_MODELS": "*-pro",
    "EXPERT_JSON": expert(idle_timeout_seconds=30),  # the least there is
}
HOST_ENVIRONMENT = {
    # On a busy machine a tab must not give its connection up.
    "WEBSOCKET_SERVER_PING_TIMEOUT": "120",
    # Else the server keeps its growing database in memory: 64 MB for each connection
    # (env.py:345) and a map of the whole file (env.py:353).
    "DATABASE_SQLITE_PRAGMA_CACHE_SIZE": "-512",
    "DATABASE_SQLITE_PRAGMA_MMAP_SIZE": "0",
    # Else each record of questions at once leaves more connections, up to 512, each
    # with a thread and 128 prepared statements (internal/db.py:468).
    "DATABASE_POOL_SIZE": "5",
}
COMPLAINTS = (
    "Unclosed c",  # client session, connector, connection
    "Task was destroyed",
    "exception was never retrieved",
    "was never awaited",
)
"""Words of asyncio, aiohttp and Python."""
HOST_FILES = "/site-packages/open_webui/"
DOORS = 4
"""Questions that are sent at the same moment: SQLite takes no more new chats at once."""
LATEST_UPLOAD = 15.0
"""Seconds into a round, while the first answers are written."""
FIRST_UPLOADS = 20
"""Before the first round: compiling a large file takes more memory the first times."""
MAX_READINGS = 8
"""A second apart: the host lets go of a request in its own time."""
TURN_TIMEOUT = 150
"""Seconds after which a turn counts as one that does not end."""
CHAT_TURNS = 8
"""Turns after which a person begins another chat: rows of the same size to the end."""
LATEST_STOP = 4.0
"""Seconds. No answer that is to be stopped ends before them."""
MAX_PAUSE = 2.0
"""The longest time that somebody thinks before the next question, in seconds."""
MIN_SAMPLES = 12
"""With fewer after the warm-up the noise of the RSS looks like growth."""
ALLOWED_GROWTH = {
    "resident": 500.0,
    "blocks": 1000.0,
    "descriptors": 0.3,
    "tasks": 0.3,
    "sessions": 0.3,
    "threads": 0.3,
    "objects": 3.0,
    "copies": 0.3,
    "open": 0.3,
}
"""Of each figure of `inventory.py`, and of the requests that are open at the API: how
much more of it a minute is no growth. Of what is counted one by one it is less than one
for each round."""


class Case(NamedTuple):
    """One kind of turn: what the simulator is told to do, and how the turn ends."""

    scenario: str
    end: Literal["whole", "failed", "stopped"] = "whole"
    tool: str = ""
    """That the model has to call."""
    is_background: bool = False
    """Whether a model answers that goes on at OpenAI."""


CASES = (
    Case("chat"),
    Case("long,deltas=400,delay=4"),
    Case("chat,chunks=random,crlf,comments,keepalive=5"),
    Case("chat,status=429,times=1,retry-after-ms=50"),
    Case("five-calls", tool="get_weather"),
    Case("tool", tool="broken_weather"),
    Case("chat,drop=60", is_background=True),
    Case("html-error", "failed"),
    Case("cut", "failed"),
    Case("stall", "failed"),
    Case("slow,deltas=400", "stopped"),
    Case("stall", "stopped"),
    Case("chat,status=503,retry-after=50", "stopped"),
    Case("tool", "stopped", tool="slow_weather"),
    Case("slow,deltas=400", "stopped", is_background=True),
)


class Sample(NamedTuple):
    """What the server held at a moment at which nobody asked anything."""

    minute: float
    held: Mapping[str, float]


@dataclass
class Person:
    """Somebody with an account, a tab, and a chat."""

    tab: Tab
    models: Sequence[str]
    """The usual one, and the one that goes on at OpenAI."""
    doors: asyncio.Semaphore
    chance: random.Random
    chat_id: str | None = None
    turns: int = 0

    async def ask_each(self, cases: Sequence[Case]) -> list[str]:
        """Ask one after the other, with pauses; return what was wrong."""
        problems: list[str] = []
        for case in cases:
            await asyncio.sleep(self.chance.uniform(0, MAX_PAUSE))
            try:
                problem = await self._ask(case)
            except Exception as error:  # whatever it is, it is what came of this turn
                problem = f"{type(error).__name__}: {error}"
            if problem:
                problems.append(f"{case.scenario}: {problem}")
        return problems

    async def _ask(self, case: Case) -> str:
        """Ask, and stop if the case says so; return what was wrong."""
        if self.turns % CHAT_TURNS == 0:
            self.chat_id = None
        self.turns += 1
        async with self.doors:
            turn = await self.tab.begin(
                self.models[1 if case.is_background else 0],
                f"sim:{case.scenario} What do you say to this?",
                chat_id=self.chat_id,
                body=_tool_fields(case.tool),
            )
        self.chat_id = turn.chat_id
        if case.end == "stopped":
            await asyncio.sleep(self.chance.uniform(0.1, LATEST_STOP))
            await self.tab.stop(turn)
        try:
            await asyncio.wait_for(turn.finished.wait(), TURN_TIMEOUT)
        except TimeoutError:
            await self.tab.stop(turn)
            return "it did not end"
        await self.tab.settle(turn, TURN_TIMEOUT)
        self.tab.turns.clear()  # nobody looks at the events again
        self.tab.stray.clear()
        return problem_of(case, turn.text, turn.error)


def _tool_fields(name: str) -> Json:
    """Return the fields with which the model has to call a function."""
    if not name:
        return {}
    choice = {"type": "function", "function": {"name": name}}
    return {"tool_ids": ["toolkit"], "tool_choice": choice}


def problem_of(case: Case, text: str, error: object) -> str:
    """Say what is wrong with a turn; empty if it ended as its case says."""
    if case.end == "failed":
        return "" if error else "no message tells of the fault"
    if error:
        return str(error)
    if case.end == "whole" and not text.strip():
        return "no text"
    return ""


@dataclass
class Soak:
    """What runs, and what was found out so far."""

    server: OpenWebUI
    simulator: Simulator
    people: Sequence[Person]
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    turns: int = 0
    problems: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def minute(self) -> float:
        """The minutes since the beginning."""
        return (time.monotonic() - self.began) / 60

    async def run_round(self, turns: int) -> None:
        """Let everybody ask some turns while the pipe is uploaded; then count."""
        uploading = asyncio.create_task(self._upload())
        asking = [
            person.ask_each(self.chance.sample(CASES, turns)) for person in self.people
        ]
        for problems in await asyncio.gather(*asking):
            self.problems += problems
        self.turns += turns * len(self.people)
        await uploading
        self.samples.append(await self._count())
        self.simulator.forget()

    async def _upload(self) -> None:
        """Save another version of the file, as an administrator does."""
        await asyncio.sleep(self.chance.uniform(1, LATEST_UPLOAD))
        await upload(self.server, f"Upload {len(self.samples) + 1}.")

    async def _count(self) -> Sample:
        """Return what is held, once that changes no more."""
        held: Json = {}
        for _ in range(MAX_READINGS):
            await asyncio.sleep(1)
            before = held
            answer = await self.server.admin.complete(f"{INVENTORY}.count", FUNCTION)
            held = json.loads(answer)
            if before and all(held[key] == before[key] for key in ("tasks", "objects")):
                break
        held["open"] = self.simulator.open_streams
        return Sample(self.minute, held)


def main() -> int:
    """Print what was found; return 1 where something grows or is not as planned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--people", type=int, default=30, help="each with a chat")
    parser.add_argument("--minutes", type=float, default=20.0, help="at most")
    parser.add_argument("--warm-up", type=float, default=5.0, help="minutes of these")
    parser.add_argument("--turns", type=int, default=2, help="of each in a round")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random")
    parser.add_argument("--log", type=Path, help="where to write the server's log")
    return asyncio.run(run_soak(parser.parse_args()))


async def run_soak(arguments: argparse.Namespace) -> int:
    """Run round after round; print a line for each as it ends."""
    async with start(arguments.people, arguments.seed) as soak:
        print(f"{arguments.people} people, {arguments.minutes:g} minutes at most")
        while soak.minute < arguments.minutes:
            await soak.run_round(arguments.turns)
            minute, held = soak.samples[-1]
            figures = [f"{name} {held[name]:,.0f}" for name in ALLOWED_GROWTH]
            print(f"  {minute:5.1f} min: {', '.join(figures)}", flush=True)
        log = soak.server.log()
    if arguments.log:
        arguments.log.write_text(log, "utf-8")
    problems = [*soak.problems, *log_complaints(log)]
    judged = [s for s in soak.samples if s.minute >= arguments.warm_up]
    print(f"{soak.turns} turns")
    return report(judged, problems)


@asynccontextmanager
async def start(people_count: int, seed: int) -> AsyncIterator[Soak]:
    """Start the server and the simulator, and let everybody sign in."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        server = await stack.enter_async_context(OpenWebUI(env=HOST_ENVIRONMENT))
        models = await install(server, simulator)
        doors = asyncio.Semaphore(DOORS)
        people = []
        for number in range(people_count):
            user = await server.admin.add_user(f"person{number}@example.com", "person")
            tab = Tab(await stack.enter_async_context(user))
            await stack.enter_async_context(tab)
            people.append(Person(tab, models, doors, random.Random(chance.random())))
        yield Soak(server, simulator, people, chance)


async def install(server: OpenWebUI, simulator: Simulator) -> list[str]:
    """Install tools, the function that counts, and the pipe; return its models."""
    await install_toolkit(server.admin)
    inventory = Path(__file__).with_name("inventory.py").read_text("utf-8")
    await server.admin.install_function(INVENTORY, inventory)
    address = {"BASE_URL": simulator.base_url, "API_KEY": simulator.api_key}
    source = BUILT.read_text("utf-8")
    models = await install_pipe(server.admin, FUNCTION, source, address | VALVES)
    for number in range(FIRST_UPLOADS):
        await upload(server, f"First upload {number}.")
    return models


async def upload(server: OpenWebUI, remark: str) -> None:
    """Save the built file with another last line."""
    source = f"{BUILT.read_text('utf-8')}\n# {remark}\n"
    await server.admin.install_function(FUNCTION, source)


def log_complaints(log: str) -> list[str]:
    """Return the lines with which Python complains of what nobody closed.

    A task that the host began itself is not the pipe's: the next line names its file.
    """
    complaints = []
    for line, next_line in pairwise([*log.splitlines(), ""]):
        is_complaint = any(words in line for words in COMPLAINTS)
        if is_complaint and HOST_FILES not in next_line:
            complaints.append(line)
    return complaints


def growth_a_minute(samples: Sequence[Sample], figure: str) -> float:
    """Return how much more of a figure the last third of the samples has, a minute.

    Medians are compared, so a moment in which more was held is no growth.
    """
    third = len(samples) // 3
    early = samples[:third]
    late = samples[-third:]
    minutes = median(s.minute for s in late) - median(s.minute for s in early)
    more = median(s.held[figure] for s in late) - median(s.held[figure] for s in early)
    return more / minutes


def report(samples: Sequence[Sample], problems: Sequence[str]) -> int:
    """Print the growth by the samples after the warm-up, and judge it."""
    grows: list[str] = []
    if len(samples) >= MIN_SAMPLES:
        for figure, allowed in ALLOWED_GROWTH.items():
            growth = growth_a_minute(samples, figure)
            print(
                f"  {figure:16}{samples[-1].held[figure]:12,.0f}{growth:+10.2f} a min"
            )
            if growth > allowed:
                grows.append(figure)
        found = f"grows: {', '.join(grows)}" if grows else "nothing grows"
    else:
        found = f"fewer than {MIN_SAMPLES} samples after the warm-up: growth not judged"
    print(*problems, sep="\n")
    is_met = not grows and not problems
    print(
        f"Goal: flat, and every turn as planned: {verdict(is_met)} ({found}; "
        f"{len(problems)} problems)."
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
