"""Compare the pipe with Open WebUI's own connection: answers, chats, a crowd, memory.

python scripts/bench/beside.py               every row, in about 5 minutes
python scripts/bench/beside.py --rounds 1    the same, coarser

Both answer the same questions in turns in the real host, so that a busy machine slows
both down: the ratio is the result. The CPU is that of the server's process, from the
question until everything is saved. A crowd and the memory need a process for each
connection, because a process keeps the memory that it once had.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.crowd import Crowd, Kind, ask_crowd
from bench.host import (
    Address,
    goal_line,
    packed_pipe,
    parse_options,
    ratios,
    run_simulator,
    server_cpu,
    table,
)
from bench.inside import (
    NATIVE,
    PIPE,
    SUMMARY,
    both_connections,
    native_connection,
    pipe_valves,
)
from bench.process_size import processes_size
from hosts.people.tabs import Tab, Turn
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, install_toolkit

SHORT = "sim:long,deltas=12"
LONG = "sim:long,deltas={deltas},delay=2"
AT_ONCE = "sim:long,deltas={deltas}"
TOOLS = 'sim:tool-twice get_weather {"city": "Bergen"}'
DELTAS_OF_A_STREAM = 300
STREAM = f"sim:long,deltas={DELTAS_OF_A_STREAM},delay=20"
SHORT_TOGETHER = 5
"""Short answers are measured so many at a time: the clock ticks every 10 ms."""
STREAMS = 30
ANSWER_TIMEOUT = 600
TITLE = "Beside the native connection, medians: CPU and waits of an answer in ms"
GOALS = {
    "short answer: CPU": 1.0,
    "short answer: end": 1.0,
    "turn with two tools: CPU": 1.0,
    "turn with two tools: end": 1.0,
    f"crowd of {STREAMS}: CPU": 0.9,
    "long answer: kB of the row": 1.1,
}
"""Times the figure of the native connection, by the names of the rows."""


Row = tuple[float, float, float]
"""The native figure, the pipe's, and the median of the ratios of the rounds."""


class Spent(NamedTuple):
    """What some answers took: seconds of CPU, seconds to their ends, bytes to the page."""

    cpu: float
    end: float
    sent: int


Pairs = list[tuple[Spent, Spent]]
"""What the native connection took, then the pipe, of each round."""


class Sizes(NamedTuple):
    """The characters of a chat's row, through the native connection and the pipe."""

    native: int
    pipe: int


def main() -> None:
    """Print the table, then the goals."""
    options = parse_options(
        __doc__,
        rounds=(6, "of the short answers; half as many of the long ones"),
        deltas=(3000, "of a long answer"),
        turns=(20, "of the chat with tools"),
        streams=(STREAMS, "at once; 0: no crowd"),
    )
    with run_simulator() as address:
        print(asyncio.run(measure(address, options)))


