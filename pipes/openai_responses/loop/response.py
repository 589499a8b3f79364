r"""The state machine of one response.

Events in, run events out, no side effects. An item is *unknown* until an event opens
it, then *open*, and *ended* from its `output_item.done` on:

    event \ state    unknown            open              ended
    delta            opens, shown (1)   shown             ignored
    whole text       opens, shown (1)   the rest shown    ignored
    added            opened             ignored           ignored
    done             opened and ended   ended             ignored
    final snapshot   opened and ended   ended             ignored
    citation, sketch ignored            shown             ignored

(1) Text opens a message, reasoning a reasoning item. Arguments and code are kept until
the item is known: only the item has the name of a call (docs/reference/responses-api.md,
"Stream events"). Events after the end of the response are ignored. A text that has
ended is authoritative: the part that was not shown yet is shown, and the final item is
the wire's own dict.

An item is found by its ids: `item_id` of a part, `id` and `call_id` of an item. Where
they are unknown, it is the last item that came with the same `output_index`, if the
event can be about it: the type is the same, and it is open or the event has no id. An
item of the final snapshot is found by its ids, else it is the first of its type that no
other item of the snapshot is. Items are numbered as they come: other servers leave
`output_index` out, reuse it, or change it (docs/servers.md). A call without a `call_id`
opens when it ends, with an id of ours. Some servers number the calls of each response
anew; such a call leaves here under an id that no earlier response has.
"""

from collections import Counter, defaultdict, deque
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Literal

from openai_responses.endings import (
    COMPLETED,
    Ending,
    api_word,
    ending_of_failure,
    ending_of_incomplete,
)
from openai_responses.errors import ApiError, read_api_error
from openai_responses.items import (
    Item,
    TextPlace,
    content_parts,
    distinct_call_id,
    is_call,
    item_texts,
    item_type,
    kind_of,
)
from openai_responses.json_input import JsonObject, as_mapping, as_text
from openai_responses.loop.events import NO_THOUGHT, ResponseDone, RunEvent, Trace
from openai_responses.loop.growing_parts import GrowingParts
from openai_responses.models.usage import Usage, read_usage
from openai_responses.transport.stream import (
    AnnotationAdded,
    FinalResponse,
    ItemAdded,
    ItemDone,
    PartialImage,
    StreamError,
    StreamEvent,
    TextDelta,
    TextDone,
)
from openai_responses.ulid import new_ulid


