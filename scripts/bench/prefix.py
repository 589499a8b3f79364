"""Measure how much of each request of a chat the prompt cache has already.

python scripts/bench/prefix.py     a table, in half a minute

Ten turns in a real Open WebUI, of which every second fetches a page: with a memory, a
file whose text is retrieved at each turn, and a clock in the system prompt. The
simulator counts as OpenAI does: whole tokens of the longest prefix that it saw before.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.host import BUILT
from hosts.client import Json
from hosts.open_webui import OpenWebUI
from hosts.pipes import install_pipe, valves_changed
from hosts.sent import answered
from hosts.tabs import Tab, Turn
from hosts.uploads import attach
from hosts.users import User
from hosts.website import Website
from simulator import RecordedRequest, Simulator

MODEL = "gpt-6.2-sol"
TURNS = 10
GOAL = 0.95
FETCHING = {"type": "function", "function": {"name": "fetch_url"}}
FACT = "The lighthouse keeper has to wind the clock at noon."
MEMORY = "I like herring."
SYSTEM = "You keep a lighthouse.\nIt is {{CURRENT_DATETIME}}.\nBe brief."


@dataclass(frozen=True)
class Share:
    """Tokens of a request, and how many of those of the one before were cached."""

    tokens: int
    before: int
    cached: int

    @property
    def part(self) -> float:
        """How much of the request before was read from the cache."""
        return self.cached / self.before


def main() -> int:
    """Print the table; return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    return asyncio.run(show(parser.parse_args().turns))


async def show(turns: int) -> int:
    """Let a chat happen, then print what was cached."""
    async with OpenWebUI() as server, Simulator() as simulator, Website() as site:
        valves = {
            "BASE_URL": simulator.base_url,
            "API_KEY": simulator.api_key,
            "MODEL_ID": MODEL,
        }
        source = BUILT.read_text("utf-8")
        [model] = await install_pipe(server.admin, "bench", source, valves)
        talk = Talk(model, site, turns)
        async with talk.possible(server.admin), Tab(server.admin) as tab:
            await talk.happen(tab)
        shares = shares_of(answered(simulator))
    print(table(shares))
    least = min(share.part for share in shares)
    return 0 if least >= GOAL else 1


@dataclass(frozen=True)
class Talk:
    """A chat with a model: that many turns, every second of which fetches a page."""

    model: str
    site: Website
    turns: int = TURNS

    @asynccontextmanager
    async def possible(self, admin: User) -> AsyncIterator[None]:
        """The host's own search is offered."""
        function_id = self.model.partition(".")[0]
        async with (
            self.site.reachable(admin),
            valves_changed(admin, function_id, MAP_WEB_SEARCH=False),
        ):
            yield

    async def happen(self, tab: Tab) -> list[Turn]:
        """Ask one question after the other."""
        await _remember(tab.user)
        content = f"{FACT}\n".encode() * 20
        file = await attach(tab.user, "handbook.txt", content, "text/plain")
        told: list[Turn] = []
        for number in range(self.turns):
            chat_id = told[0].chat_id if told else None
            body = _body({**file, "context": "full"}, number)
            files = [] if told else [file]
            words = self._words(number)
            told.append(
                await tab.send(
                    self.model, words, chat_id=chat_id, files=files, body=body
                )
            )
        return told

    def _words(self, number: int) -> str:
        if number % 2 == 0:
            return f"sim:short question {number}"
        page = json.dumps({"url": self.site.url(f"tide-{number}")})
        return f"sim:tool question {number} {page}"


def shares_of(requests: Sequence[RecordedRequest]) -> list[Share]:
    """Return what was cached of each request but the first."""
    usages = [(request.response or {})["usage"] for request in requests]
    return [
        Share(
            after["input_tokens"],
            before["input_tokens"],
            after["input_tokens_details"]["cached_tokens"],
        )
        for before, after in pairwise(usages)
    ]


def table(shares: Sequence[Share]) -> str:
    """Return a line for each request, ending with the goal."""
    lines = [f"{'request':>8}{'tokens':>10}{'before':>10}{'cached':>10}{'part':>8}"]
    for number, share in enumerate(shares, 2):
        counts = f"{share.tokens:10,}{share.before:10,}{share.cached:10,}"
        lines.append(f"{number:8}{counts}{share.part:8.1%}")
    least = min(share.part for share in shares)
    verdict = "met" if least >= GOAL else "MISSED"
    goal = f"Goal: at least {GOAL:.0%} of the request before: {verdict} ({least:.1%})."
    return "\n".join([*lines, goal])


def _body(file: Json, number: int) -> Json:
    """Return what a page adds to a question: settings, a clock, the chat's files."""
    fetching = {"tool_choice": FETCHING} if number % 2 else {}
    return fetching | {
        "messages": [{"role": "system", "content": SYSTEM}],
        "variables": {"{{CURRENT_DATETIME}}": f"2026-11-22 10:{number:02}:00"},
        "files": [file],
        "features": {"memory": True, "web_search": True},
    }


async def _remember(user: User) -> None:
    """Note a memory; without an embedding model only its row is made."""
    path = f"{user.url}/api/v1/memories/add"
    form = {"content": MEMORY, "type": "user"}
    async with user.http.post(path, json=form, headers=user.headers):
        pass


if __name__ == "__main__":
    sys.exit(main())