async def measure(address: Address, options: argparse.Namespace) -> str:
    """Return the table of all measurements."""
    rows: dict[str, Row] = {}
    async with (
        OpenWebUI() as server,
        both_connections(server.admin, address),
        Tab(server.admin) as tab,
    ):
        await install_toolkit(server.admin)
        asker = Asker(server, tab)
        await asker.ask_in_turns(SHORT, 2)  # they do not count
        short = await asker.ask_in_turns(SHORT, options.rounds, SHORT_TOGETHER)
        rows |= _spent_rows("short answer", short)
        for name, question in (("long answer", LONG), ("answer at once", AT_ONCE)):
            asked = question.format(deltas=options.deltas)
            pairs = await asker.ask_in_turns(asked, max(1, options.rounds // 2))
            rows |= _spent_rows(name, pairs)
        rows |= _size_row("long answer", asker.row_sizes())
        turns = await asker.ask_in_turns(TOOLS, options.turns, goes_on=True)
        rows |= _spent_rows("turn with two tools", turns[1:])
        rows |= _size_row(f"chat of {options.turns} such turns", asker.row_sizes())
    if options.streams:
        rows |= await _crowd_rows(address, options.streams)
    return result(rows)


class Asker:
    """Asks both connections in turns; the first of a round is the last of the next."""

    def __init__(self, server: OpenWebUI, tab: Tab) -> None:
        self._server = server
        self._tab = tab
        self._places: dict[str, dict[str, str]] = {}
        """Where the last chat of each connection goes on."""

    async def ask_in_turns(
        self, question: str, rounds: int, together: int = 1, *, goes_on: bool = False
    ) -> Pairs:
        """Ask in new chats, or in one; a round has so many answers `together`."""
        self._places = {NATIVE: {}, PIPE: {}}
        pairs: Pairs = []
        for number in range(rounds):
            order = (NATIVE, PIPE) if number % 2 == 0 else (PIPE, NATIVE)
            spent = {
                model: await self._ask(model, question, together, goes_on=goes_on)
                for model in order
            }
            pairs.append((spent[NATIVE], spent[PIPE]))
        return pairs

    async def _ask(
        self, model: str, question: str, together: int, *, goes_on: bool
    ) -> Spent:
        cpu_before = server_cpu(self._server.pid)
        ends: list[float] = []
        sent = 0
        for _ in range(together):
            place = self._places[model] if goes_on else {}
            began = time.perf_counter()
            turn = await self._tab.begin(model, question, body=_body(model), **place)
            await asyncio.wait_for(turn.finished.wait(), ANSWER_TIMEOUT)
            ends.append(time.perf_counter() - began)
            await self._tab.settle(turn)
            _check(turn)
            sent += len(str(turn.events))
            parent = {"parent_id": turn.message_id}
            self._places[model] = {"chat_id": turn.chat_id, **parent}
        cpu = server_cpu(self._server.pid) - cpu_before
        return Spent(cpu / together, median(ends), sent // together)

    def row_sizes(self) -> Sizes:
        """Return the sizes of the rows of the last chats."""
        native, pipe = (
            self._server.sql(
                "select length(chat) as size from chat where id = ?",
                self._places[model]["chat_id"],
            )[0]["size"]
            for model in (NATIVE, PIPE)
        )
        return Sizes(native, pipe)


def _body(model: str) -> dict[str, object]:
    params = {"params": SUMMARY} if model == NATIVE else {}
    return {"tool_ids": ["toolkit"], **params}


def _check(turn: Turn) -> None:
    if turn.error or not turn.text:
        raise RuntimeError(f"There was no answer: {turn.error}")


def _spent_rows(name: str, pairs: Pairs) -> dict[str, Row]:
    """Return the rows of some answers: milliseconds, and kilobytes to the page."""
    native, pipe = zip(*pairs, strict=True)
    return {
        f"{name}: CPU": _pair_row(
            [a.cpu * 1e3 for a in native], [a.cpu * 1e3 for a in pipe]
        ),
        f"{name}: end": _pair_row(
            [a.end * 1e3 for a in native], [a.end * 1e3 for a in pipe]
        ),
        f"{name}: kB to the page": _pair_row(
            [a.sent / 1e3 for a in native], [a.sent / 1e3 for a in pipe]
        ),
    }


def _size_row(name: str, sizes: Sizes) -> dict[str, Row]:
    native, pipe = (size / 1e3 for size in sizes)
    return {f"{name}: kB of the row": (native, pipe, pipe / native)}


async def _crowd_rows(address: Address, streams: int) -> dict[str, Row]:
    """Let a crowd ask each connection twice, in a process of its own, in turns."""
    crowds: dict[str, list[Crowd]] = {NATIVE: [], PIPE: []}
    ready: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        places: dict[str, tuple[OpenWebUI, Tab]] = {}
        for model in (NATIVE, PIPE):
            places[model] = await stack.enter_async_context(_one_server(model, address))
            server, _ = places[model]
            ready[model] = processes_size([server.pid])[0] / 1e3
        for model in (NATIVE, PIPE, PIPE, NATIVE):
            server, tab = places[model]
            kind = Kind(model, STREAM, _is_whole, body=_body(model))
            crowd = await ask_crowd([server], [tab], kind, streams)
            if crowd.faults:
                raise RuntimeError(f"Of a crowd, some failed: {crowd.faults}")
            crowds[model].append(crowd)
    cpu = {
        model: [crowd.cpu * 1e3 / streams for crowd in crowds[model]]
        for model in crowds
    }
    first = {
        model: [median(crowd.firsts) for crowd in crowds[model]] for model in crowds
    }
    more = {
        model: (crowds[model][0].size.memory - crowds[model][0].size.memory_before)
        / 1e3
        for model in (NATIVE, PIPE)
    }
    return {
        "memory with one answer: MB": _pair_row([ready[NATIVE]], [ready[PIPE]]),
        f"crowd of {streams}: MB more": _pair_row([more[NATIVE]], [more[PIPE]]),
        f"crowd of {streams}: CPU": _pair_row(cpu[NATIVE], cpu[PIPE]),
        f"crowd of {streams}: first text": _pair_row(first[NATIVE], first[PIPE]),
    }


def _is_whole(text: str) -> bool:
    return text.count("word") == DELTAS_OF_A_STREAM


@asynccontextmanager
async def _one_server(
    model: str, address: Address
) -> AsyncIterator[tuple[OpenWebUI, Tab]]:
    """Run a server with one connection, which has given a short answer."""
    async with OpenWebUI() as server, AsyncExitStack() as stack:
        await install_toolkit(server.admin)
        if model == NATIVE:
            await stack.enter_async_context(native_connection(server.admin, address))
        else:
            await install_pipe(
                server.admin, "bench", packed_pipe(), pipe_valves(address)
            )
        tab = await stack.enter_async_context(Tab(server.admin))
        turn = await tab.send(model, SHORT, body=_body(model))
        _check(turn)
        yield server, tab


def _pair_row(native: Sequence[float], pipe: Sequence[float]) -> Row:
    return median(native), median(pipe), median(ratios(pipe, native))


def result(rows: Mapping[str, Row]) -> str:
    """Return the table, then the goals of the rows that were measured."""
    cells = {
        name: [f"{native:,.0f}", f"{pipe:,.0f}", f"{ratio:.2f}"]
        for name, (native, pipe, ratio) in rows.items()
    }
    lines = [table(TITLE, ("native", "pipe", "x native"), cells)]
    for name, (_, _, ratio) in rows.items():
        for goal, most in GOALS.items():
            if name.startswith(goal):
                text = f"{name} at most {most:g} x native"
                lines.append(goal_line(text, ratio <= most, f"{ratio:.2f}"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