class ResponseState:
    """One response, from its first event to its last.

    A *position* is that of an item in `_items`; its index in the run is `_first` more.
    """

    def __init__(
        self, first_index: int = 0, taken_call_ids: Collection[str] = ()
    ) -> None:
        """Number items from `first_index` on.

        `taken_call_ids` are those of the calls of earlier responses.
        """
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        self._known_call_ids = set(taken_call_ids)
        """Those of all calls so far, earlier responses included."""
        self._own_call_ids: dict[str, str] = {}
        """The ids that calls leave with, by those of the wire."""
        self._items: list[Item] = []
        """The items as they were announced."""
        self._ids: dict[str, int] = {}
        """Positions by the ids of the wire."""
        self._latest: dict[int, int] = {}
        """The position of the last item that came with an `output_index`."""
        self._early: dict[str | int, list[TextDelta]] = {}
        """Deltas whose item is not known yet, by its id, or by its `output_index` if the
        delta has none."""
        self._open: dict[int, GrowingParts] = {}
        """The texts of the items that grow, by position."""
        self._growing = _NO_TEXT
        """The text that the last delta belongs to, and the position of its item."""
        self._ended: dict[int, Item] = {}
        """The final items, by position."""

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The finished items with their indexes, in the order of the API."""
        positions = sorted(self._ended)
        return [
            (self._first + position, self._ended[position]) for position in positions
        ]

    @property
    def output(self) -> list[Item]:
        """The finished items, in the order of the API."""
        return [item for _, item in self.items]

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event and return the run events that it causes."""
        self.event_count += 1
        if self.ending:
            return self._take_reason(event)
        return self._take(event)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta():
                return self._grow(event) if event.text else []
            case AnnotationAdded() | PartialImage():
                position = self._find(event.output_index, [event.item_id], _has_fields)
                if position in self._open:
                    index = self._first + position
                    return [event._replace(output_index=index, item_id="")]
            case ItemAdded(index, item):
                if not _lacks_call_id(item) and self._find_item(index, item) is None:
                    return self._start(index, item, _ids(item))
            case ItemDone(index, item):
                return self._end(self._find_item(index, item), index, item)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self._fail("error", event.error)
        return []

    def _take_reason(self, event: StreamEvent) -> list[RunEvent]:
        """Take the second of the two events with which a stream is refused.

        OpenAI sends `error`, then `response.failed` (recorded); Azure's filter sends them
        the other way round, and only the second one has the reason.
        """
        kind = self.ending.kind if self.ending else ""
        match event:
            case StreamError() if kind == "failed":
                self._fail("failed", event.error)
            case FinalResponse(status="failed") if kind == "error":
                return self._finish(event)
        return []

    def _fail(self, kind: Literal["failed", "error"], error: ApiError) -> None:
        """End with `error`, or with what an earlier event named as the reason."""
        first = self.refusal or ApiError()
        if first != ApiError():
            notice = first.notice if any(first.notice) else error.notice
            error = first._replace(notice=notice)
        self.refusal = error
        self.trace = self.trace._replace(error=error)
        self.ending = ending_of_failure(kind, error)

    def _find(
        self, index: int, ids: Sequence[str], fits: Callable[[Item], bool]
    ) -> int | None:
        """Return the position of the item that an event is about, if it is known.

        The module says how: by its ids, else by the `output_index`.
        """
        for item_id in ids:
            position = self._ids.get(item_id)
            if position is not None and fits(self._items[position]):
                return position
        position = self._latest.get(index)
        if position is None or not fits(self._items[position]):
            return None
        has_id = any(ids)
        if has_id and position not in self._open:
            return None
        return position

    def _find_item(self, index: int, item: Item) -> int | None:
        """Return the position of an item, if it is known.

        Two calls of one `call_id` stay two; the snapshot only repeats what came.
        """
        kind = item_type(item)
        call_id = as_text(item.get("call_id"))

        def fits(known: Item) -> bool:
            """Say whether it has the same type, and no other `call_id`."""
            if item_type(known) != kind:
                return False
            known_call_id = as_text(known.get("call_id"))
            return call_id == known_call_id or not call_id or not known_call_id

        position = self._find(index, _ids(item), fits)
        if position not in self._ended or index == _NOWHERE:
            return position
        is_same = item.get("id") in (None, self._ended[position].get("id"))
        return position if is_same else None

    def _start(self, index: int, item: Item, ids: Sequence[str]) -> list[RunEvent]:
        """Open an item, and show what came for it before it was known."""
        position = len(self._items)
        self._growing = _NO_TEXT
        self._items.append(item)
        self._open[position] = GrowingParts()
        for item_id in ids:
            self._ids[item_id] = position
        self._latest[index] = position
        shown = self._with_own_call_id(item)
        events: list[RunEvent] = [ItemAdded(self._first + position, shown)]
        names: list[str | int] = [*ids, index]
        for name in names:
            for early in self._early.pop(name, ()):
                if _can_grow(item, early.kind):
                    events += self._grow(early)
        return events

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        """Show a delta; the next one of the same part needs no search for its item."""
        index = event.output_index
        kind = event.kind
        item_id = event.item_id
        last_text, position = self._growing
        events: list[RunEvent] = []
        if last_text != (index, kind, item_id):
            position = self._find(index, [item_id], lambda item: _can_grow(item, kind))
        if position is None:
            if kind not in _OPENED_BY:
                self._early.setdefault(item_id or index, []).append(event)
                return []
            position = len(self._items)
            item = {**_OPENED_BY[kind], "id": item_id or f"item_{position}"}
            events = self._start(index, item, [item_id])
        if position not in self._open:
            return events
        self._growing = ((index, kind, item_id), position)
        text_place = (kind, event.part)
        if isinstance(event, TextDone):
            rest = self._open[position].end_part(text_place, event.text)
            return events + self._deltas(position, rest)
        self._open[position].grow(text_place, event.text)
        shown = TextDelta(self._first + position, kind, event.part, event.text)
        return [*events, shown]

    def _end(self, position: int | None, index: int, item: Item) -> list[RunEvent]:
        """Take the final form of an item, and show what its deltas left out."""
        if position in self._ended:
            return []
        if _lacks_call_id(item):
            item = {**item, "call_id": f"call_{new_ulid()}"}
        item = _drop_malformed_ids(item)
        events: list[RunEvent] = []
        if position is None:
            position = len(self._items)
            events = self._start(index, item, _ids(item))
        for item_id in _ids(item):
            self._ids[item_id] = position
        rests = self._open.pop(position).end_item(list(item_texts(item)))
        events += self._deltas(position, rests)
        self._growing = _NO_TEXT
        item = self._with_own_call_id(item)
        self._ended[position] = item
        return [*events, ItemDone(self._first + position, item)]

    def _with_own_call_id(self, item: Item) -> Item:
        """Return a call under an id that no earlier response has.

        Bedrock begins with `call_0` in each response (recorded by pydantic-ai), and an
        output would answer the first call of that name. The id is a function of the ids
        before it; once stored, it is sent again as it is. A call that comes twice in
        this response has one id.
        """
        call_id = as_text(item.get("call_id"))
        if not is_call(item) or not call_id:
            return item
        own_id = self._own_call_ids.get(call_id)
        if own_id is None:
            own_id = distinct_call_id(call_id, self._known_call_ids)
            self._known_call_ids.add(own_id)
            self._own_call_ids[call_id] = own_id
        return item if own_id == call_id else {**item, "call_id": own_id}

    def _deltas(
        self, position: int, rests: Iterable[tuple[TextPlace, str]]
    ) -> list[RunEvent]:
        """Return the deltas that show what the wire's own deltas did not bring."""
        index = self._first + position
        return [TextDelta(index, kind, part, text) for (kind, part), text in rests]

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        response = event.response
        self.usage = read_usage(response.get("usage"), response.get("service_tier"))
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            removed=_removals(response.get("input_transformations")),
            response_id=as_text(response.get("id")),
            cache=as_mapping(response.get("prompt_cache_diagnostics")),
        )
        if event.status == "failed":
            self._fail("failed", read_api_error(response.get("error")))
        else:
            self.ending = _ending_of(event.status, response)
        events: list[RunEvent] = []
        for position, item in self._match(content_parts(response.get("output"))):
            events += self._end(position, _NOWHERE, item)
        return [*events, ResponseDone(event.status)]

    def _match(self, items: Sequence[Item]) -> Iterator[tuple[int | None, Item]]:
        """Yield the positions of the items of the final snapshot, if they are known."""
        positions = [self._find_item(_NOWHERE, item) for item in items]
        taken = set(positions)
        unmatched: dict[str, deque[int]] = defaultdict(deque)
        for known_position, known_item in enumerate(self._items):
            if known_position not in taken:
                unmatched[item_type(known_item)].append(known_position)
        for position, item in zip(positions, items, strict=True):
            same_type = unmatched[item_type(item)]
            if position is None and same_type:
                yield same_type.popleft(), item
            else:
                yield position, item


