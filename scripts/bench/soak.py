"""Let many people use the pipe in a real Open WebUI for a while; nothing may grow.

python scripts/bench/soak.py                                30 people, 20 minutes
python scripts/bench/soak.py --people 6 --minutes 4 --warm-up 1
python scripts/bench/soak.py --native           Open WebUI's own connection

Everybody has an account, a tab and a chat, and asks in rounds; in each round the pipe is
uploaded again while answers are running. Between two rounds no one asks, and a function
next to the pipe counts what the server holds. The simulator runs in this process; only
the server is measured. Open WebUI's own connection gets the same questions, without the
uploads; only its growth counts, because it has other answers to the same failures.

Exits with 1 if a figure grows after the warm-up, if a turn did not end as its case says,
or if Python reports in the server's log that something was not closed.
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
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import (
    Address,
    address_valves,
    goal_line,
    packed_pipe,
    parse_options,
    table,
)
from bench.inside import NATIVE, native_connection
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
    "EXPERT_JSON": expert(idle_timeout_seconds=30),  # the minimum
}
HOST_ENVIRONMENT = {
    # On a busy machine a tab must not lose its connection.
    "WEBSOCKET_SERVER_PING_TIMEOUT": "120",
    # Otherwise the server keeps its growing database in memory: 64 MB for each
    # connection (env.py:345) and a map of the whole file (env.py:353).
    "DATABASE_SQLITE_PRAGMA_CACHE_SIZE": "-512",
    "DATABASE_SQLITE_PRAGMA_MMAP_SIZE": "0",
    # Otherwise the more questions come at once, the more connections stay, up to 512,
    # each with a thread and 128 prepared statements (internal/db.py:468).
    "DATABASE_POOL_SIZE": "5",
    # Everybody may use the models of Open WebUI's own connection.
    "BYPASS_MODEL_ACCESS_CONTROL": "true",
    # Otherwise that connection waits five minutes for an answer that stalls.
    "AIOHTTP_CLIENT_TIMEOUT": "30",
}
COMPLAINTS = (
    "Unclosed c",  # client session, connector, connection
    "Task was destroyed",
    "exception was never retrieved",
    "was never awaited",
)
"""What asyncio, aiohttp and Python write about what nobody closed."""
HOST_FILES = "/site-packages/open_webui/"
SEED = 1
TURNS_A_ROUND = 2
MAX_QUESTIONS_AT_ONCE = 4
"""SQLite takes no more new chats at the same moment."""
LATEST_UPLOAD = 15.0
"""Seconds into a round: the first answers are being written."""
FIRST_UPLOADS = 20
"""Before the first round: compiling a large file takes more memory the first times."""
MAX_READINGS = 8
"""One each second: the host takes some time to release a request."""
TURN_TIMEOUT = 150
"""Seconds after which a turn counts as one that does not end."""
CHAT_TURNS = 8
"""Turns after which a person starts another chat, so that chats do not grow for ever."""
LATEST_STOP = 4.0
"""Seconds; an answer that is to be stopped takes longer."""
MAX_PAUSE = 2.0
"""Seconds before a person's next question, at most."""
MIN_SAMPLES = 12
"""With fewer after the warm-up, the noise of the RSS looks like growth."""
ALLOWED_GROWTH = {
    "resident": 500.0,
    "allocated": 300.0,
    "blocks": 1000.0,
    "descriptors": 0.3,
    "tasks": 0.3,
    "sessions": 0.3,
    "threads": 0.3,
    "objects": 3.0,
    "copies": 0.3,
    "open": 0.3,
}
"""How much more a minute does not count as growth, for each figure of `inventory.py` and
for the requests that are open at the API. For what is counted one by one, it is less
than one in each round."""


class Case(NamedTuple):
    """One kind of turn: the simulator's scenario, and how the turn ends."""

    scenario: str
    end: Literal["whole", "failed", "stopped"] = "whole"
    tool: str = ""
    """The tool that the model has to call."""
    is_background: bool = False
    """Whether the answer is a background response."""


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
    """The server's figures at a moment at which it answered no one."""

    minute: float
    held: Mapping[str, float]


