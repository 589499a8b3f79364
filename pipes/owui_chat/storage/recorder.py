"""What of a run is recorded, and where its marker stands.

What of a run is kept, and where its marker stands.

Items that the chat does not show (reasoning, the bytes of a call, searches, the `phase`
of a message) wait until text follows; then one record holds them, and its marker stands
at the head of that text, or behind a remark in passing, which the record holds whole.
Reasoning that nothing followed is not kept: given back alone it would be refused.

The turns of a run as they come to an end, for the host's `reasoning_details`.

A chat without a row keeps nothing else (open-webui.md §5).
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
"""A part whose text is the one that follows the marker."""

_EARLIER = -1
"""The index of items of earlier rounds, in front of all others."""


@dataclass(frozen=True, slots=True)
class RecordScope:
    """What every record of one message has in common.

    `cites` says that texts may be shown otherwise than the model wrote them.
    """

    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool
    cites: bool = False


class Keeping:
    """Collects the records of one message while its run goes on."""

    def __init__(
        self,
        author: RecordScope,
        new_record: Callable[[], tuple[str, int]],
        pending: Iterable[Item] = (),
        known: Iterable[str] = (),
    ) -> None:
        """Begin with what earlier rounds of the run left `pending`.

        `new_record` gives the id and the time of a record when one is made; `known`
        are the keys of the sources that the page has already.
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
        """What still waits for its marker, in the order of the wire."""
        return [item for _, item in self._pending]

    @property
    def cited(self) -> tuple[str, ...]:
        """The keys of the sources that the message has so far."""
        return self._citations.keys

    def feed(self, event: RunEvent) -> Record | None:
        """Take an event; return a record that has to be written before it is shown.

        The record of a message comes with the first growth of its text, and again,
        changed, with its end when only the end told what has to be kept; that of a
        remark comes with its end.
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
        """Return the record of the remark with which a run ended, if it did.

        The chat shows its text as the answer.
        """
        if self._last_remark is None:
            return None
        ended, record = self._last_remark
        if ended.item != closing_commentary(output):
            return None
        return replace(record, shown=text_digest(self._citations.shown_text(ended)))

    def rest(self) -> Record | None:
        """Return a record of what no text followed, at the run's end."""
        while self._pending and is_reasoning(self._pending[-1][1]):
            self._pending.pop()
        return self._record(()) if self._pending else None

    def _wait(self, index: int, item: Item) -> None:
        """Take an item to its place: parallel calls may end in another order."""
        if self._is_kept(item):
            # What a remote server said the chat gives back: its card has it.
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
        # Without a phase the text itself is all there is to know of the message.
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
    """Return a message as it is kept: without its text where the chat gives it back.

    The host strips the ends of texts, and knows nothing of refusals or of several
    parts; such a message is kept whole.
    """
    kept = {**strip_for_replay(item), "type": "message"}  # the short form has no type
    text, content = message_text(item), kept.get("content")
    parts = content if isinstance(content, list) else []
    one_text = [part.get("type") for part in parts] == ["output_text"]
    if not one_text or not text or text != text.strip():
        return kept
    return {**kept, "content": [{k: v for k, v in parts[0].items() if k != "text"}]}


class Carrying:
    """Collects the items of one turn after another."""

    def __init__(
        self, origin: Origin, new_name: Callable[[], str], known: Iterable[str] = ()
    ) -> None:
        """Take who makes the items, and names that tell turns apart.

        `known` are the keys of the sources that the page has already.
        """
        self._origin = origin
        self._new_name = new_name
        self._citations = Citations(known)
        self._items: dict[int, tuple[Item, str]] = {}

    def feed(self, event: RunEvent) -> TurnDetails | None:
        """Take an event; return what the turn that it ends came to."""
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
