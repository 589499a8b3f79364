"""Let many people use the pipe in a real Open WebUI for a while; nothing may grow.

python scripts/bench/soak.py                                30 people, 20 minutes
python scripts/bench/soak.py --people 6 --minutes 3 --warm-up 1
python scripts/bench/soak.py --pipe FILE                    another built file

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
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from valve_texts import expert

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.cases import CASES, Case, Json
from bench.growth import Sample, growths, table_of_growths
from bench.host import BUILT
from bench.people import Asked, Models, Person
from hosts.open_webui import OpenWebUI
from hosts.pipes import install_pipe, install_toolkit
from hosts.tabs import Tab
from hosts.users import User
from simulator import Simulator

FUNCTION, INVENTORY = "soak", "inventory"
VALVES = {
    "MODEL_ID": "gpt-6.1-sol, gpt-5.2-pro",
    "BACKGROUND_MODELS": "*-pro",
    "EXPERT_JSON": expert(idle_timeout_seconds=30),  # the least there is
}
HOST = {
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
LEFT_OPEN = (
    "Unclosed c",  # client session, connector, connection
    "Task was destroyed",
    "exception was never retrieved",
    "was never awaited",
)
"""Words of asyncio, aiohttp and Python."""
HOSTS_TASK = "/site-packages/open_webui/"
DOORS = 4
"""Questions that are sent at the same moment: SQLite takes no more new chats at once."""
LATEST_UPLOAD = 15.0
"""Seconds into a round, while the first answers are written."""
FIRST_UPLOADS = 20
"""Before the first round. Compiling a file of this size takes more memory at first: of
80 uploads in an idle server the first 48 took 8 MB, the others nothing."""
READINGS = 8
"""At most so many, a second apart: the host lets go of a request in its own time."""
COLUMNS = (
    *("resident", "malloc", "sqlite", "blocks", "descriptors", "idle", "tasks"),
    *("sessions", "threads", "objects", "copies", "open"),
)
MOST_NAMES = 12


@dataclass
class Soak:
    """What runs, and what was found out so far."""

    server: OpenWebUI
    simulator: Simulator
    people: Sequence[Person]
    source: str
    """The built file."""
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    asked: list[Asked] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    names: list[Json] = field(default_factory=list)
    deck: list[Case] = field(default_factory=list)

    @property
    def minute(self) -> float:
        """The minutes since the beginning."""
        return (time.monotonic() - self.began) / 60

    async def run_round(self, turns: int) -> list[Asked]:
        """Let everybody ask some turns while the pipe is uploaded; then count."""
        hands = [[self._draw() for _ in range(turns)] for _ in self.people]
        dealt = zip(self.people, hands, strict=True)
        asking = (person.ask_each(cases) for person, cases in dealt)
        *answered, _ = await asyncio.gather(*asking, self._upload())
        asked = [one for turns_of_one in answered for one in turns_of_one]
        self.asked += asked
        await self._count()
        return asked

    def _draw(self) -> Case:
        """Return the next case; all come equally often."""
        if not self.deck:
            self.deck = self.chance.sample(CASES, len(CASES))
        return self.deck.pop()

    async def _upload(self) -> list[Asked]:
        """Save another version of the file, as an administrator does."""
        await asyncio.sleep(self.chance.uniform(1, LATEST_UPLOAD))
        source = f"{self.source}\n# Upload {len(self.samples) + 1}.\n"
        await self.server.admin.install_function(FUNCTION, source)
        return []

    async def _count(self) -> None:
        """Note what is held, once that changes no more."""
        before: Json = {}
        for _ in range(READINGS):
            await asyncio.sleep(1)
            said = await self.server.admin.complete(f"{INVENTORY}.count", FUNCTION)
            held = json.loads(said) | {"open": self.simulator.open_streams}
            names = held.pop("names")
            if all(held[key] == before.get(key) for key in ("tasks", "objects")):
                break
            before = held
        # Resting connections are bounded, and close by themselves.
        held["descriptors"] -= held["idle"]
        self.samples.append(Sample(self.minute, held))
        self.names.append(names)
        self.simulator.forget()


def main() -> int:
    """Print what was found; return 1 where something grows or is not explained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--people", type=int, default=30, help="each with a chat")
    parser.add_argument("--minutes", type=float, default=20.0, help="at most")
    parser.add_argument("--warm-up", type=float, default=5.0, help="minutes of these")
    parser.add_argument("--most-turns", type=int, default=3000, help="of all together")
    parser.add_argument("--turns", type=int, default=2, help="of each in a round")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random")
    parser.add_argument("--pipe", type=Path, default=BUILT, help="the built file")
    parser.add_argument("--log", type=Path, help="where to write the server's log")
    return asyncio.run(soak(parser.parse_args()))


async def soak(given: argparse.Namespace) -> int:
    """Run round after round; a line for each as it ends."""
    most = given.most_turns - given.people * given.turns
    async with start(given) as running:
        print(heading(given), flush=True)
        while running.minute < given.minutes and len(running.asked) <= most:
            asked = await running.run_round(given.turns)
            print(row(running.samples[-1], asked), flush=True)
        log = running.server.log()
    if given.log:
        given.log.write_text(log, "utf-8")
    return report(running, log, given.warm_up)


