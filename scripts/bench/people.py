"""The people of a soak: each has a tab and a chat, and asks one turn after the other."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field, replace

from bench.cases import Case, Explained, Json, Seen, explain
from hosts.tabs import Tab, Turn

PATIENCE = 150
"""Seconds after which a turn counts as one that does not end."""
CHAT_TURNS = 8
"""Turns after which a person begins another chat: rows of the same size to the end."""
LATEST_STOP = 4.0
"""Seconds. No answer that is to be stopped ends before them."""
PAUSE = 2.0
"""The longest time that somebody thinks before the next question."""
TITLES = {"title_generation": True, "tags_generation": True}


@dataclass(frozen=True)
class Models:
    """The pipe's models that are asked."""

    usual: str
    background: str

    def of(self, case: Case) -> str:
        """Return the one for a case."""
        return self.background if case.background else self.usual


@dataclass(frozen=True)
class Asked:
    """A turn that was asked, and what came of it."""

    case: Case
    who: str
    chat_id: str
    explained: Explained


@dataclass
class Person:
    """Somebody with an account, a tab, and a chat."""

    tab: Tab
    models: Models
    doors: asyncio.Semaphore
    """Open WebUI's SQLite takes only a few new turns at once."""
    chance: random.Random
    chat_id: str | None = None
    turns: int = field(default=0)

    async def ask_each(self, cases: Sequence[Case]) -> list[Asked]:
        """Ask one after the other, with pauses."""
        return [await self._ask(case) for case in cases]

    async def _ask(self, case: Case) -> Asked:
        await asyncio.sleep(self.chance.uniform(0, PAUSE))
        try:
            seen = await (self._as_client(case) if case.plain else self._in_chat(case))
            explained = explain(case, seen)
        except Exception as error:  # whatever it is, it is what came of this turn
            explained = Explained("UNEXPLAINED", f"{type(error).__name__}: {error}")
        return Asked(case, self.tab.user.email, self.chat_id or "", explained)

    # ---- in the page

    async def _in_chat(self, case: Case) -> Seen:
        if self.turns % CHAT_TURNS == 0:
            self.chat_id = None
        self.turns += 1
        turn = await self._begin(case)
        self.chat_id = turn.chat_id
        pressed = case.stopped and await self._stop(turn)
        ended = await _happens(turn.finished.wait())
        if not ended:
            await self.tab.stop(turn)
        ended &= await _happens(self.tab.settle(turn, PATIENCE))
        told = (turn.error or {}).get("message", "")
        self.tab.turns.clear()  # nobody looks at the events again
        self.tab.stray.clear()
        seen = _seen(await self.tab.message(turn), ended, pressed)
        return replace(seen, streamed=turn.text, told=told)

    async def _begin(self, case: Case) -> Turn:
        async with self.doors:
            return await self.tab.begin(
                self.models.of(case),
                case.question,
                chat_id=self.chat_id,
                body=case.body,
                background_tasks={} if self.chat_id else TITLES,
            )

    async def _stop(self, turn: Turn) -> bool:
        """Press the stop button at some moment; say whether it was still there."""
        await asyncio.sleep(self._moment())
        if turn.finished.is_set():
            return False
        await self.tab.stop(turn)
        return True

    # ---- over plain HTTP

    async def _as_client(self, case: Case) -> Seen:
        """Read a stream, or leave in the middle of it."""
        said = [{"role": "user", "content": case.question}]
        chunks = self.tab.user.chunks(self.models.of(case), said)
        patience = self._moment() if case.stopped else PATIENCE
        texts: list[str] = []
        ended = await _happens(_collect(chunks, texts), patience)
        return Seen(
            ended=ended or case.stopped,
            text="".join(texts),
            stop_pressed=case.stopped and not ended,
        )

    def _moment(self) -> float:
        """Return the seconds after which somebody stops."""
        return self.chance.uniform(0.1, LATEST_STOP)


async def _happens(what: Awaitable[object], seconds: float = PATIENCE) -> bool:
    """Wait for something; say whether it happened in time."""
    try:
        async with asyncio.timeout(seconds):
            await what
    except TimeoutError:
        return False
    return True


async def _collect(chunks: AsyncIterator[Json], texts: list[str]) -> None:
    """Note the text of each chunk; closes the connection also when it is cancelled."""
    async for chunk in chunks:
        for choice in chunk.get("choices", []):
            texts.append(choice["delta"].get("content") or "")


def _seen(message: Json, ended: bool, pressed: bool) -> Seen:
    """Read an answer as it is stored."""
    error = message.get("error") or {}
    content = error.get("content") if isinstance(error, dict) else error
    sentence = content.get("message") if isinstance(content, dict) else content
    return Seen(
        ended=ended,
        text=str(message.get("content") or ""),
        sentence=str(sentence or ""),
        stop_pressed=pressed,
        stored=message.get("done") is not False,
    )