_NO_TEXT: tuple[object, int | None] = (None, None)
"""The next delta has to search for its item."""
_NOWHERE = -2
"""An `output_index` that no event has."""

_EMPTY_MESSAGE: Item = {"type": "message", "role": "assistant", "content": []}
_OPENED_BY = {
    "text": _EMPTY_MESSAGE,
    "refusal": _EMPTY_MESSAGE,
    "summary": NO_THOUGHT,
    "reasoning": NO_THOUGHT,
}
"""Items that their texts alone open."""


def _has_fields(item: Item) -> bool:
    """Say whether there is an item: citations and sketches fit one of any type."""
    return bool(item)


def _drop_malformed_ids(item: Item) -> Item:
    """Return an item without ids that are not texts, because ids are keys here."""
    kept: Item = {}
    for key, value in item.items():
        is_malformed = value is not None and not as_text(value)
        if is_malformed and key.endswith("id"):
            continue
        kept[key] = value
    return kept


def _can_grow(item: Item, kind: str) -> bool:
    """Say whether deltas of a kind belong to an item of this type."""
    if kind in _OPENED_BY:
        return item_type(item) == item_type(_OPENED_BY[kind])
    text_field = kind_of(item).text
    return text_field is not None and text_field[0] == kind


def _ids(item: Item) -> list[str]:
    """Return the ids that an event can name an item by."""
    ids = (as_text(item.get("id")), as_text(item.get("call_id")))
    return [item_id for item_id in ids if item_id]


def _lacks_call_id(item: Item) -> bool:
    """Say whether `item` is a call that gets its `call_id` here, when it has ended."""
    return is_call(item) and not as_text(item.get("call_id"))


def _removals(transformations: object) -> Mapping[str, int]:
    """Return how many items the API left out of the input, by its reasons."""
    return Counter(
        api_word(str(row.get("reason"))) or "unknown"
        for row in content_parts(transformations)
        if row.get("action") == "removed"
    )


def _ending_of(status: str, response: JsonObject) -> Ending:
    """Return how a response ended that did not fail.

    One that is `cancelled` was cancelled by another client: after our own cancellation
    no answer is read.
    """
    details = as_mapping(response.get("incomplete_details"))
    if status == "incomplete":
        return ending_of_incomplete(as_text(details.get("reason")))
    if status == "cancelled":
        return ending_of_incomplete(status)
    return COMPLETED
