"""The output items that the host holds of one message, and the events that make them.

The host reduces such events to its items (utils/response.py:381). Each has a place that
counts over all turns, and an empty `choices` delta for stream filters that look for one
(open-webui.md §14).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses.items import Item
from owui_chat.cards import begun_card, message_card
from owui_chat.host_chunks import Chunk

_DELTA_TYPES: Mapping[str, str] = {
    "text": "output_text.delta",
    "refusal": "output_text.delta",
    "summary": "reasoning_summary_text.delta",
    "reasoning": "reasoning_text.delta",
    "arguments": "function_call_arguments.delta",
    "code": "code.delta",
}


class ShownItems:
    """Makes the events; `items` and `files` hold what the host has stored so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.items: list[Item] = []
        self.files: list[Item] = []

    def begin(self, item: Item) -> Chunk:
        """Return the event of a new item, whose place is the last one."""
        self.items.append(item)
        return _native("output_item.added", len(self.items) - 1, item=item)

    def end(self, place: int, item: Item) -> Chunk:
        """Return the event that puts `item` in the place of what began there."""
        self.items[place] = item
        return _native("output_item.done", place, item=item)

    def add(self, item: Item) -> Iterator[Chunk]:
        """Yield the events of an item that is whole at once."""
        yield self.begin(item)
        yield self.end(len(self.items) - 1, item)

    def add_marker(self, marker: str) -> Iterator[Chunk]:
        """Yield a message of its own for items that no text followed."""
        place = len(self.items)
        item = message_card({"id": f"msg_kept_{place}"}, marker)
        yield self.begin(begun_card(item))
        yield self.end(place, item)

    def grow(self, place: int, kind: str, text: str) -> Chunk:
        """Return the event of more text; `kind` is that of `events.Delta`."""
        part = "summary_index" if kind == "summary" else "content_index"
        item_id = self.items[place].get("id")
        grown = {"item_id": item_id, part: 0, "delta": text}
        return _native(_DELTA_TYPES[kind], place, **grown)


def _native(kind: str, place: int, **fields: Any) -> Chunk:
    head = {"type": f"response.{kind}", "output_index": place}
    return {**head, **fields, "choices": [{"index": 0, "delta": {}}]}
