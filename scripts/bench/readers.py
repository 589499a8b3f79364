"""The readers that are compared, each asking the simulator the same."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp
from openai import AsyncOpenAI

from bench.host import load_pipe
from bench.servers import Address

MODEL = "gpt-5.6-sol"
NATIVE = {"chat_id": "temporary:bench", "message_id": "bench"}
"""With both ids the host reads the stream; a temporary chat has no row to write."""


class Reader(Protocol):
    """Asks a question, reads the whole answer, and counts what came of it."""

    @property
    def name(self) -> str:
        """How the table calls it."""

    async def read(self, question: str) -> int:
        """Return how many chunks or events the answer was."""


@dataclass(frozen=True)
class BytesReader:
    """Reads and throws away."""

    session: aiohttp.ClientSession
    url: str
    name: str = "the bytes alone"

    async def read(self, question: str) -> int:
        """Return the number of reads."""
        count = 0
        async with self.session.post(self.url, json=_payload(question)) as response:
            async for _ in response.content.iter_any():
                count += 1
        return count


@dataclass(frozen=True)
class JsonReader:
    """Splits the bytes at blank lines and loads what each event carries."""

    session: aiohttp.ClientSession
    url: str
    name: str = "json.loads of each event"

    async def read(self, question: str) -> int:
        """Return the number of events."""
        count, rest = 0, b""
        async with self.session.post(self.url, json=_payload(question)) as response:
            async for chunk in response.content.iter_any():
                *events, rest = (rest + chunk).split(b"\n\n")
                for event in events:
                    json.loads(event.partition(b"\ndata: ")[2].decode())
                count += len(events)
        return count


@dataclass(frozen=True)
class PipeReader:
    """Consumes the built pipe as Open WebUI does, up to the text it sends on."""

    pipe: Any
    encodes: bool
    name: str

    async def read(self, question: str) -> int:
        """Return the number of chunks."""
        body = {
            "model": f"openai_responses_manifold.{MODEL}",
            "messages": [{"role": "user", "content": question}],
            "stream": True,
        }
        chunks: AsyncGenerator[dict[str, Any], None]
        chunks = await self.pipe.pipe(body, __metadata__=NATIVE)
        count = 0
        async for chunk in chunks:
            if "error" in chunk:
                raise RuntimeError(f"The pipe said: {chunk['error']}")
            if self.encodes:
                f"data: {json.dumps(chunk)}\n\n".encode()
            count += 1
        return count


@dataclass(frozen=True)
class SdkReader:
    """Iterates over the typed events of the openai package."""

    client: AsyncOpenAI
    name: str = "the openai SDK's events"

    async def read(self, question: str) -> int:
        """Return the number of events."""
        events = await self.client.responses.create(
            model=MODEL,
            input=question,
            stream=True,
            store=False,
            include=["reasoning.encrypted_content"],
            reasoning={"summary": "auto"},
        )
        count = 0
        async for _ in events:
            count += 1
        return count


@asynccontextmanager
async def open_readers(address: Address) -> AsyncIterator[Sequence[Reader]]:
    """Open what the readers keep over many answers, as a server would."""
    url = f"{address.base_url}/responses"
    headers = {"Authorization": f"Bearer {address.api_key}"}
    pipe = load_pipe(address.base_url, address.api_key)
    client = AsyncOpenAI(base_url=address.base_url, api_key=address.api_key)
    async with aiohttp.ClientSession(headers=headers) as session, client:
        yield (
            BytesReader(session, url),
            JsonReader(session, url),
            PipeReader(pipe, encodes=False, name="the pipe"),
            PipeReader(pipe, encodes=True, name="the pipe, json.dumps"),
            SdkReader(client),
        )
    await pipe._connections.close()


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
