"""The events of one answer, so that each call in it is one that can be answered.

A call without an id or a name is left out, one that comes twice counts once, as it was
the last time. Calls that may have to wait for a person are held back until the answer
is whole: the host would run what it sees.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from openai_responses.items import Item, is_call
from openai_responses.loop.events import (
    Cited,
    Grew,
    ItemEnded,
    ItemStarted,
    Pictured,
    ResponseDone,
    RunEvent,
    ToolOutput,
)


class SoundEvents:
    """Passes on the events of one answer, its items counted from `first` on.

    `items` are those that ended, under their indexes; `next_index` is free.
    """

    def __init__(
        self, first: int, shown_name: Callable[[str], str], *, holds_calls: bool
    ) -> None:
        """Show calls under their tools' own names."""
        self.items: dict[int, Item] = {}
        self.next_index = first
        self.held: list[RunEvent] = []
        self._first = first
        self._shown_name = shown_name
        self._holds = holds_calls
        self._dropped: set[int] = set()
        self._calls: dict[str, int] = {}

    def take(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield what is passed on of an event."""
        match event:
            case ItemStarted() | Grew() | Cited() | Pictured() | ItemEnded():
                moved = replace(event, index=self._first + event.index)
                self.next_index = max(self.next_index, moved.index + 1)
                sound = self._sound(moved)
                if self.held or (self._holds and self._is_call(sound)):
                    self.held += [sound] if sound else []
                elif sound:
                    yield sound
            case ToolOutput():
                moved_answer = replace(event, index=self._first + event.index)
                self.next_index = max(self.next_index, moved_answer.index + 1)
                yield moved_answer
            case ResponseDone() if self.held:
                self.held.append(event)
            case _:
                yield event

    def without_calls(self) -> list[RunEvent]:
        """Return what was held back, the calls left out."""
        calls = {index for index, item in self.items.items() if is_call(item)}
        return [
            event
            for event in self.held
            if not isinstance(event, ItemStarted | Grew | Cited | Pictured | ItemEnded)
            or event.index not in calls
        ]

    def _sound(
        self, event: ItemStarted | Grew | Cited | Pictured | ItemEnded
    ) -> RunEvent | None:
        if isinstance(event, ItemStarted) and is_call(event.item):
            return self._begin_call(event)
        if not isinstance(event, ItemEnded):
            return None if event.index in self._dropped else event
        if not is_call(event.item):
            self.items[event.index] = event.item
            return event
        place = self._calls.get(str(event.item.get("call_id")))
        if place is None or not event.item.get("name"):
            return None
        self.items[place] = event.item
        return replace(event, index=place, item=self._shown(event.item))

    def _begin_call(self, event: ItemStarted) -> RunEvent | None:
        call_id = event.item.get("call_id")
        if call_id and event.item.get("name") and call_id not in self._calls:
            self._calls[str(call_id)] = event.index
            return replace(event, item=self._shown(event.item))
        self._dropped.add(event.index)
        return None

    def _shown(self, call: Item) -> Item:
        return {**call, "name": self._shown_name(str(call["name"]))}

    def _is_call(self, event: RunEvent | None) -> bool:
        return isinstance(event, ItemStarted) and is_call(event.item)
