"""Decides what of a run is recorded, and where its marker stands.

Items that the chat does not show (reasoning, the bytes of a call, searches, the `phase`
of a message) wait until text follows. Then one record holds them, and its marker stands
at the beginning of that text, or behind commentary, which the record holds whole.
Reasoning that nothing followed is not stored, because the API would refuse it alone.

In a chat without a row each finished response is put into the host's
`reasoning_details`, the only place that such a chat has (docs/reference/open-webui.md,
"Reasoning details").
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from openai_responses.items import (
    Item,
    has_encrypted_reasoning,
    is_call,
    is_call_output,
    is_commentary,
    is_compaction,
    is_kept_hosted,
    is_reasoning,
    item_type,
    message_text,
)
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent
from openai_responses.requests.replay import Origin, replay_items, strip_for_replay
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.citations import Citations
from owui_chat.storage.details_carrier import write_details
from owui_chat.storage.images import is_stored_image, stored_item
from owui_chat.storage.output_carrier import (
    TurnDetails,
    closing_commentary,
    returned_texts,
)
from owui_chat.storage.records import Record, text_digest

_UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part without text; its text is the one behind the marker."""

_EARLIER = -1
"""The index of items of earlier rounds, which come before all others."""


@dataclass(frozen=True, slots=True)
class RecordScope:
    """The common fields of all records of one message.

    `cites` says that texts may be shown differently from what the model wrote.
    """

    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool
    cites: bool = False


class Keeping:
    """Collects the records of one message during its run."""

    def __init__(
        self,
        author: RecordScope,
        new_record: Callable[[], tuple[str, int]],
        pending: Iterable[Item] = (),
        known: Iterable[str] = (),
    ) -> None:
        """Begin with the items that earlier rounds of the run left `pending`.

        `new_record` gives the id and the time of a new record. `known` are the keys of
        the sources that the page already has.
        """
        self._citations = Citations(known)
        self._pending = [(_EARLIER, item) for item in pending]
        self._author = author
        self._new_record = new_record
        self._messages: dict[int, Item] = {}
        self._records: dict[int, Record] = {}
        self._after_message = False
        self._remarks: set[int] = set()
        self._last_remark: tuple[ItemDone, Record] | None = None

    @property
    def pending(self) -> list[Item]:
        """The items that still wait for a marker, in the order of the wire."""
        return [item for _, item in self._pending]

    @property
    def cited(self) -> tuple[str, ...]:
        """The keys of the sources that the message has so far."""
        return self._citations.keys

    def feed(self, event: RunEvent) -> Record | None:
        """Take an event; return a record that must be written before the event is
        shown.

        The record of a message comes with the first growth of its text. It comes again,
        changed, at the end of the message if only the end told what to store. The
        record of commentary comes at its end.
        """
        self._citations.feed(event)
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._remarks.add(event.output_index)
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = event.item
            case TextDelta() if event.output_index in self._messages:
                return self._begin(
                    event.output_index, self._messages.pop(event.output_index)
                )
            case ItemDone() if event.output_index in self._remarks:
                return self._remark(event)
            case ItemDone() if item_type(event.item) == "message":
                self._messages.pop(event.output_index, None)
                self._after_message = True
                return self._amend(event, self._citations.shown_text(event))
            case ItemDone():
                self._wait(event.output_index, stored_item(event))
        return None

    def closing(self, output: Sequence[Item]) -> Record | None:
        """Return the record of the commentary with which a run ended, if it did.

        The chat shows its text as the answer.
        """
        if self._last_remark is None:
            return None
        ended, record = self._last_remark
        if ended.item != closing_commentary(output):
            return None
        return replace(record, shown=text_digest(self._citations.shown_text(ended)))

    def rest(self) -> Record | None:
        """Return a record of the items that no text followed, at the end of the run."""
        while self._pending and is_reasoning(self._pending[-1][1]):
            self._pending.pop()
        return self._record(()) if self._pending else None

    def _wait(self, index: int, item: Item) -> None:
        """Insert an item at its place; parallel calls may end in another order."""
        if self._is_kept(item):
            # The chat returns what a remote server said: its card has it.
            told = [one for one in replay_items(item) if not is_call_output(one)]
            self._pending += [(index, one) for one in told]
            self._pending.sort(key=itemgetter(0))

    def _is_kept(self, item: Item) -> bool:
        if has_encrypted_reasoning(item) or is_compaction(item):
            return self._author.keeps_reasoning
        whole_call = is_call(item) and item.get("status") != "incomplete"
        return whole_call or is_kept_hosted(item) or is_stored_image(item)

    def _begin(self, index: int, item: Item) -> Record | None:
        is_marked = self._author.cites or item.get("phase") or self._after_message
        if not (self._pending or is_marked):
            return None
        # Without a phase, the text is everything that a message has.
        plain = self._pending and not item.get("phase")
        stub = {**strip_for_replay(item), "type": "message", "content": [_UNSHOWN_TEXT]}
        record = self._record(() if plain else (stub,))
        self._records[index] = record
        return record

    def _amend(self, ended: ItemDone, shown: str) -> Record | None:
        """Return the record of an ended message, if it is not what was written."""
        record = self._records.pop(ended.output_index, None)
        if record is None:
            return None
        before = tuple(i for i in record.payload if item_type(i) != "message")
        if shown != message_text(ended.item):
            kept = {**strip_for_replay(ended.item), "type": "message"}
            digest = text_digest(shown)
            return replace(record, payload=(*before, kept), shown=digest)
        kept = _without_shown_text(ended.item)
        is_plain = not kept.get("phase") and kept.get("content") == [_UNSHOWN_TEXT]
        payload = before if before and is_plain else (*before, kept)
        return None if payload == record.payload else replace(record, payload=payload)

    def _remark(self, ended: ItemDone) -> Record | None:
        """Return the record of a remark, whose text the host does not give back."""
        if not message_text(ended.item).strip():
            return None
        self._after_message = True
        record = self._record(({**strip_for_replay(ended.item), "type": "message"},))
        self._last_remark = (ended, record)
        return record

    def _record(self, message: tuple[Item, ...]) -> Record:
        ulid, created_at = self._new_record()
        payload = (*self.pending, *message)
        self._pending = []
        author = self._author
        return Record(
            ulid, author.model, created_at, payload, author.message_id, author.origin
        )