@asynccontextmanager
async def start(given: argparse.Namespace) -> AsyncIterator[Soak]:
    """Start the server and the simulator, and let everybody sign in."""
    source, chance = given.pipe.read_text("utf-8"), random.Random(given.seed)
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        server = await stack.enter_async_context(OpenWebUI(env=HOST))
        models = await install(server.admin, simulator, source)
        doors = asyncio.Semaphore(DOORS)
        people = []
        for number in range(given.people):
            user = await server.admin.add_user(f"person{number}@example.com", "person")
            tab = Tab(await stack.enter_async_context(user))
            await stack.enter_async_context(tab)
            own = random.Random(chance.random())
            people.append(Person(tab, models, doors, own))
        yield Soak(server, simulator, people, source, chance)


async def install(admin: User, simulator: Simulator, source: str) -> Models:
    """Install the pipe, tools, and the function that counts; the pipe's models."""
    address = {"BASE_URL": simulator.base_url, "API_KEY": simulator.api_key}
    await install_toolkit(admin)
    inventory = Path(__file__).with_name("inventory.py").read_text("utf-8")
    await admin.install_function(INVENTORY, inventory)
    usual, background = await install_pipe(admin, FUNCTION, source, address | VALVES)
    for number in range(FIRST_UPLOADS):
        await admin.install_function(FUNCTION, f"{source}\n# First upload {number}.\n")
    return Models(usual, background)


# ---- what was found, as text


def heading(given: argparse.Namespace) -> str:
    """Return the first lines."""
    names = ("minute", "turns", *(name[:11] for name in COLUMNS))
    return (
        f"{given.people} people, {given.minutes:g} minutes at most, seed {given.seed}\n"
        f"{''.join(f'{name:>12}' for name in names)}  not finished"
    )


def row(sample: Sample, asked: Sequence[Asked]) -> str:
    """Return what one round left."""
    ends = Counter(one.explained.verdict for one in asked)
    del ends["finished"]
    cells = "".join(f"{sample.held[key]:12,.0f}" for key in COLUMNS)
    ended = ", ".join(f"{count} {verdict}" for verdict, count in sorted(ends.items()))
    return f"{sample.minute:12.1f}{len(asked):12}{cells}  {ended}"


def table_of_turns(asked: Sequence[Asked]) -> str:
    """Return a line for each kind of ending; one for each turn that is unexplained."""
    ends = Counter((one.explained, one.case.name) for one in asked)
    lines = [f"  {'turns':>5}  {'ended':22}{'case':28}the person saw"]
    for (explained, name), count in sorted(ends.items(), key=str):
        if explained.verdict != "finished":
            shown = f"{count:5}  {explained.verdict:22}{name:28}{explained.reason}"
            lines.append(f"  {shown}".rstrip())
    finished = sum(one.explained.verdict == "finished" for one in asked)
    lines.append(f"  {finished:5}  finished")
    lines += [
        f"  {one.who}, chat {one.chat_id}: {one.case.name}: {one.explained.reason}"
        for one in unexplained(asked)
    ]
    return "\n".join(lines)


def unexplained(asked: Sequence[Asked]) -> list[Asked]:
    """Return the turns that ended in a way that nobody planned."""
    return [one for one in asked if one.explained.verdict == "UNEXPLAINED"]


def what_grew(running: Soak, warm_up: float) -> str:
    """Return the names whose counts grew most between the warm-up and the end."""
    places = [n for n, one in enumerate(running.samples) if one.minute >= warm_up]
    before, after = running.names[places[0]], running.names[places[-1]]
    lines = []
    for what, counts in after.items():
        more = Counter({k: n - before[what].get(k, 0) for k, n in counts.items()})
        for name, count in more.most_common(MOST_NAMES):
            if count > 0:
                lines.append(f"  {count:+8,} {what}: {name}")
    return "\n".join(["More of these than after the warm-up:", *lines])


def left_open(log: str) -> list[str]:
    """Return the lines with which Python complains of what nobody closed.

    A task that the host began itself is not the pipe's: the next line names its file.
    """
    return [
        line
        for line, after in pairwise([*log.splitlines(), ""])
        if any(words in line for words in LEFT_OPEN) and HOSTS_TASK not in after
    ]


def report(running: Soak, log: str, warm_up: float) -> int:
    """Print the tables and the verdict; the exit status."""
    found = growths(running.samples, warm_up)
    grown = [one.figure.name for one in found if one.grows]
    complaints, odd = left_open(log), unexplained(running.asked)
    parts = [table_of_growths(found), table_of_turns(running.asked)]
    if grown:
        parts.append(what_grew(running, warm_up))
    if complaints:
        parts.append("\n".join(["In the server's log:", *complaints]))
    print("", *parts, sep="\n\n", end="\n\n")
    said = f"grows: {', '.join(grown)}" if grown else "nothing grows"
    said += f"; {len(odd)} turns unexplained; {len(complaints)} complaints in the log"
    wrong = bool(grown or odd or complaints)
    met = "MISSED" if wrong else "met" if found else "not judged"
    print(f"Goal: flat, and every turn explained: {met} ({said}).")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