@dataclass
class Person:
    """Somebody with an account, a tab, and a chat."""

    tab: Tab
    models: Sequence[str]
    """The usual one, and the one of background responses."""
    sending: asyncio.Semaphore
    randomness: random.Random
    chat_id: str | None = None
    turns: int = 0

    async def ask_each(self, cases: Sequence[Case]) -> list[str]:
        """Ask one question after the other, with pauses; return the problems."""
        problems: list[str] = []
        for case in cases:
            await asyncio.sleep(self.randomness.uniform(0, MAX_PAUSE))
            try:
                problem = await self._ask(case)
            except Exception as error:  # any error is a problem of this turn
                problem = f"{type(error).__name__}: {error}"
            if problem:
                problems.append(f"{case.scenario}: {problem}")
        return problems

    async def _ask(self, case: Case) -> str:
        """Ask, and stop the answer if the case says so; return the problem, or nothing."""
        if self.turns % CHAT_TURNS == 0:
            self.chat_id = None
        self.turns += 1
        usual, background = self.models
        async with self.sending:
            turn = await self.tab.begin(
                background if case.is_background else usual,
                f"sim:{case.scenario} What do you say to this?",
                chat_id=self.chat_id,
                body=_tool_fields(case.tool),
            )
        self.chat_id = turn.chat_id
        if case.end == "stopped":
            await asyncio.sleep(self.randomness.uniform(0.1, LATEST_STOP))
            await self.tab.stop(turn)
        try:
            await asyncio.wait_for(turn.finished.wait(), TURN_TIMEOUT)
        except TimeoutError:
            await self.tab.stop(turn)
            return "it did not end"
        await self.tab.settle(turn, TURN_TIMEOUT)
        self.tab.turns.clear()  # no one looks at the events again
        self.tab.stray.clear()
        return problem_of(case, turn.text, turn.error)


def _tool_fields(name: str) -> Json:
    """Return the fields of a body that make the model call a function."""
    if not name:
        return {}
    choice = {"type": "function", "function": {"name": name}}
    return {"tool_ids": ["toolkit"], "tool_choice": choice}


def problem_of(case: Case, text: str, error: object) -> str:
    """Return the problem of a turn; nothing if it ended as its case says."""
    if case.end == "failed":
        return "" if error else "no error message"
    if error:
        return str(error)
    if case.end == "whole" and not text.strip():
        return "no text"
    return ""


@dataclass
class Soak:
    """The server and its people; the turns, problems and samples up to now."""

    server: OpenWebUI
    simulator: Simulator
    people: Sequence[Person]
    randomness: random.Random
    has_pipe: bool
    """Whether they ask the pipe, and not Open WebUI's own connection."""
    began: float = field(default_factory=time.monotonic)
    turns: int = 0
    problems: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def minute(self) -> float:
        """The minutes since the beginning."""
        return (time.monotonic() - self.began) / 60

    async def run_round(self) -> None:
        """Let everybody ask some questions while the pipe is uploaded; then count."""
        uploading = asyncio.create_task(self._upload())
        asking = [
            person.ask_each(self.randomness.sample(CASES, TURNS_A_ROUND))
            for person in self.people
        ]
        for problems in await asyncio.gather(*asking):
            self.problems += problems
        self.turns += TURNS_A_ROUND * len(self.people)
        await uploading
        self.samples.append(await self._count())
        self.simulator.forget()

    async def _upload(self) -> None:
        """Save another version of the file, as an administrator does."""
        if not self.has_pipe:
            return
        await asyncio.sleep(self.randomness.uniform(1, LATEST_UPLOAD))
        await upload(self.server, f"Upload {len(self.samples) + 1}.")

    async def _count(self) -> Sample:
        """Return the figures, when they have stopped changing."""
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
    """Print the figures; return 1 if something grows or is not as planned."""
    options = parse_options(
        __doc__,
        people=(30, "each with a chat"),
        minutes=(20.0, "at most"),
        warm_up=(5.0, "minutes of these"),
        native=(False, "ask Open WebUI's own connection, to compare the growth"),
    )
    return asyncio.run(run_soak(options))


async def run_soak(options: argparse.Namespace) -> int:
    """Run round after round; print a line after each."""
    async with start(options.people, has_pipe=not options.native) as soak:
        asked = "Open WebUI's own connection" if options.native else "the pipe"
        print(f"{options.people} people, {options.minutes:g} minutes at most, {asked}")
        while soak.minute < options.minutes:
            await soak.run_round()
            minute, held = soak.samples[-1]
            figures = [f"{name} {held[name]:,.0f}" for name in ALLOWED_GROWTH]
            print(f"  {minute:5.1f} min: {', '.join(figures)}", flush=True)
        log = soak.server.log()
    print(f"{soak.turns} turns")
    judged = [each for each in soak.samples if each.minute >= options.warm_up]
    if options.native:
        if len(judged) >= MIN_SAMPLES:
            print_growth(judged)
        print(f"{len(soak.problems)} turns ended otherwise than through the pipe")
        return 0
    return report(judged, [*soak.problems, *log_complaints(log)])


