"""What of a run is kept, and where its marker stands.

Items that the chat does not show (reasoning, the bytes of a call, the `phase` of a
message) wait until text follows; then one record holds them, and its marker stands at
the head of that text. Reasoning that nothing followed is not kept: given back alone it
would be refused.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter

from openai_responses.items import (
    Item,
    has_encrypted_reasoning,
    is_call,
    item_type,
    message_text,
    replayed,
)
from openai_responses.origin import Origin
from openai_responses.run_events import Grew, ItemEnded, ItemStarted, RunEvent
from owui_chat.stored import Record

_UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part whose text is the one that follows the marker."""

_EARLIER = -1
"""The index of items of earlier rounds, in front of all others."""


@dataclass(frozen=True, slots=True)
class Author:
    """What every record of one message has in common."""

    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool


class Keeping:
    """Collects the records of one message while its run goes on."""

    def __init__(
        self,
        author: Author,
        new_record: Callable[[], tuple[str, int]],
        pending: Iterable[Item] = (),
    ) -> None:
        """Begin with what earlier rounds of the run left `pending`.

        `new_record` gives the id and the time of a record when one is made.
        """
        self._pending = [(_EARLIER, item) for item in pending]
        self._author = author
        self._new_record = new_record
        self._messages: dict[int, Item] = {}
        self._records: dict[int, Record] = {}
        self._after_message = False

    @property
    def pending(self) -> list[Item]:
        """What still waits for its marker, in the order of the wire."""
        return [item for _, item in self._pending]

    def feed(self, event: RunEvent) -> Record | None:
        """Take an event; return a record that has to be written before it is shown.

        The record of a message comes with the first growth of its text, and again,
        changed, with its end when only the end told what has to be kept.
        """
        match event:
            case ItemStarted() if item_type(event.item) == "message":
                self._messages[event.index] = event.item
            case Grew() if event.index in self._messages:
                return self._begin(event.index, self._messages.pop(event.index))
            case ItemEnded() if item_type(event.item) == "message":
                self._messages.pop(event.index, None)
                self._after_message = True
                return self._amend(event.index, event.item)
            case ItemEnded():
                self._wait(event.index, event.item)
        return None

    def rest(self) -> Record | None:
        """Return a record of the calls that no text followed, at the run's end."""
        while self._pending and not is_call(self._pending[-1][1]):
            self._pending.pop()
        return self._record(()) if self._pending else None

    def _wait(self, index: int, item: Item) -> None:
        """Take an item to its place: parallel calls may end in another order."""
        reasoning = self._author.keeps_reasoning and has_encrypted_reasoning(item)
        if reasoning or (is_call(item) and item.get("status") != "incomplete"):
            self._pending.append((index, replayed(item)))
            self._pending.sort(key=itemgetter(0))

    def _begin(self, index: int, item: Item) -> Record | None:
        if not (self._pending or item.get("phase") or self._after_message):
            return None
        # Without a phase the text itself is all there is to know of the message.
        plain = self._pending and not item.get("phase")
        stub = {**replayed(item), "type": "message", "content": [_UNSHOWN_TEXT]}
        record = self._record(() if plain else (stub,))
        self._records[index] = record
        return record

    def _amend(self, index: int, item: Item) -> Record | None:
        """Return the record of an ended message, if it is not what was written."""
        record = self._records.pop(index, None)
        if record is None:
            return None
        before = tuple(i for i in record.payload if item_type(i) != "message")
        kept = _without_shown_text(item)
        is_plain = not kept.get("phase") and kept.get("content") == [_UNSHOWN_TEXT]
        payload = before if before and is_plain else (*before, kept)
        return None if payload == record.payload else replace(record, payload=payload)

    def _record(self, message: tuple[Item, ...]) -> Record:
        ulid, created_at = self._new_record()
        payload = (*self.pending, *message)
        self._pending = []
        author = self._author
        return Record(
            ulid, author.model, created_at, payload, author.message_id, author.origin
        )


def _without_shown_text(item: Item) -> Item:
    """Return a message as it is kept: without its text where the chat gives it back.

    The host strips the ends of texts, and knows nothing of refusals or of several
    parts; such a message is kept whole.
    """
    kept = {**replayed(item), "type": "message"}  # the short form has no type
    text, content = message_text(item), kept.get("content")
    parts = content if isinstance(content, list) else []
    one_text = [part.get("type") for part in parts] == ["output_text"]
    if not one_text or not text or text != text.strip():
        return kept
    return {**kept, "content": [{k: v for k, v in parts[0].items() if k != "text"}]}
