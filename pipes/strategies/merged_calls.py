"""Answers in which each call occurs once (R12).

A call without a name is dropped; one without an id has got one in the engine
(loop/response.py). A call that arrives twice counts once, in its last form, at its
first place.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from openai_responses.items import Item, is_call
from openai_responses.loop.events import ModelAnswer, RunEvent
from openai_responses.loop.run import Provider
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent


class MergingProvider:
    """A provider whose answers have each call once."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.paused = provider.paused

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, without the calls that are dropped, then the answer."""
        calls = _MergedCalls()
        async with aclosing(self._provider.generate(request, first_index)) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    yield part._replace(items=calls.merge(part.items))
                    continue
                for event in calls.check(part):
                    yield event


class _MergedCalls:
    """The calls of one answer, by their ids."""

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}
        self._dropped: set[int] = set()

    def check(self, event: RunEvent) -> list[RunEvent]:
        """Return the events to pass on, none for one of a dropped call."""
        if not isinstance(event, ItemEvent):
            return [event]
        match event:
            case ItemAdded() if is_call(event.item):
                call_id = str(event.item.get("call_id"))
                if event.item.get("name") and call_id not in self._indexes:
                    self._indexes[call_id] = event.output_index
                    return [event]
                self._dropped.add(event.output_index)
                return []
            case ItemDone() if is_call(event.item):
                index = self._find(event.item)
                if index is not None:
                    return [event._replace(output_index=index)]
                if event.item.get("name"):
                    # Some servers name a call at its end only.
                    self._indexes[str(event.item.get("call_id"))] = event.output_index
                    self._dropped.discard(event.output_index)
                    return [ItemAdded(event.output_index, event.item), event]
                return []
        return [] if event.output_index in self._dropped else [event]

    def merge(self, items: Sequence[tuple[int, Item]]) -> tuple[tuple[int, Item], ...]:
        """Return the items of the answer, each call once."""
        merged: dict[int, Item] = {}
        for index, item in items:
            first_index = self._find(item) if is_call(item) else index
            if first_index is not None:
                merged[first_index] = item
        return tuple(sorted(merged.items()))

    def _find(self, call: Item) -> int | None:
        """Return the index under which a call is shown; None if it is dropped."""
        if not call.get("name"):
            return None
        return self._indexes.get(str(call.get("call_id")))
