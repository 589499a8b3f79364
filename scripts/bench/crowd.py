"""Many chats that ask one pipe at the same time."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Any

from bench.readers import MODEL

_TEXT = "response.output_text.delta"


@dataclass(frozen=True)
class Load:
    """How many streams at once, how long each is, and how fast it is written.

    `pause` is in milliseconds, before each delta: without it the simulator writes one
    answer after the other, and the streams are not open together.
    """

    streams: int
    deltas: int
    pause: float

    @property
    def question(self) -> str:
        """The words that make the simulator answer so."""
        return f"sim:long,deltas={self.deltas},delay={self.pause:g}"


@dataclass(frozen=True)
class Heard:
    """What came of one round: how many answers were whole, and what went wrong.

    `together` is how many streams had begun before the first of them ended.
    """

    whole: int
    together: int
    faults: tuple[str, ...]


class Crowd:
    """Streams of one pipe, read as Open WebUI reads them."""

    def __init__(self, pipe: Any, load: Load) -> None:
        """Ask nothing yet."""
        self._pipe = pipe
        self._load = load

    @property
    def streams(self) -> int:
        """How many chats ask at once."""
        return self._load.streams

    async def ask(self) -> Heard:
        """Let every chat ask once, all at the same time."""
        reading = _Reading(self._load.deltas)
        asked = (self._answer(name) for name in range(self._load.streams))
        await asyncio.gather(*(reading.read(answer) for answer in asked))
        return reading.heard

    async def _answer(self, name: int) -> AsyncGenerator[dict[str, Any], None]:
        body = {
            "model": f"openai_responses_manifold.{MODEL}",
            "messages": [{"role": "user", "content": self._load.question}],
            "stream": True,
        }
        # A temporary chat has no row to write.
        ids = {"chat_id": f"temporary:{name}", "message_id": f"m-{name}"}
        chunks: AsyncGenerator[dict[str, Any], None]
        chunks = await self._pipe.pipe(body, __metadata__=ids)
        async for chunk in chunks:
            yield chunk


class _Reading:
    """What the readers of one round have seen so far."""

    def __init__(self, deltas: int) -> None:
        self._deltas = deltas
        self._open = 0
        self._together = 0
        self._whole = 0
        self._faults: list[str] = []

    @property
    def heard(self) -> Heard:
        return Heard(self._whole, self._together, tuple(self._faults))

    async def read(self, answer: AsyncGenerator[dict[str, Any], None]) -> None:
        """Read one answer to its end; its words are counted, not kept."""
        words, opened = 0, False
        try:
            async for chunk in answer:
                if not opened:
                    opened = True
                    self._open += 1
                    self._together = max(self._together, self._open)
                words += _words_in(chunk)
        except Exception as error:  # whatever it is, it is what the round found out
            self._faults.append(f"{type(error).__name__}: {error}")
        else:
            self._judge(words)
        self._open -= opened

    def _judge(self, words: int) -> None:
        if words == self._deltas:
            self._whole += 1
        else:
            self._faults.append(f"{words} of {self._deltas} words came")


class ErrorShown(Exception):
    """The pipe showed an error instead of an answer."""


def _words_in(chunk: dict[str, Any]) -> int:
    """Return how many words of the answer `chunk` carries."""
    if "error" in chunk:
        raise ErrorShown(chunk["error"]["message"])
    return chunk["delta"].count("word") if chunk.get("type") == _TEXT else 0


def counted(faults: Iterable[str]) -> list[str]:
    """Return each fault once, with how often it happened."""
    all_of_them = list(faults)
    return [f"{all_of_them.count(one)} x {one}" for one in dict.fromkeys(all_of_them)]
