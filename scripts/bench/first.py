"""Measure the wait for the first text and for the end of a short answer.

python scripts/bench/first.py     a line for each kind of chat and load, 10 minutes
python scripts/bench/first.py --round-trip 20 --pause 16 --answers 12      20 minutes

Open WebUI's own Responses connection and the pipe answer in turns in the real host, in
three kinds of chats, while the machine does nothing else and while other processes keep
it busy. A tab reads along as the page does; a wait begins when it sends the question.

With `--round-trip`, the API is behind TLS and that far away. With `--pause`, people
take so long for the next question: after 15 seconds without one, Open WebUI's
connection has closed what it had open.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import goal_line, parse_options, run_simulator, table
from bench.inside import NATIVE, PIPE, SUMMARY, both_connections
from bench.network import Network, run_network
from hosts.people.tabs import Tab, Turn
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_tools

READY_MS = 200
"""When the simulator begins to answer. It checks a request meanwhile, which takes longer
for one with more items, as the pipe sends: that time is not the pipe's."""
QUESTION = f"sim:long,deltas=20,delay=2,wait={READY_MS}"
TOOLS = 40
TOOLKIT = "forty_tools"
TOOL = '''
    def read_sensor_{number}(self, place: str, hours: int = 24) -> str:
        """Read sensor {number}.

        :param place: Where the sensor is.
        :param hours: How far back to look.
        """
        return "nothing"
'''
ANSWER_TIMEOUT = 120
BUSY = "while True: pass"


@dataclass
class Chat:
    """A chat of one connection: its fields of a question, and where it goes on."""

    model: str
    body: Mapping[str, object]
    place: dict[str, str] = field(default_factory=dict)


class Wait(NamedTuple):
    """Milliseconds from the question to the first text, and to the end."""

    first: float
    end: float


class Pair(NamedTuple):
    """One question, asked through both connections."""

    native: Wait
    pipe: Wait


def main() -> None:
    """Print a line for each kind of chat and load, then the goal."""
    options = parse_options(
        __doc__,
        answers=(30, "of each connection, in each line"),
        turns=(50, "of the long chat"),
        workers=(4, "busy processes beside the server"),
        round_trip=(0.0, "milliseconds to the API and back, over TLS; 0: neither"),
        pause=(0.0, "seconds before each two questions"),
    )
    with (
        run_simulator() as address,
        run_network(address, options.round_trip) as network,
    ):
        pairs = asyncio.run(measure(network, options))
    print(result(pairs, options.answers))


async def measure(
    network: Network, options: argparse.Namespace
) -> dict[str, Sequence[Pair]]:
    """Return the waits of each line of the table."""
    pairs: dict[str, Sequence[Pair]] = {}
    async with connected_tab(network) as tab:
        for kind in ("1 turn", f"{options.turns} turns", f"{TOOLS} tools"):
            chats = [new_chat(NATIVE, kind), new_chat(PIPE, kind)]
            is_long = kind.endswith("turns")
            for _ in range(options.turns if is_long else 1):
                await ask_both(tab, chats, is_long, native_first=True)
            for workers in (0, options.workers):
                with busy_processes(workers):
                    line = []
                    for native_first in _alternate(options.answers):
                        await asyncio.sleep(options.pause)
                        line.append(await ask_both(tab, chats, is_long, native_first))
                pairs[f"{kind}, {workers} workers"] = line
    return pairs


def _alternate(count: int) -> list[bool]:
    """The connection that is second in one round is the first in the next."""
    return [number % 2 == 0 for number in range(count)]


@asynccontextmanager
async def connected_tab(network: Network) -> AsyncIterator[Tab]:
    """Start the server with both connections and the tools; open a tab."""
    async with (
        OpenWebUI(env=network.environment) as server,
        both_connections(server.admin, network.address),
        Tab(server.admin) as tab,
    ):
        methods = [TOOL.format(number=number) for number in range(TOOLS)]
        await install_tools(server.admin, TOOLKIT, f"class Tools:{''.join(methods)}")
        yield tab


def new_chat(model: str, kind: str) -> Chat:
    """Return a chat that has not begun."""
    body: dict[str, object] = {}
    if model == NATIVE:
        body["params"] = SUMMARY
    if kind.endswith("tools"):
        body["tool_ids"] = [TOOLKIT]
    return Chat(model, body)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep so many processes busy during the block."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.enter_context(process)
            stack.callback(process.kill)
        yield


async def ask_both(
    tab: Tab, chats: Sequence[Chat], goes_on: bool, native_first: bool
) -> Pair:
    """Ask one connection, then the other, in their chats or in new ones."""
    native, pipe = chats
    if native_first:
        return Pair(await _ask(tab, native, goes_on), await _ask(tab, pipe, goes_on))
    pipe_wait = await _ask(tab, pipe, goes_on)
    return Pair(await _ask(tab, native, goes_on), pipe_wait)


async def _ask(tab: Tab, chat: Chat, goes_on: bool) -> Wait:
    """Return the waits; raise RuntimeError if the answer ends with an error."""
    began = time.perf_counter()
    turn = await tab.begin(chat.model, QUESTION, body=chat.body, **chat.place)
    await turn.until(has_text_or_end, ANSWER_TIMEOUT)
    first = time.perf_counter() - began
    await asyncio.wait_for(turn.finished.wait(), ANSWER_TIMEOUT)
    end = time.perf_counter() - began
    await tab.settle(turn)
    if turn.error:
        raise RuntimeError(f"{chat.model} failed: {turn.error}")
    if goes_on:
        chat.place = {"chat_id": turn.chat_id, "parent_id": turn.message_id}
    return Wait(first * 1e3, end * 1e3)


def has_text_or_end(turn: Turn) -> bool:
    """Say whether the page shows text of the answer, or its end."""
    return bool(turn.text) or turn.finished.is_set()


def result(pairs: Mapping[str, Sequence[Pair]], answers: int) -> str:
    """Return the table and the goal; differences are those of the rounds."""
    rows = {name: _row(line) for name, line in pairs.items()}
    columns = ("native", "pipe", "native 90 %", "pipe 90 %", "later", "end later")
    later = [median(_later(line)) for line in pairs.values()]
    load = os.getloadavg()[0]
    title = f"First text in ms, {answers} answers each (load at the end {load:.1f})"
    goal = goal_line(
        "first text no later than the native connection's",
        max(later) <= 0,
        f"{min(later):+.0f} to {max(later):+.0f} ms",
    )
    return f"{table(title, columns, rows)}\n{goal}"


def _row(line: Sequence[Pair]) -> list[str]:
    native = [pair.native.first for pair in line]
    pipe = [pair.pipe.first for pair in line]
    end_later = [pair.pipe.end - pair.native.end for pair in line]
    return [
        f"{median(native):.0f}",
        f"{median(pipe):.0f}",
        f"{_ninth_decile(native):.0f}",
        f"{_ninth_decile(pipe):.0f}",
        f"{median(_later(line)):+.0f}",
        f"{median(end_later):+.0f}",
    ]


def _later(line: Sequence[Pair]) -> list[float]:
    return [pair.pipe.first - pair.native.first for pair in line]


def _ninth_decile(values: Sequence[float]) -> float:
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=10, method="inclusive")[-1]


if __name__ == "__main__":
    main()