def _without_shown_text(item: Item) -> Item:
    """Return a message as it is stored: without its text, if the chat returns it.

    The host strips the ends of texts and does not know refusals or several parts; such
    a message is stored whole.
    """
    kept = {**strip_for_replay(item), "type": "message"}  # the short form has no type
    text, content = message_text(item), kept.get("content")
    parts = content if isinstance(content, list) else []
    one_text = [part.get("type") for part in parts] == ["output_text"]
    if not one_text or not text or text != text.strip():
        return kept
    return {**kept, "content": [{k: v for k, v in parts[0].items() if k != "text"}]}


class Carrying:
    """Collects the items of one response after the other."""

    def __init__(
        self, origin: Origin, new_name: Callable[[], str], known: Iterable[str] = ()
    ) -> None:
        """Take the origin of the items, and names that distinguish responses.

        `known` are the keys of the sources that the page already has.
        """
        self._origin = origin
        self._new_name = new_name
        self._citations = Citations(known)
        self._items: dict[int, tuple[Item, str]] = {}

    def feed(self, event: RunEvent) -> TurnDetails | None:
        """Take an event; at the end of a response return its entries."""
        self._citations.feed(event)
        match event:
            case ItemDone():
                is_message = item_type(event.item) == "message"
                shown = self._citations.shown_text(event) if is_message else ""
                self._items[event.output_index] = (stored_item(event), shown)
            case ResponseDone() | RunDone() if self._items:
                pairs = [self._items[index] for index in sorted(self._items)]
                self._items = {}
                entries = returned_texts(pairs)
                name = self._new_name()
                return TurnDetails(write_details(name, entries, self._origin, {}))
        return None
