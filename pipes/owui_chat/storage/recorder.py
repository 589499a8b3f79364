"""Decides what of a run is recorded, and where its marker is.

Items that the chat does not show (reasoning, the bytes of a call, searches, the `phase`
of a message) wait until text follows. Then one record holds them, and its marker is
at the beginning of that text, or after commentary, which the record holds whole.
Reasoning that nothing followed is not stored, because the API would refuse it alone. In
the host's output, a round of calls is recorded once all of them have been made.

In a chat without a row each finished response is put into the host's
`reasoning_details`, the only place that such a chat has (docs/reference/open-webui.md,
"Reasoning details").
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Literal, NamedTuple

from openai_responses.items import (
    CONFIGURATION,
    Item,
    has_encrypted_reasoning,
    has_plain_reasoning,
    is_call,
    is_call_output,
    is_commentary,
    is_compaction,
    is_kept_hosted,
    is_reasoning,
    item_type,
    message_text,
    open_calls,
)
from openai_responses.loop.events import (
    GIVEN_UP,
    HiddenMessage,
    ResponseDone,
    RunDone,
    ToolOutput,
)
from openai_responses.requests.replay import Origin, replay_items, strip_for_replay
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.answers import closing_commentary
from owui_chat.events import CitedEvent, Marker, TurnDetails
from owui_chat.storage.details_carrier import write_details
from owui_chat.storage.images import is_stored_image, stored_item
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import UNSHOWN_TEXT, Record, omit_shown_text, text_digest
from owui_chat.storage.shown_text import refer_to_shown, refers_to_shown
from owui_chat.storage.signature import Sign

Carrier = Literal["markers", "output", "details"]

_PLAIN_CALL = {"type", "call_id", "name", "arguments"}
"""The fields of a call of which the host's card has every one."""


class RecordScope(NamedTuple):
    """The common fields of all records of one message, and where they are stored."""

    message_id: str
    origin: Origin
    keeps_reasoning: bool
    cites: bool = False
    """Texts may be shown differently from what the model wrote."""
    carrier: Carrier = "markers"
    sign: Sign | None = None
    """Signs the details; None if there is no secret."""


class NewRecord(NamedTuple):
    """A record to write before the next events; it may replace one with the same id."""

    record: Record
    output_index: int | None
    """The item whose text follows the record, None for the end of the run."""


_RecorderEvent = CitedEvent | Marker | NewRecord


_NewId = Callable[[], str]
"""Gives a new record its id, a ULID."""


class DetailsRecorder:
    """Collects the responses of one message in a chat without a row."""

    def __init__(self, scope: RecordScope, new_id: _NewId) -> None:
        self._scope = scope
        self._new_id = new_id
        self._items: dict[int, tuple[Item, str]] = {}
        """Those of the current response with their shown texts, by output index."""

    def feed(self, event: CitedEvent) -> list[CitedEvent | TurnDetails]:
        """Return the event; in front of the end of a response come its details."""
        if isinstance(event, ItemDone):
            self._items[event.output_index] = (stored_item(event), event.shown)
        elif isinstance(event, HiddenMessage):
            self._items[event.output_index] = (event.item, "")
        elif isinstance(event, ResponseDone | RunDone) and self._items:
            pairs = [self._items[index] for index in sorted(self._items)]
            self._items = {}
            # Of commentary the host returns only the text of the closing one.
            closing = closing_commentary([item for item, _ in pairs])
            for number, (item, _) in enumerate(pairs):
                if is_commentary(item) and item != closing:
                    pairs[number] = (item, "")
            details = write_details(
                self._new_id(), pairs, self._scope.origin, {}, self._scope.sign
            )
            return [TurnDetails(details), event]
        return [event]


