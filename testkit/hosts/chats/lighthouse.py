"""A chat that fetches pages, with a memory, a file and a clock around its questions.

What Open WebUI puts around a question differs from turn to turn: the time in the system
prompt, the text of the attached file, a memory.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

from hosts.people.client import Json
from hosts.people.questions import tool_choice
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.servers.website import Website
from hosts.setup.pipes import valves_changed
from simulator import RecordedRequest

MODEL = "gpt-6.2-sol"
TURNS = 6
MIN_CACHED = 0.95
"""How much of the request before the prompt cache must have."""
FACT = "The lighthouse keeper has to wind the clock at noon."
MEMORY = "I like herring."
_SYSTEM = "You keep a lighthouse.\nIt is {{CURRENT_DATETIME}}.\nBe brief."
_FETCH_CHOICE = tool_choice("fetch_url")


@dataclass(frozen=True)
class Talk:
    """A chat of `TURNS` turns with a model, every second of which fetches a page."""

    model: str
    site: Website

    @asynccontextmanager
    async def possible(self, admin: User) -> AsyncIterator[None]:
        """Let Open WebUI's own search be offered."""
        function_id = self.model.partition(".")[0]
        async with (
            self.site.reachable(admin),
            valves_changed(admin, function_id, MAP_WEB_SEARCH=False),
        ):
            yield

    async def happen(self, tab: Tab) -> list[Turn]:
        """Ask one question after the other."""
        await remember(tab.user, MEMORY)
        content = f"{FACT}\n".encode() * 20
        file = await attach(tab.user, "handbook.txt", content, "text/plain")
        turns: list[Turn] = []
        for number in range(TURNS):
            turn = await tab.send(
                self.model,
                self._question(number),
                chat_id=turns[0].chat_id if turns else None,
                files=[] if turns else [file],
                body=_body({**file, "context": "full"}, number),
            )
            turns.append(turn)
        return turns

    def _question(self, number: int) -> str:
        if number % 2 == 0:
            return f"sim:short question {number}"
        page = json.dumps({"url": self.site.url(f"tide-{number}")})
        return f"sim:tool question {number} {page}"


def _body(file: Json, number: int) -> Json:
    """Return what a page adds to a question: settings, a clock, the chat's files."""
    body: Json = {
        "messages": [{"role": "system", "content": _SYSTEM}],
        "variables": {"{{CURRENT_DATETIME}}": f"2026-11-22 10:{number:02}:00"},
        "files": [file],
        "features": {"memory": True, "web_search": True},
    }
    if number % 2:
        body["tool_choice"] = _FETCH_CHOICE
    return body


async def remember(user: User, text: str) -> None:
    """Note a memory; without an embedding model only its row is made."""
    path = f"{user.url}/api/v1/memories/add"
    form = {"content": text, "type": "user"}
    async with user.http.post(path, json=form, headers=user.headers):
        pass


def cached_shares(requests: Sequence[RecordedRequest]) -> list[float]:
    """Return how much of the request before each request had in the prompt cache."""
    usages = [(request.response or {})["usage"] for request in requests]
    shares = []
    for before, after in pairwise(usages):
        cached = after["input_tokens_details"]["cached_tokens"]
        shares.append(cached / before["input_tokens"])
    return shares
