"""Measure how long a question takes to its request on the wire, in chats that grow.

python scripts/bench/wire.py      one table, in about half a minute

From the call of `pipe()` until a server on this machine has read the request. Each
chat is a stored one that the pipe wrote itself, turn by turn: every answer in it has
kept reasoning, which is read, placed and sent again.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from aiohttp import web

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.burst import Burst
from bench.host import load_pipe
from bench.pretended import CHAT, USER, provide_chat
from bench.readers import MODEL
from simulator.accounts import KEY

LENGTHS = (1, 50, 400)
QUESTION = "sim:short " + "What would you say of it, and why? " * 8


class Wire(Burst):
    """The server that notes when a request has come in whole."""

    def __init__(self) -> None:
        """Nothing came yet."""
        super().__init__()
        self.arrived = 0.0
        self.size = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note the time, then answer."""
        self.size = len(await request.read())
        self.arrived = time.perf_counter()
        return await super().answer(request)


@dataclass
class Chat:
    """A chat that grows by one turn with each question."""

    pipe: Any
    wire: Wire
    messages: list[dict[str, str]] = field(default_factory=list)

    async def ask(self) -> float:
        """Ask, keep the answer; return the milliseconds to the wire."""
        asked = [*self.messages, {"role": "user", "content": QUESTION}]
        began = time.perf_counter()
        text = await self._answer(asked)
        self.messages = [*asked, {"role": "assistant", "content": text}]
        return (self.wire.arrived - began) * 1e3

    def forget(self) -> None:
        """Take the last turn back."""
        self.messages = self.messages[:-2]

    async def _answer(self, asked: list[dict[str, str]]) -> str:
        body = {"model": f"bench.{MODEL}", "messages": asked, "stream": True}
        ids = {"chat_id": CHAT, "message_id": f"m-{len(asked)}"}
        chunks = await self.pipe.pipe(body, USER, ids)
        texts = []
        async for chunk in chunks:
            if "error" in chunk:
                raise RuntimeError(f"The pipe said: {chunk['error']}")
            if chunk.get("type") == "response.output_text.delta":
                texts.append(chunk["delta"])
        return "".join(texts).strip()


@dataclass(frozen=True)
class Reached:
    """What was measured in a chat of some turns."""

    turns: int
    size: int
    milliseconds: Sequence[float]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=9, help="of each length")
    given = parser.parse_args()
    print(table(asyncio.run(measure(given.turns, given.rounds))))


async def measure(lengths: Sequence[int], rounds: int) -> list[Reached]:
    """Let one chat grow, and measure at each length."""
    async with open_chat() as chat:
        await chat.ask()  # opens the connection
        chat.forget()
        return [await _at(chat, turns, rounds) for turns in sorted(lengths)]


async def _at(chat: Chat, turns: int, rounds: int) -> Reached:
    """Measure the last question of a chat of `turns`."""
    while len(chat.messages) // 2 < turns - 1:
        await chat.ask()
    found = []
    for _ in range(rounds):
        found.append(await chat.ask())
        chat.forget()
    return Reached(turns, chat.wire.size, found)


@asynccontextmanager
async def open_chat() -> AsyncIterator[Chat]:
    """Serve on a free port, and lend a chat of a pipe that asks there."""
    wire = Wire()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/responses", wire.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    pipe = load_pipe(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", KEY)
    provide_chat()
    try:
        yield Chat(pipe, wire)
    finally:
        await pipe._connections.close()
        await runner.cleanup()


def table(reached: Sequence[Reached]) -> str:
    """Return a line for each length; the last column says whether it is linear."""
    rounds = len(reached[0].milliseconds)
    lines = [f"From pipe() to the request on the wire, {rounds} rounds"]
    heads = ("turns", "request kB", "median ms", "best ms", "µs a turn")
    lines.append("".join(f"{head:>12}" for head in heads))
    for one in reached:
        typical, best = median(one.milliseconds), min(one.milliseconds)
        numbers = f"{typical:12.1f}{best:12.1f}{typical * 1e3 / one.turns:12.0f}"
        lines.append(f"{one.turns:12}{one.size / 1e3:12,.0f}{numbers}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
