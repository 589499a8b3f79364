"""Measure the CPU per delta of a streamed answer, from its bytes to the yielded chunks.

python scripts/bench/stream.py      two tables, in about a minute

Three readers of the same stream take turns, so that a busy machine slows all of them
down: the ratios are the result, not the microseconds.

In the first table the whole answer arrives at once, which shows the work of a reader
alone. In the second, as in a chat, most of the CPU goes into waking up.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from openai import AsyncOpenAI

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import (
    MODEL,
    Address,
    answer_chunks,
    goal_line,
    open_pipe,
    parse_options,
    ratios,
    run_simulator,
    table,
)

WARM_UP_DELTAS = 50
MAX_PACED_DELTAS = 1000
MAX_PACED_ROUNDS = 3
"""Fewer than at once, because each round takes its time."""
YARDSTICK = "json.loads of each event"
PIPE = "the pipe"
SDK = "the openai SDK's events"
GOAL = 0.9
"""Times the CPU of the yardstick."""

Read = Callable[[str], Awaitable[None]]
"""Asks a question, and reads the whole answer."""
Microseconds = Mapping[str, list[float]]
"""CPU per delta in each round, by the names of the readers."""


@dataclass(frozen=True)
class Pace:
    """How the simulator writes an answer: the option that says so, and how much."""

    title: str
    option: str
    deltas: int
    rounds: int

    def question(self, deltas: int) -> str:
        """Return the question to which the simulator answers at this pace."""
        return f"sim:long,deltas={deltas},{self.option}"


def main() -> None:
    """Print a table for each pace."""
    options = parse_options(
        __doc__, deltas=(4000, "in an answer"), rounds=(5, "of all readers")
    )
    paces = (
        Pace("the whole answer at once", "burst", options.deltas, options.rounds),
        Pace(
            "one delta every 2 ms",
            "delay=2",
            min(options.deltas, MAX_PACED_DELTAS),
            min(options.rounds, MAX_PACED_ROUNDS),
        ),
    )
    with run_simulator() as address:
        for pace in paces:
            measured = asyncio.run(measure(address, pace))
            print(result(pace, measured), end="\n\n", flush=True)


async def measure(address: Address, pace: Pace) -> Microseconds:
    """Let all readers read in turns, after a warm-up that does not count."""
    async with open_readers(address) as readers:
        measured: dict[str, list[float]] = {name: [] for name in readers}
        for read in readers.values():
            await read(pace.question(WARM_UP_DELTAS))
        for _ in range(pace.rounds):
            for name, read in readers.items():
                gc.collect()  # what the reader before left is not this one's
                began = time.process_time()
                await read(pace.question(pace.deltas))
                seconds = time.process_time() - began
                measured[name].append(seconds * 1e6 / pace.deltas)
    return measured


@asynccontextmanager
async def open_readers(address: Address) -> AsyncIterator[Mapping[str, Read]]:
    """Give readers that keep their connections over many answers, as a server would."""
    headers = {"Authorization": f"Bearer {address.api_key}"}
    sdk = AsyncOpenAI(base_url=address.base_url, api_key=address.api_key)
    async with (
        open_pipe(address) as pipe,
        aiohttp.ClientSession(headers=headers) as session,
        sdk,
    ):

        async def read_json(question: str) -> None:
            await _read_json(session, f"{address.base_url}/responses", question)

        async def read_pipe(question: str) -> None:
            async for _ in answer_chunks(pipe, question):
                pass

        async def read_sdk(question: str) -> None:
            events = await sdk.responses.create(**_payload(question))
            async for _ in events:
                pass

        yield {YARDSTICK: read_json, PIPE: read_pipe, SDK: read_sdk}


async def _read_json(session: aiohttp.ClientSession, url: str, question: str) -> None:
    """Split the bytes at blank lines, and load the JSON of each event."""
    rest = b""
    async with session.post(url, json=_payload(question)) as response:
        async for chunk in response.content.iter_any():
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                json.loads(event.partition(b"\ndata: ")[2].decode())


def _payload(question: str) -> dict[str, Any]:
    """Return the request that the pipe sends too."""
    return {
        "model": MODEL,
        "input": question,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def result(pace: Pace, measured: Microseconds) -> str:
    """Return a line for each reader, then the goal."""
    rows: dict[str, list[str]] = {}
    for name, microseconds in measured.items():
        times = ratios(microseconds, measured[YARDSTICK])
        rows[name] = [
            f"{median(microseconds):.1f}",
            f"{median(times):.2f}",
            f"({min(times):.2f} {max(times):.2f})",
        ]
    title = f"{pace.title}: {pace.deltas:,} deltas, {pace.rounds} rounds, medians"
    columns = ("CPU µs/delta", "x json.loads", "(from to)")
    reached = median(ratios(measured[PIPE], measured[YARDSTICK]))
    goal = goal_line(
        f"the pipe at most {GOAL:g} x json.loads", reached <= GOAL, f"{reached:.2f}"
    )
    return f"{table(title, columns, rows)}\n{goal}"


if __name__ == "__main__":
    main()
