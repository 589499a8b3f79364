"""The people of a soak: what they ask, and how each of their turns may end."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hosts.people.tabs import Tab, Turn

Json = dict[str, Any]
Outcome = Literal["whole", "failed", "stopped"]

LAST_WORDS = "That is all for now."
"""Of the simulator's usual answer."""
TOOL_WORDS = "It said: Sunny in"
"""In the answer that the simulator makes of the output of a tool."""
TURN_TIMEOUT = 150
"""Seconds after which a turn counts as one that does not end."""
CHAT_TURNS = 8
"""Turns after which a person begins another chat: rows of the same size to the end."""
LATEST_STOP = 4.0
"""Seconds. No answer that is to be stopped ends before them."""
MAX_PAUSE = 2.0
"""The longest time that somebody thinks before the next question, in seconds."""


@dataclass(frozen=True)
class Case:
    """One kind of turn.

    `scenario` is what the simulator is told to do. An answer with `words` is whole.
    """

    name: str
    scenario: str
    outcome: Outcome = "whole"
    words: str = LAST_WORDS
    is_plain: bool = False
    """Whether an API client asks, who has no chat and leaves instead of stopping."""
    is_background: bool = False
    """Whether a model answers that goes on at OpenAI."""
    body: Json = field(default_factory=dict)

    @property
    def question(self) -> str:
        """What is typed."""
        return f"sim:{self.scenario} What do you say to this?"


def _calling(function: str) -> Json:
    """Return the fields with which the model has to call a function."""
    choice = {"type": "function", "function": {"name": function}}
    return {"tool_ids": ["toolkit"], "tool_choice": choice}


CASES = (
    Case("chat", "chat"),
    Case("long answer", "long,deltas=400,delay=4", words="word399"),
    Case("slow drip", "slow,deltas=60,chunks=7", words="word59"),
    Case("broken up anywhere", "chat,chunks=random,crlf,comments,keepalive=5"),
    Case("429 once", "chat,status=429,times=1,retry-after-ms=50"),
    Case("503 once", "chat,status=503,times=1,retry-after-ms=50"),
    Case("tool", "tool", words=TOOL_WORDS, body=_calling("get_weather")),
    Case("five tools", "five-calls", words=TOOL_WORDS, body=_calling("get_weather")),
    Case(
        "failing tool",
        "tool",
        words="broken_weather failed",
        body=_calling("broken_weather"),
    ),
    Case("plain client", "chat", is_plain=True),
    Case("dropped, fetched again", "chat,drop=60", is_background=True),
    Case("429", "chat,status=429", "failed"),
    Case("500", "chat,status=500", "failed"),
    Case("page with 502", "html-error", "failed"),
    Case("cut", "cut", "failed"),
    Case("cut in a call", "tool-cut", "failed", body={"tool_ids": ["toolkit"]}),
    Case("stalled", "stall", "failed"),
    Case("failed", "failed", "failed"),
    Case("stopped in the text", "slow,deltas=400", "stopped"),
    Case("stopped in a silence", "stall", "stopped"),
    Case("stopped before a retry", "chat,status=503,retry-after=50", "stopped"),
    Case("stopped in a tool", "tool", "stopped", body=_calling("slow_weather")),
    Case("stopped in the background", "slow,deltas=400", "stopped", is_background=True),
    Case("plain client leaves", "slow,deltas=400", "stopped", is_plain=True),
)


@dataclass(frozen=True)
class Seen:
    """What a person saw of one turn; `error` is the text of the red box."""

    ended: bool
    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class Asked:
    """A turn that was asked; `problem` says what was not as its case has it."""

    case: Case
    problem: str


def problem_of(case: Case, seen: Seen) -> str:
    """Say what is wrong with a turn; empty if it ended as its case says."""
    if not seen.ended:
        return "it did not end"
    if case.outcome == "failed":
        return "" if seen.error else "no message tells of the fault"
    if seen.error:
        return seen.error
    if case.outcome == "whole" and case.words not in seen.text:
        return f"not whole: ...{seen.text[-80:]!r}"
    return ""


@dataclass
class Person:
    """Somebody with an account, a tab, and a chat."""

    tab: Tab
    model: str
    background_model: str
    doors: asyncio.Semaphore
    """Open WebUI's SQLite takes only a few new turns at once."""
    chance: random.Random
    chat_id: str | None = None
    turns: int = 0

    async def ask_each(self, cases: Sequence[Case]) -> list[Asked]:
        """Ask one after the other, with pauses."""
        return [await self._ask(case) for case in cases]

    async def _ask(self, case: Case) -> Asked:
        await asyncio.sleep(self.chance.uniform(0, MAX_PAUSE))
        try:
            if case.is_plain:
                seen = await self._ask_as_client(case)
            else:
                seen = await self._ask_in_chat(case)
        except Exception as error:  # whatever it is, it is what came of this turn
            return Asked(case, f"{type(error).__name__}: {error}")
        return Asked(case, problem_of(case, seen))

    async def _ask_in_chat(self, case: Case) -> Seen:
        if self.turns % CHAT_TURNS == 0:
            self.chat_id = None
        self.turns += 1
        turn = await self._begin(case)
        self.chat_id = turn.chat_id
        if case.outcome == "stopped":
            await asyncio.sleep(self._stop_moment())
            await self.tab.stop(turn)
        ended = await _happens(turn.finished.wait(), TURN_TIMEOUT)
        if not ended:
            await self.tab.stop(turn)
        await self.tab.settle(turn, TURN_TIMEOUT)
        self.tab.turns.clear()  # nobody looks at the events again
        self.tab.stray.clear()
        error = turn.error or {}
        return Seen(ended, turn.text, str(error.get("message") or ""))

    async def _begin(self, case: Case) -> Turn:
        model = self.background_model if case.is_background else self.model
        async with self.doors:
            return await self.tab.begin(
                model, case.question, chat_id=self.chat_id, body=case.body
            )

    async def _ask_as_client(self, case: Case) -> Seen:
        """Read a stream over plain HTTP, or leave in the middle of it."""
        messages = [{"role": "user", "content": case.question}]
        chunks = self.tab.user.chunks(self.model, messages)
        leaves = case.outcome == "stopped"
        patience = self._stop_moment() if leaves else TURN_TIMEOUT
        texts: list[str] = []
        ended = await _happens(_collect(chunks, texts), patience)
        return Seen(ended or leaves, "".join(texts))

    def _stop_moment(self) -> float:
        """Return the seconds after which somebody stops."""
        return self.chance.uniform(0.1, LATEST_STOP)


async def _happens(what: Awaitable[object], seconds: float) -> bool:
    """Wait for something; say whether it happened in time."""
    try:
        async with asyncio.timeout(seconds):
            await what
    except TimeoutError:
        return False
    return True


async def _collect(chunks: AsyncIterator[Json], texts: list[str]) -> None:
    """Add the text of each chunk; a cancellation closes the connection."""
    async for chunk in chunks:
        for choice in chunk.get("choices", []):
            texts.append(choice["delta"].get("content") or "")
