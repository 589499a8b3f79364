"""A client that knows nothing but HTTP."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest_asyncio

from simulator import Simulator

Body = dict[str, Any]


@dataclass
class Heard:
    """What came back for one request."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.raw)

    @property
    def error(self) -> Any:
        """The four fields of an error body."""
        return self.body["error"]

    @property
    def events(self) -> list[Body]:
        """The events of a stream."""
        blocks = self.raw.decode().replace("\r\n", "\n").split("\n\n")
        lines = [line for block in blocks for line in block.split("\n")]
        found = [line[6:] for line in lines if line.startswith("data: {")]
        return [json.loads(line) for line in found]

    @property
    def text(self) -> str:
        """What the assistant said, in a stream or in one object."""
        last = self.events[-1]["response"] if self.events else self.body
        messages = [item for item in last["output"] if item["type"] == "message"]
        return "".join(part["text"] for one in messages for part in one["content"])


@dataclass
class Client:
    """Sends bodies to one simulator."""

    simulator: Simulator
    session: aiohttp.ClientSession
    model: str = "gpt-5.6-sol"
    headers: dict[str, str] = field(default_factory=dict)

    def body(self, said: Any = "Hello", **more: Any) -> Body:
        """Return a body that is valid unless ``more`` makes it otherwise."""
        return {"model": self.model, "input": said, "store": False, **more}

    async def post(
        self, body: Any, key: str | None = "sk-simulator-1", **headers: str
    ) -> Heard:
        """Send a body and read the whole answer."""
        sent = {**self.headers, **headers}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        url = f"{self.simulator.base_url}/responses"
        sent["Content-Type"] = "application/json"
        raw = io.BytesIO(json.dumps(body).encode())
        async with self.session.post(url, data=raw, headers=sent) as answer:
            return Heard(answer.status, dict(answer.headers), await answer.read())

    async def get(self, id: str, key: str = "sk-simulator-1", **query: str) -> Heard:
        """Ask for a stored response."""
        return await self._look_up("GET", id, key, query)

    async def cancel(self, id: str, key: str = "sk-simulator-1") -> Heard:
        """Stop a background response."""
        return await self._look_up("POST", f"{id}/cancel", key, {})

    async def _look_up(
        self, method: str, path: str, key: str, query: dict[str, str]
    ) -> Heard:
        url = f"{self.simulator.base_url}/responses/{path}"
        sent = {"Authorization": f"Bearer {key}"}
        asked = self.session.request(method, url, params=query, headers=sent)
        async with asked as answer:
            return Heard(answer.status, dict(answer.headers), await answer.read())

    async def ask(self, said: Any = "Hello", **more: Any) -> Heard:
        """Send a valid body and expect it to be accepted."""
        heard = await self.post(self.body(said, **more))
        assert heard.status == 200, heard.raw
        return heard

    async def stream(self, said: Any = "Hello", **more: Any) -> Heard:
        """Send a valid body and read the stream."""
        return await self.ask(said, stream=True, **more)


def user(text: str) -> Body:
    """Return a user message."""
    return {"role": "user", "content": text}


def sent_back(items: list[Body], *, ids: bool = False) -> list[Body]:
    """Return output items as a client sends them back."""
    dropped = {"status"} if ids else {"status", "id"}
    kept = []
    for item in items:
        status = {"status": item["status"]} if ids and item["type"] == "message" else {}
        bare = {key: value for key, value in item.items() if key not in dropped}
        kept.append({**bare, **status})
    return kept


@pytest_asyncio.fixture
async def sim() -> AsyncIterator[Simulator]:
    """Return a simulator of the strictest profile."""
    async with Simulator() as simulator:
        yield simulator


@pytest_asyncio.fixture
async def client(sim: Simulator) -> AsyncIterator[Client]:
    """Return a client of that simulator."""
    async with aiohttp.ClientSession() as session:
        yield Client(sim, session)
