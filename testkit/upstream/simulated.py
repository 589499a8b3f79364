"""A client of the simulator that knows nothing but HTTP."""

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from simulator import Simulator

Body = dict[str, Any]
KEY = "sk-simulator-1"


@dataclass
class SimulatorReply:
    """What came back for one request."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> Any:
        return self.body["error"]

    @property
    def events(self) -> list[Body]:
        blocks = self.raw.decode().replace("\r\n", "\n").split("\n\n")
        lines = [line for block in blocks for line in block.split("\n")]
        events = [line[6:] for line in lines if line.startswith("data: {")]
        return [json.loads(event) for event in events]

    @property
    def text(self) -> str:
        """What the assistant said, in a stream or in one object."""
        last = self.events[-1]["response"] if self.events else self.body
        messages = [item for item in last["output"] if item["type"] == "message"]
        parts = [part for message in messages for part in message["content"]]
        return "".join(part["text"] for part in parts)


@dataclass
class Client:
    """Sends bodies to one simulator."""

    simulator: Simulator
    session: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"{self.simulator.base_url}/responses"

    def body(self, content: Any = "Hello", **more: Any) -> Body:
        """Return a body that is valid unless ``more`` makes it otherwise."""
        return {"model": "gpt-5.6-sol", "input": content, "store": False, **more}

    async def post(
        self, body: Any, key: str | None = KEY, **headers: str
    ) -> SimulatorReply:
        """Send a body and read the whole answer."""
        sent = {**self.headers, **headers}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        sent["Content-Type"] = "application/json"
        raw = io.BytesIO(json.dumps(body).encode())
        async with self.session.post(self.url, data=raw, headers=sent) as answer:
            return await _read(answer)

    def open_stream(
        self, content: Any, **more: Any
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a valid body and lend the stream while it is written."""
        body = self.body(content, stream=True, **more)
        sent = {"Authorization": f"Bearer {KEY}"}
        return self.session.post(self.url, json=body, headers=sent)

    async def get(self, id: str, key: str = KEY, **query: str) -> SimulatorReply:
        url, sent = f"{self.url}/{id}", {"Authorization": f"Bearer {key}"}
        async with self.session.get(url, params=query, headers=sent) as answer:
            return await _read(answer)

    async def cancel(self, id: str) -> SimulatorReply:
        url, sent = f"{self.url}/{id}/cancel", {"Authorization": f"Bearer {KEY}"}
        async with self.session.post(url, headers=sent) as answer:
            return await _read(answer)

    async def ask(self, content: Any = "Hello", **more: Any) -> SimulatorReply:
        """Send a valid body and expect it to be accepted."""
        reply = await self.post(self.body(content, **more))
        assert reply.status == 200, reply.raw
        return reply

    async def stream(self, content: Any = "Hello", **more: Any) -> SimulatorReply:
        return await self.ask(content, stream=True, **more)

    async def refused(self, **fields: Any) -> Any:
        """Send a body with these fields; return the error of the 400 that it gets."""
        reply = await self.post({**self.body(), **fields})
        assert reply.status == 400, reply.raw
        assert reply.error["type"] == "invalid_request_error"
        return reply.error


async def _read(answer: aiohttp.ClientResponse) -> SimulatorReply:
    return SimulatorReply(answer.status, dict(answer.headers), await answer.read())


def bare(items: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Return output items as a client sends them back: without ids and states."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "status")}
        for item in items
    ]
