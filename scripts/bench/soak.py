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
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from calls.valves import expert

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.growth import FIGURES, Sample, growths, table_of_growths
from bench.host import BUILT
from bench.people import CASES, Asked, Case, Json, Person
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


@dataclass
class Soak:
    """What runs, and what was found out so far."""

    server: OpenWebUI
    simulator: Simulator
    people: Sequence[Person]
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    asked: list[Asked] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _deck: list[Case] = field(default_factory=list)

    @property
    def minute(self) -> float:
        """The minutes since the beginning."""
        return (time.monotonic() - self.began) / 60

    async def run_round(self, turns: int) -> None:
        """Let everybody ask some turns while the pipe is uploaded; then count."""
        uploading = asyncio.create_task(self._upload())
        asking = []
        for person in self.people:
            cases = [self._draw_case() for _ in range(turns)]
            asking.append(person.ask_each(cases))
        for asked in await asyncio.gather(*asking):
            self.asked += asked
        await uploading
        self.samples.append(await self._count())
        self.simulator.forget()

    def _draw_case(self) -> Case:
        """Return the next case; all come equally often."""
        if not self._deck:
            self._deck = self.chance.sample(CASES, len(CASES))
        return self._deck.pop()

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
            is_settled = all(
                held[key] == before.get(key) for key in ("tasks", "objects")
            )
            if is_settled:
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
            print(sample_line(soak.samples[-1]), flush=True)
        log = soak.server.log()
    if arguments.log:
        arguments.log.write_text(log, "utf-8")
    return report(soak.samples, soak.asked, log, arguments.warm_up)


@asynccontextmanager
async def start(people_count: int, seed: int) -> AsyncIterator[Soak]:
    """Start the server and the simulator, and let everybody sign in."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        server = await stack.enter_async_context(OpenWebUI(env=HOST_ENVIRONMENT))
        model, background_model = await install(server, simulator)
        doors = asyncio.Semaphore(DOORS)
        people = []
        for number in range(people_count):
            user = await server.admin.add_user(f"person{number}@example.com", "person")
            tab = Tab(await stack.enter_async_context(user))
            await stack.enter_async_context(tab)
            own_chance = random.Random(chance.random())
            people.append(Person(tab, model, background_model, doors, own_chance))
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


def sample_line(sample: Sample) -> str:
    """Return what one round left."""
    figures = [f"{figure.key} {sample.held[figure.key]:,.0f}" for figure in FIGURES]
    return f"  {sample.minute:5.1f} min: {', '.join(figures)}"


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


def report(
    samples: Sequence[Sample], asked: Sequence[Asked], log: str, warm_up: float
) -> int:
    """Print the tables and the verdict; return the exit code."""
    found = growths(samples, warm_up)
    grown = [growth.figure.name for growth in found if growth.grows]
    problems = [f"{turn.case.name}: {turn.problem}" for turn in asked if turn.problem]
    complaints = log_complaints(log)
    print(f"\n{table_of_growths(found)}\n")
    outcomes = Counter(turn.case.outcome for turn in asked)
    print(f"{len(asked)} turns, planned: {dict(sorted(outcomes.items()))}")
    print(*problems, *complaints, sep="\n")
    is_wrong = bool(grown or problems or complaints)
    verdict = "met" if found else "not judged"
    if is_wrong:
        verdict = "MISSED"
    grows = f"grows: {', '.join(grown)}" if grown else "nothing grows"
    print(
        f"Goal: flat, and every turn as planned: {verdict} ({grows}; "
        f"{len(problems)} turns otherwise; {len(complaints)} complaints in the log)."
    )
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