class Recorder:
    """Collects what is recorded of one message in a chat with a row."""

    def __init__(self, scope: RecordScope, new_id: _NewId) -> None:
        self._scope = scope
        self._new_id = new_id
        self._pending: list[tuple[int, Item]] = []
        """Items that wait for a record, in order, each with its output index."""
        self._messages: dict[int, Item] = {}
        """Messages whose text has not begun, by output index."""
        self._records: dict[int, Record] = {}
        """The records of messages, by output index, as they were at the beginning: a
        message can end twice (`loop/response.py`)."""
        self._ended: set[int] = set()
        """The output indexes of items that have waited for a record."""
        self._made_calls: set[object] = set()
        """The ids of calls whose outputs are there."""
        self._open_calls: set[object] = set()
        """The ids of calls that have waited for a record and have no output yet."""
        self._plain: dict[int, list[Item]] = {}
        """Plain reasoning since the last record, by output index."""
        self._unsealed: set[int] = set()
        """The output indexes of reasoning that ended without what the model can read."""
        self._followed: set[int] = set()
        """The output indexes of reasoning that was not sealed when a text followed."""
        self._marks_next = False
        """Whether the next message needs a record though nothing waits for one: after a
        message, because the host joins the texts of neighbors (utils/misc.py:408), and
        after the record of a round, which would have held it."""
        self._commentary: set[int] = set()
        """The output indexes of commentary."""
        self._last_commentary: tuple[ItemDone, Record] | None = None

    def feed(self, event: CitedEvent) -> list[_RecorderEvent]:
        """Return the event after the records and markers that precede it."""
        if isinstance(event, TextDelta) and event.output_index not in self._messages:
            return [event]
        return [*self._collect(event), event]

    def _collect(self, event: CitedEvent) -> Iterator[_RecorderEvent]:
        """Yield the records of an event, with their markers.

        The record of a message comes with its first delta, and again, changed, with its
        end if only the end shows what has to be stored. The record of commentary comes
        with its end.
        """
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._commentary.add(event.output_index)
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = event.item
            case TextDelta() if event.output_index in self._messages:
                item = self._messages.pop(event.output_index)
                self._followed |= self._unsealed
                yield from self._begin(event.output_index, item, event.kind)
            case ItemDone() if event.output_index in self._commentary:
                yield from self._add_commentary(event)
            case ItemDone() if item_type(event.item) == "message":
                self._messages.pop(event.output_index, None)
                self._marks_next = True
                yield from self._amend(event)
            case ItemDone() if event.output_index in self._records:
                # The text was a thought (loop/tagged_thoughts.py). Its record is empty
                # now: what it held waits for the text of the answer.
                record = self._records.pop(event.output_index)
                for item in record.payload:
                    if not _is_placeholder(item):
                        row = (event.output_index, item)
                        insort(self._pending, row, key=itemgetter(0))
                emptied = record._replace(payload=())
                yield NewRecord(emptied, event.output_index)
            case HiddenMessage():
                self._wait(event.output_index, [_stored_message(event.item)])
            case ItemDone(index, item) if _is_unsealed(item):
                self._unsealed.add(index)
                if has_plain_reasoning(item):
                    self._plain[index] = replay_items(item)
            case ItemDone(index) if index in self._followed and event.item != GIVEN_UP:
                return  # sealed last: after the text it has no place in later turns
            case ItemDone():
                self._wait(event.output_index, self._kept_rows(stored_item(event)))
                self._plain.pop(event.output_index, None)
                if event.item == GIVEN_UP:
                    # The next attempt may have another item in the place of a thought.
                    self._ended.discard(event.output_index)
            case ToolOutput():
                self._made_calls.add(event.item["call_id"])
                self._open_calls.discard(event.item["call_id"])
                if self._scope.carrier != "output" or self._open_calls:
                    return
                # Reasoning up to calls that have all been made does not wait for a text:
                # a Stop in a later round would lose it. What follows a call otherwise has
                # its place in front of a text.
                waiting = [item for _, item in self._pending]
                ends_round = waiting and (
                    is_call(waiting[-1]) or is_compaction(waiting[-1])
                )
                if ends_round and any(map(is_reasoning, waiting)):
                    self._marks_next = True
                    yield NewRecord(self._take_record(), None)
            case RunDone():
                yield from self._close(event)

    def _close(self, event: RunDone) -> Iterator[_RecorderEvent]:
        """Yield the records of the end: final commentary, and items without a text.

        The chat shows the text of final commentary as the answer.
        """
        if self._last_commentary:
            ended, record = self._last_commentary
            if ended.item == closing_commentary(event.output):
                message = refer_to_shown(record.payload[-1], ended.shown)
                payload = (*record.payload[:-1], message)
                shown = text_digest(ended.shown)
                yield NewRecord(record._replace(payload=payload, shown=shown), None)
        if self._scope.keeps_reasoning and open_calls(event.output):
            # The host makes them and asks again, and then this reasoning has to go back.
            for index, rows in self._plain.items():
                self._wait(index, rows)
        # The API would refuse reasoning that nothing follows.
        while self._pending and is_reasoning(self._pending[-1][1]):
            self._pending.pop()
        if self._pending:
            record = self._take_record()
            if item_type(record.payload[-1]) == "message":
                # A hidden one is the model's own form of no text at all.
                record = record._replace(shown=text_digest(""))
            yield from self._with_marker(record, None)

    def _wait(self, index: int, rows: Iterable[Item]) -> None:
        """Insert an item at its place; parallel calls may end in another order.

        One that ends again takes the place of the shorter one.
        """
        if index in self._ended:
            others = [row for row in self._pending if row[0] != index]
            if len(others) == len(self._pending):
                return  # its record has been written
            shorter = [item for number, item in self._pending if number == index]
            self._open_calls -= {i.get("call_id") for i in shorter if is_call(i)}
            self._pending = others
        self._ended.add(index)
        for row in rows:
            insort(self._pending, (index, row), key=itemgetter(0))
            if is_call(row):
                self._open_calls.add(row.get("call_id"))

    def _kept_rows(self, item: Item) -> list[Item]:
        """Return what is recorded of an item, which the chat does not show as it is.

        The chat returns what a remote server said: its card has it.
        """
        if is_call(item):
            is_kept = item.get("status") != "incomplete"
        elif (
            has_encrypted_reasoning(item)
            or is_compaction(item)
            or item_type(item) == CONFIGURATION
        ):
            is_kept = self._scope.keeps_reasoning
        else:
            is_kept = is_kept_hosted(item) or is_stored_image(item)
        if not is_kept:
            return []
        return [row for row in replay_items(item) if not is_call_output(row)]

    def _begin(self, index: int, item: Item, kind: str) -> Iterator[_RecorderEvent]:
        """Yield the record of a message that begins, if it needs one.

        Without a phase the text itself is all there is to know of the message.
        """
        has_phase = bool(item.get("phase"))
        is_marked = self._scope.cites or has_phase or self._marks_next
        if not self._pending and not is_marked and kind != "refusal":
            return
        follows_message = self._pending and item_type(self._pending[-1][1]) == "message"
        if self._pending and not has_phase and not follows_message:
            record = self._take_record()
        else:
            unshown = {**_stored_message(item), "content": [UNSHOWN_TEXT]}
            record = self._take_record(unshown)
        self._records[index] = record
        yield from self._with_marker(record, index)

    def _amend(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        """Yield the record of an ended message, if it is not what was written.

        The host strips texts. A marker would have to be in front of this one.
        """
        record = self._records.get(ended.output_index)
        text = message_text(ended.item)
        if record is None:
            # Before Open WebUI stores an answer it strips its last message
            # (utils/middleware.py:5487); the model's own bytes have to go back.
            host_strips = text != text.strip()
            can_record = self._scope.carrier == "output" and not self._pending
            if not host_strips or not can_record:
                return
            record = self._take_record()
            self._records[ended.output_index] = record
        payload = [item for item in record.payload if not _is_placeholder(item)]
        whole = _stored_message(ended.item)
        kept = omit_shown_text(whole, ended.shown)
        if kept is whole:
            kept = refer_to_shown(whole, ended.shown)
        # A message that is all text needs no item of its own after others.
        is_plain = kept.get("content") == [UNSHOWN_TEXT] and not kept.get("phase")
        if not payload or not is_plain or item_type(payload[-1]) == "message":
            payload.append(kept)
        is_same = ended.shown == text and not refers_to_shown(kept)
        shown = "" if is_same else text_digest(ended.shown)
        amended = record._replace(payload=tuple(payload), shown=shown)
        if amended != record:
            yield NewRecord(amended, ended.output_index)

    def _add_commentary(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        """Yield the record of commentary, whose text the host does not return."""
        if not message_text(ended.item).strip():
            return
        index = ended.output_index
        message = _stored_message(ended.item)
        first = self._records.get(index)
        if first:
            record = first._replace(payload=(*first.payload[:-1], message))
            yield NewRecord(record, index)
        else:
            self._marks_next = True
            record = self._take_record(message)
            self._records[index] = record
            yield from self._with_marker(record, index)
        self._last_commentary = (ended, record)

    def _with_marker(
        self, record: Record, index: int | None
    ) -> Iterator[_RecorderEvent]:
        """Yield a record, and its marker where the text carries one."""
        yield NewRecord(record, index)
        if self._scope.carrier == "markers":
            yield Marker(format_marker(record.kind, record.ulid))

    def _take_record(self, message: Item | None = None) -> Record:
        """Return a record of what is pending, and of a message if there is one."""
        payload: list[Item] = []
        for _, item in self._pending:
            if item.keys() == _PLAIN_CALL and item["call_id"] in self._made_calls:
                # The chat gives back what the card has. The names stay, because their
                # order belongs to the bytes. A call that the host makes is kept whole:
                # the host writes its arguments anew.
                payload.append({**item, "name": None, "arguments": None})
            else:
                payload.append(item)
        if message is not None:
            payload.append(message)
        self._pending = []
        self._plain = {}
        return Record(
            ulid=self._new_id(),
            payload=tuple(payload),
            message_id=self._scope.message_id,
            origin=self._scope.origin,
        )


def _is_unsealed(item: Item) -> bool:
    """Say whether a thought has ended without what its model can read."""
    is_thought = is_reasoning(item) and item != GIVEN_UP
    return is_thought and not has_encrypted_reasoning(item)


def _is_placeholder(item: Item) -> bool:
    """Say whether an item stands for a message whose end is awaited."""
    return item_type(item) == "message" and item.get("content") == [UNSHOWN_TEXT]


def _stored_message(item: Item) -> Item:
    """Return a message as it is stored; its short form has no type."""
    return {**strip_for_replay(item), "type": "message"}
