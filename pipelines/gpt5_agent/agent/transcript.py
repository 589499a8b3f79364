"""The items of one run: checked as they arrive, and kept as history for the next request.

A call without an id or a name is dropped. A call that arrives twice counts once, in its
last form. Calls that may need approval are held back until the answer is complete,
because the host would run every call that it sees.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from openai_responses.items import Item, is_call, since_compaction
from openai_responses.loop.events import ResponseDone, RunEvent, ToolOutput
from openai_responses.loop.tools import ToolResult, output_item
from openai_responses.requests.replay import replay_output
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent


class AnswerEvents:
    """Checks and passes on the events of one answer; its indexes start at `first`.

    `items` are the completed ones by index; `next_index` is free.
    """

    def __init__(
        self, first: int, shown_name: Callable[[str], str], *, holds_calls: bool
    ) -> None:
        """Calls are shown under the names that `shown_name` gives."""
        self.items: dict[int, Item] = {}
        self.next_index = first
        self.held_events: list[RunEvent] = []
        self._first = first
        self._original_name = shown_name
        self._holds_calls = holds_calls
        self._dropped: set[int] = set()
        self._calls: dict[str, int] = {}

    def process(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield what is passed on of an event."""
        if isinstance(event, ItemEvent):
            yield from self._process_item_event(event)
        elif isinstance(event, ResponseDone) and self.held_events:
            self.held_events.append(event)
        else:
            yield event

    def held_without_calls(self) -> list[RunEvent]:
        """Return the held events without those of calls."""
        calls = {index for index, item in self.items.items() if is_call(item)}
        return [
            event
            for event in self.held_events
            if not (isinstance(event, ItemEvent) and event.output_index in calls)
        ]

    def _process_item_event(self, event: ItemEvent) -> Iterator[RunEvent]:
        """Yield an event of an item under its index in the run, or hold it back."""
        index = self._first + event.output_index
        self.next_index = max(self.next_index, index + 1)
        checked = self._check_event(event._replace(output_index=index))
        if checked is None:
            return
        begins_call = isinstance(checked, ItemAdded) and is_call(checked.item)
        if self.held_events or (self._holds_calls and begins_call):
            self.held_events.append(checked)
        else:
            yield checked

    def _check_event(self, event: ItemEvent) -> ItemEvent | None:
        """Return what is passed on of an event; None for one of a dropped call."""
        if isinstance(event, ItemAdded) and is_call(event.item):
            return self._begin_call(event)
        if not isinstance(event, ItemDone):
            return None if event.output_index in self._dropped else event
        if not is_call(event.item):
            self.items[event.output_index] = event.item
            return event
        index = self._calls.get(str(event.item.get("call_id")))
        if index is None or not event.item.get("name"):
            return None
        self.items[index] = event.item
        return event._replace(output_index=index, item=self._rename_call(event.item))

    def _begin_call(self, event: ItemAdded) -> ItemAdded | None:
        """Return the event of a new call; None for one that is dropped."""
        call_id = event.item.get("call_id")
        if call_id and event.item.get("name") and call_id not in self._calls:
            self._calls[str(call_id)] = event.output_index
            return event._replace(item=self._rename_call(event.item))
        self._dropped.add(event.output_index)
        return None

    def _rename_call(self, call: Item) -> Item:
        """Return a call under the name that is shown."""
        return {**call, "name": self._original_name(str(call["name"]))}


class Transcript:
    """The history of a run: answers of the model and outputs of calls."""

    def __init__(self, history: Iterable[Item]) -> None:
        """Begin with the history of the chat."""
        self.history = list(history)
        self.output: list[Item] = []
        self.next_index = 0

    def add_answer(self, items: Sequence[Item]) -> None:
        """Add an answer of the model."""
        self.output += items
        received = replay_output(items, with_reasoning=True)
        self.history = since_compaction([*self.history, *received])

    def add_output(self, call: Item, result: ToolResult) -> ToolOutput:
        """Add the output of a call; return its event."""
        item = output_item(call, result)
        self.output.append(item)
        self.history.append(item)
        return ToolOutput(self._take_index(), item, result.failed, result.card)

    def build_call_events(self, call: Item) -> tuple[ItemAdded, ItemDone]:
        """Return the events of a call that no answer of this run contained."""
        index = self._take_index()
        return ItemAdded(index, call), ItemDone(index, call)

    def _take_index(self) -> int:
        """Return a free index."""
        index = self.next_index
        self.next_index += 1
        return index
