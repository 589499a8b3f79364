"""Measure what a streamed answer costs: CPU per delta, from bytes to yielded chunk.

python scripts/bench/stream.py      three tables, in about a minute

Readers of the same stream take turns, so that a busy machine slows all of them alike:
the ratios are the result, not the microseconds. The server that writes the stream
runs in a process of its own, and only the CPU of the readers is counted.

Only the first table shows the work of a reader alone. The simulator writes each event
by itself, so in the other two most of the CPU goes into waking up for it; the last is
what a chat looks like.
"""

import argparse
import asyncio
import sys
from pathlib import Path

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.measuring import Pace, measure
from bench.readers import open_readers
from bench.servers import Address, run_server
from bench.table import table_of

SIMULATOR = ("simulator", "--port", "0")
BURST = ("bench.burst",)
PACED_DELTAS = 1000
PACED_ROUNDS = 3


def main() -> None:
    """Print a table for each pace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--deltas", type=int, default=4000, help="in an answer")
    parser.add_argument("--rounds", type=int, default=5, help="of all readers")
    arguments = parser.parse_args()
    for pace in paces(arguments.deltas, arguments.rounds):
        with run_server(*pace.server) as address:
            asyncio.run(show(address, pace))


def paces(deltas: int, rounds: int) -> list[Pace]:
    """Return how the servers write; the slow pace takes fewer deltas, for its time."""
    few = min(deltas, PACED_DELTAS), min(rounds, PACED_ROUNDS)
    return [
        Pace("the whole answer at once", BURST, 0, deltas, rounds),
        Pace("as fast as the simulator writes", SIMULATOR, 0, deltas, rounds),
        Pace("one delta every 2 ms", SIMULATOR, 2, *few),
    ]


async def show(address: Address, pace: Pace) -> None:
    """Measure at one pace and print what came out."""
    async with open_readers(address) as readers:
        print(table_of(pace, await measure(readers, pace)), flush=True)


if __name__ == "__main__":
    main()