@asynccontextmanager
async def start(people_count: int, has_pipe: bool) -> AsyncIterator[Soak]:
    """Start the server and the simulator, and let everybody sign in."""
    randomness = random.Random(SEED)
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        server = await stack.enter_async_context(OpenWebUI(env=HOST_ENVIRONMENT))
        address = Address(simulator.base_url, simulator.api_key)
        await install_tools_and_inventory(server)
        if has_pipe:
            models = await install_and_upload(server, address)
        else:
            native = native_connection(server.admin, address)
            await stack.enter_async_context(native)
            models = [NATIVE, NATIVE]
        sending = asyncio.Semaphore(MAX_QUESTIONS_AT_ONCE)
        people = []
        for number in range(people_count):
            user = await server.admin.add_user(f"person{number}@example.com", "person")
            tab = Tab(await stack.enter_async_context(user))
            await stack.enter_async_context(tab)
            own_randomness = random.Random(randomness.random())
            people.append(Person(tab, models, sending, own_randomness))
        yield Soak(server, simulator, people, randomness, has_pipe)


async def install_tools_and_inventory(server: OpenWebUI) -> None:
    """Install the tools, and the function that counts."""
    await install_toolkit(server.admin)
    inventory = Path(__file__).with_name("inventory.py").read_text("utf-8")
    await server.admin.install_function(INVENTORY, inventory)


async def install_and_upload(server: OpenWebUI, address: Address) -> list[str]:
    """Install the pipe and upload it some times; return its models."""
    valves = address_valves(address) | VALVES
    models = await install_pipe(server.admin, FUNCTION, packed_pipe(), valves)
    for number in range(FIRST_UPLOADS):
        await upload(server, f"First upload {number}.")
    return models


async def upload(server: OpenWebUI, comment: str) -> None:
    """Save the built file with another comment in its last line."""
    source = f"{packed_pipe()}# {comment}\n"
    await server.admin.install_function(FUNCTION, source)


def log_complaints(log: str) -> list[str]:
    """Return the lines that say what was not closed.

    A task of the host itself is left out: the next line names its file.
    """
    complaints = []
    for line, next_line in pairwise([*log.splitlines(), ""]):
        is_complaint = any(words in line for words in COMPLAINTS)
        if is_complaint and HOST_FILES not in next_line:
            complaints.append(line)
    return complaints


def growth_a_minute(samples: Sequence[Sample], figure: str) -> float:
    """Return how much a figure grows a minute, from the first third to the last third.

    Medians are compared, so that a single high sample does not count.
    """
    third = len(samples) // 3
    early = samples[:third]
    late = samples[-third:]
    minutes = median(each.minute for each in late) - median(
        each.minute for each in early
    )
    growth = median(each.held[figure] for each in late) - median(
        each.held[figure] for each in early
    )
    return growth / minutes


def report(samples: Sequence[Sample], problems: Sequence[str]) -> int:
    """Print the growth after the warm-up, the problems and the goal."""
    is_judged = len(samples) >= MIN_SAMPLES
    growing = print_growth(samples) if is_judged else []
    if not is_judged:
        verdict = f"fewer than {MIN_SAMPLES} samples after the warm-up, growth unknown"
    elif growing:
        verdict = f"grows: {', '.join(growing)}"
    else:
        verdict = "nothing grows"
    print(*problems, sep="\n")
    is_met = not growing and not problems
    figures = f"{verdict}; {len(problems)} problems"
    print(goal_line("flat, and every turn as planned", is_met, figures))
    return 0 if is_met else 1


def print_growth(samples: Sequence[Sample]) -> list[str]:
    """Print the growth of each figure; return those that grow more than allowed."""
    growth = {name: growth_a_minute(samples, name) for name in ALLOWED_GROWTH}
    last = samples[-1].held
    rows = {name: [f"{last[name]:,.0f}", f"{growth[name]:+.2f}"] for name in growth}
    print(table("After the warm-up", ("last", "growth/min"), rows))
    return [name for name in growth if growth[name] > ALLOWED_GROWTH[name]]


if __name__ == "__main__":
    sys.exit(main())
