"""Measure what a streamed answer costs: CPU per delta, from bytes to yielded chunk.

python scripts/bench/stream.py      two tables, in about a minute

Three readers of the same stream take turns, so that a busy machine slows all of them
alike: the ratios are the result, not the microseconds.

In the first table the whole answer arrives at once, which shows the work of a reader
alone. The second is what a chat looks like: most of the CPU goes into waking up.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from openai import AsyncOpenAI

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import (
    MODEL,
    Address,
    answer_chunks,
    open_pipe,
    run_simulator,
    verdict,
)

WARM_UP_DELTAS = 50
PACED_DELTAS = 1000
PACED_ROUNDS = 3
"""Fewer than at once, because each round takes its time."""
YARDSTICK = "json.loads of each event"
PIPE = "the pipe"
GOAL = 0.9
"""Of the CPU of the yardstick."""

Read = Callable[[str], Awaitable[int]]
"""Asks a question, reads the whole answer, and returns the number of its chunks."""


@dataclass(frozen=True)
class Pace:
    """How the simulator writes an answer: the option that says so, and how much."""

    title: str
    option: str
    deltas: int
    rounds: int

    def question(self, deltas: int) -> str:
        """Return the words that make the simulator answer so."""
        return f"sim:long,deltas={deltas},{self.option}"


@dataclass
class Measured:
    """Microseconds of CPU per delta in each round, and the chunks of an answer."""

    microseconds: list[float]
    chunks: int = 0


def main() -> None:
    """Print a table for each pace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--deltas", type=int, default=4000, help="in an answer")
    parser.add_argument("--rounds", type=int, default=5, help="of all readers")
    arguments = parser.parse_args()
    paced_deltas = min(arguments.deltas, PACED_DELTAS)
    paced_rounds = min(arguments.rounds, PACED_ROUNDS)
    paces = (
        Pace("the whole answer at once", "burst", arguments.deltas, arguments.rounds),
        Pace("one delta every 2 ms", "delay=2", paced_deltas, paced_rounds),
    )
    with run_simulator() as address:
        for pace in paces:
            measured = asyncio.run(measure(address, pace))
            print(table(pace, measured), end="\n\n", flush=True)


async def measure(address: Address, pace: Pace) -> Mapping[str, Measured]:
    """Let all readers read in turns, after a warm-up that does not count."""
    async with open_readers(address) as readers:
        measured = {name: Measured([]) for name in readers}
        for read in readers.values():
            await read(pace.question(WARM_UP_DELTAS))
        for _ in range(pace.rounds):
            for name, read in readers.items():
                gc.collect()  # nobody pays for the garbage of the reader before
                began = time.process_time()
                measured[name].chunks = await read(pace.question(pace.deltas))
                seconds = time.process_time() - began
                measured[name].microseconds.append(seconds * 1e6 / pace.deltas)
    return measured


@asynccontextmanager
async def open_readers(address: Address) -> AsyncIterator[Mapping[str, Read]]:
    """Open what the readers keep over many answers, as a server would."""
    headers = {"Authorization": f"Bearer {address.api_key}"}
    sdk = AsyncOpenAI(base_url=address.base_url, api_key=address.api_key)
    async with (
        open_pipe(address) as pipe,
        aiohttp.ClientSession(headers=headers) as session,
        sdk,
    ):

        async def read_json(question: str) -> int:
            return await _read_json(session, f"{address.base_url}/responses", question)

        async def read_pipe(question: str) -> int:
            return len([chunk async for chunk in answer_chunks(pipe, question)])

        async def read_sdk(question: str) -> int:
            events = await sdk.responses.create(**_payload(question))
            return len([event async for event in events])

        yield {
            YARDSTICK: read_json,
            PIPE: read_pipe,
            "the openai SDK's events": read_sdk,
        }


async def _read_json(session: aiohttp.ClientSession, url: str, question: str) -> int:
    """Split the bytes at blank lines and load what each event carries."""
    count = 0
    rest = b""
    async with session.post(url, json=_payload(question)) as response:
        async for chunk in response.content.iter_any():
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                json.loads(event.partition(b"\ndata: ")[2].decode())
            count += len(events)
    return count


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


def table(pace: Pace, measured: Mapping[str, Measured]) -> str:
    """Return a line for each reader, ending with the goal."""
    lines = [
        f"{pace.title}: {pace.deltas:,} deltas, {pace.rounds} rounds, medians",
        f"  {'':26}{'CPU µs/delta':>14}{'x json.loads':>14}{'(from to)':>15}{'chunks':>9}",
    ]
    yardstick = measured[YARDSTICK].microseconds
    for name, reader in measured.items():
        ratios = _ratios(reader.microseconds, yardstick)
        span = f"({min(ratios):.2f} {max(ratios):.2f})"
        lines.append(
            f"  {name:26}{median(reader.microseconds):14.1f}"
            f"{median(ratios):14.2f}{span:>15}{reader.chunks:9,}"
        )
    reached = median(_ratios(measured[PIPE].microseconds, yardstick))
    lines.append(
        f"  Goal: the pipe at most {GOAL:g} x json.loads: {verdict(reached <= GOAL)} "
        f"({reached:.2f})."
    )
    return "\n".join(lines)


def _ratios(reader: Sequence[float], yardstick: Sequence[float]) -> list[float]:
    """Compare round by round: what slows a machine lasts longer than a round."""
    pairs = zip(reader, yardstick, strict=True)
    return [own / other for own, other in pairs]


if __name__ == "__main__":
    main()
