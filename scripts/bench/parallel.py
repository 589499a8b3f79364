"""Measure an answer with five calls at once against the longest of its tools.

python scripts/bench/parallel.py      one table, in about ten seconds
"""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import load_pipe
from bench.pretended import CHAT, USER, provide_chat
from bench.readers import MODEL
from bench.servers import Address, run_server

SIMULATOR = ("simulator", "--port", "0")
CALLS = 5
SPEC = {
    "name": "wait",
    "description": "Waits for a while.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@dataclass
class Waiting:
    """A tool whose first call takes one step of time, the second two, and so on."""

    step: float
    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    async def wait(self, city: str = "") -> str:
        """Wait longer than the call before."""
        self.begun.append(time.perf_counter())
        await asyncio.sleep(self.step * len(self.begun))
        self.ended.append(time.perf_counter())
        return f"waited at {city}"


@dataclass(frozen=True)
class Took:
    """The milliseconds of one answer, and those from its first tool to its last."""

    answer: float
    tools: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--step", type=float, default=100.0, help="ms")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with run_server(*SIMULATOR) as address:
        took = asyncio.run(measure(address, given.step / 1e3, given.rounds))
    print(table(took, given.step))


async def measure(address: Address, step: float, rounds: int) -> list[Took]:
    """Let the pipe answer again and again, after a warm-up that does not count."""
    pipe = load_pipe(address.base_url, address.api_key)
    provide_chat()
    try:
        return [await _answer(pipe, step) for _ in range(rounds + 1)][1:]
    finally:
        await pipe._connections.close()


async def _answer(pipe: Any, step: float) -> Took:
    tool = Waiting(step)
    offered = {"spec": SPEC, "callable": tool.wait, "type": "function", "tool_id": "b"}
    messages = [{"role": "user", "content": "sim:five-calls"}]
    tools = [{"type": "function", "function": SPEC}]
    body = {"model": f"bench.{MODEL}", "messages": messages, "tools": tools}
    ids = {"chat_id": CHAT, "message_id": "m-1", "user_id": USER["id"]}
    began = time.perf_counter()
    chunks = await pipe.pipe(
        body | {"stream": True}, USER, ids, __tools__={"wait": offered}
    )
    async for chunk in chunks:
        if "error" in chunk:
            raise RuntimeError(f"The pipe said: {chunk['error']}")
    answer = time.perf_counter() - began
    if len(tool.ended) != CALLS:
        raise RuntimeError(f"{len(tool.ended)} of {CALLS} calls ran")
    return Took(answer * 1e3, (max(tool.ended) - min(tool.begun)) * 1e3)


def table(took: list[Took], step: float) -> str:
    """Return the lines: the longest tool, all five, the whole answer."""
    longest = step * CALLS
    rows = {
        "the longest tool": longest,
        "all tools, side by side": median(one.tools for one in took),
        "the whole answer": median(one.answer for one in took),
        "all tools, one by one": step * sum(range(1, CALLS + 1)),
    }
    lines = [f"An answer with {CALLS} calls at once, {len(took)} rounds, medians"]
    lines.append(f"  {'':26}{'ms':>10}{'x longest':>12}")
    for name, found in rows.items():
        lines.append(f"  {name:26}{found:10.1f}{found / longest:12.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
