"""Many runs in one chat at the same moment, and what each of them left there."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.sent import answered, stored_value, stripped
from simulator import RecordedRequest, Simulator

AT_ONCE = 10
TOGETHER = f"sim:chat,together={AT_ONCE}"  # no answer begins before the last is asked


@dataclass(frozen=True)
class Crowd:
    """`AT_ONCE` answers in one chat, asked from several tabs of one person."""

    tabs: Sequence[Tab]
    models: Sequence[str]  # each under a name of its own at the API
    simulator: Simulator

    async def asks_after(self, first: Turn) -> list[Turn]:
        """Write messages after one answer, and put each of them to every model."""
        count = AT_ONCE // len(self.models)
        asked = [
            self._tab(number).begin_each(
                self.models,
                f"{TOGETHER} question {number}",
                chat_id=first.chat_id,
                parent_id=first.message_id,
            )
            for number in range(count)
        ]
        groups = await asyncio.gather(*asked)
        return await self._ended([turn for group in groups for turn in group])

    async def goes_on(self, turns: Sequence[Turn]) -> list[Turn]:
        """Go on after each of the answers, in a tab that has not seen it."""
        asked = [
            self._tab(number // len(self.models) + 1).begin(
                self.models[number % len(self.models)],
                f"{TOGETHER} after {turn.message_id}",
                chat_id=turn.chat_id,
                parent_id=turn.message_id,
            )
            for number, turn in enumerate(turns)
        ]
        return await self._ended(await asyncio.gather(*asked))

    async def lost(self, turns: Sequence[Turn]) -> list[str]:
        chat = await self.tabs[0].user.chat(turns[0].chat_id)
        values = {t.message_id: stored_value(chat, t.message_id) for t in turns}
        return [id for id, value in values.items() if not _has_reasoning(value)]

    def forgotten(self, turns: Sequence[Turn]) -> list[str]:
        """The answers whose next turn did not begin with all they sent and received."""
        asked = answered(self.simulator)
        return [t.message_id for t in turns if not _is_continued(t.message_id, asked)]

    def _tab(self, number: int) -> Tab:
        return self.tabs[number % len(self.tabs)]

    async def _ended(self, turns: list[Turn]) -> list[Turn]:
        async with asyncio.timeout(300):
            for turn in turns:
                await turn.finished.wait()
        for tab in self.tabs:
            await tab.settle(turns[0])
        return turns


def _has_reasoning(value: Json) -> bool:
    records = value.get("items", {}).values()
    return any("encrypted_content" in str(record["payload"]) for record in records)


def _is_continued(message_id: str, asked: Sequence[RecordedRequest]) -> bool:
    """Whether the request after an answer begins with its own and what it received."""
    [after] = [r for r in asked if f"after {message_id}" in str(r.body["input"][-1])]
    same = [r for r in asked if r.body["model"] == after.body["model"]]
    return after.body["input"][:-1] in [
        [*r.body["input"], *map(stripped, (r.response or {})["output"])] for r in same
    ]
