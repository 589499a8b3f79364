"""Run events as Open WebUI's native events, and the last status line of an answer.

The host builds the items that it shows and stores from events of the Responses API, so
a run looks like Open WebUI's own and is the same after a reload. The events differ from
the wire where the host needs it (docs/reference/open-webui.md, "Native events", "What a
pipe yields" and "Usage"): one numbering over all responses, no `response.completed`, no
encrypted content, and an empty `choices` delta for stream filters that look for one.
"""

from collections.abc import Callable, Iterable, Iterator

from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    is_call,
    is_commentary,
    item_type,
    open_calls,
)
from openai_responses.loop.events import RunDone, RunEvent, Status, ToolOutput
from openai_responses.models.usage import Usage
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    PartialImage,
    TextDelta,
)
from owui_chat.citations import Citations
from owui_chat.render.chunks import (
    Chunk,
    error_chunk,
    host_event,
    host_usage,
    status_chunk,
)
from owui_chat.render.commentary import Commentary
from owui_chat.render.hosted import HOSTED_ITEMS, HostedItem, end_after_code, show_files
from owui_chat.render.items import (
    OpenCalls,
    OutputItems,
    RecordItems,
    begun_host_item,
    call_host_item,
    message_host_item,
    reasoning_host_item,
)
from owui_chat.storage.output_carrier import AnswerEventItem, StoredRecord, TurnDetails


def closing_line(seconds: float, ended: RunDone) -> str:
    """Return the last status line: time, tokens and cost, as far as they are known."""
    parts = [f"Finished in {_duration(seconds)}"]
    if ended.usage:
        parts.append(_tokens(ended.usage))
    if ended.cost is not None:
        parts.append(_money(ended.cost))
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "under a second"
    return f"{whole // 60} min {whole % 60} s"


def _tokens(usage: Usage) -> str:
    told = f"{usage.total:,} tokens"
    share = 100 * usage.cached // usage.input if usage.input else 0
    return f"{told}, {share} % of the input cached" if share else told


def _money(dollars: float) -> str:
    """Return an amount with its first two digits, even if it is tiny."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.2g}"


_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


class NativeRenderer:
    """Shows one run."""

    def __init__(
        self,
        now: Callable[[], float],
        known: Iterable[str] = (),
        *,
        closes: bool = True,
    ) -> None:
        """Take `now`, a clock in seconds, to measure the time of reasoning.

        `known` are the keys of the sources that the page already has. `closes` says
        whether a last status line is shown.
        """
        self._closes = closes
        self._now = now
        self._began = now()
        self._citations = Citations(known)
        self._shown = OutputItems()
        self._remarks = Commentary(self._shown, self._citations)
        self._calls = OpenCalls(self._shown)
        self._kept = RecordItems(self._shown)
        self._cards: dict[int, HostedItem] = {}
        self._places: dict[int, int] = {}
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._parts: dict[int, int] = {}

    @property
    def items(self) -> list[Item]:
        """What the host has stored of the run so far."""
        return self._shown.items

    def amend(self, place: int, item: Item) -> Chunk:
        """Return the event that replaces the item at a place that was shown before."""
        return self._shown.end(place, item)

    def render(self, event: AnswerEventItem, marker: str = "") -> Iterator[Chunk]:
        """Yield the events to send.

        `marker` comes before the growing text, after commentary that ended, or alone at
        the end of the run.
        """
        match event:
            case ItemAdded() if _is_shown(event.item):
                yield self._start(event)
            case TextDelta() if event.output_index in self._places:
                yield from self._grow(event, marker)
            case ItemDone() if event.output_index in self._places:
                yield from self._end(event)
            case AnnotationAdded():
                self._citations.feed(event)
                yield from self._sources(ended=False)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                yield from self._hosted(event, marker)
            case ToolOutput():
                yield from self._answered(event)
            case Status() | StoredRecord() | TurnDetails():
                yield from self._beside(event)
            case RunDone():
                yield from self._end_run(event, marker)

    def _hosted(
        self, event: ItemAdded | TextDelta | PartialImage | ItemDone, marker: str
    ) -> Iterator[Chunk]:
        """Yield what the card of an item of the API's own makes of an event.

        A remark in passing has one too.
        """
        begins = isinstance(event, ItemAdded) and is_commentary(event.item)
        if not isinstance(event, PartialImage) and (
            begins or event.output_index in self._remarks.indexes
        ):
            yield from self._remarks.render(event, marker)
            yield from self._after_item(event)
            return
        if isinstance(event, ItemAdded):
            kind = item_type(event.item)
            if kind in HOSTED_ITEMS:
                self._cards[event.output_index] = HOSTED_ITEMS[kind](self._shown)
        card = self._cards.get(event.output_index)
        if isinstance(event, ItemDone):
            self._cards.pop(event.output_index, None)
        if card:
            yield from card.render(event)

    def _beside(self, event: Status | StoredRecord | TurnDetails) -> Iterator[Chunk]:
        """Yield chunks for events that are not items of the run."""
        if isinstance(event, Status):
            yield status_chunk(event.sentence)
        else:
            places = self._places | self._remarks.indexes
            yield from self._kept.render(event, places)

    def _answered(self, event: ToolOutput) -> Iterator[Chunk]:
        yield from self._calls.answer(event)
        yield from self._sources(ended=True)  # before the numbers that follow
        self._citations.feed(event)
        for source in event.card.get("sources", ()):
            yield host_event({"type": "source", "data": source})

    def _sources(self, *, ended: bool) -> Iterator[Chunk]:
        for source in self._citations.sources(ended=ended):
            yield host_event({"type": "source", "data": source})

    def _end_run(self, event: RunDone, marker: str) -> Iterator[Chunk]:
        for card in self._cards.values():
            yield from card.render(event)
        for index, place in self._places.items():
            yield from self._more_text(place, self._citations.rest(index))
        yield from self._remarks.end_run(event.output)
        yield from self._sources(ended=True)
        if event.ending.is_failure:
            yield from self._calls.break_off()
        if marker:
            yield from self._shown.add_marker(marker)
        yield from end_after_code(self._shown)
        failed = event.ending.is_failure
        if self._closes and not failed and not open_calls(event.output):
            yield status_chunk(closing_line(self._now() - self._began, event))
        yield from _end_of_run(event)

    def _start(self, event: ItemAdded) -> Chunk:
        place = self._places[event.output_index] = len(self.items)
        self._started[event.output_index] = self._now()
        if is_call(event.item):
            self._calls.note(event.item, place)
        return self._shown.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta, marker: str) -> Iterator[Chunk]:
        if marker:
            self._markers[event.output_index] = marker
        gap, text = self._gap(event), event.text
        if event.kind in ("text", "refusal"):
            text = self._citations.feed(event)
        place = self._places[event.output_index]
        yield from self._more_text(place, marker + gap + text, event.kind)

    def _more_text(self, place: int, text: str, kind: str = "text") -> Iterator[Chunk]:
        if text:
            yield self._shown.grow(place, kind, text)

    def _gap(self, event: TextDelta) -> str:
        """Return the blank line between two parts of a thought.

        The page joins the parts of a summary, so all parts are shown as one.
        """
        before = self._parts.get(event.output_index, event.part)
        self._parts[event.output_index] = event.part
        thought = event.kind in ("summary", "reasoning")
        return "\n\n" if thought and event.part != before else ""

    def _end(self, event: ItemDone) -> Iterator[Chunk]:
        place = self._places[event.output_index]
        match item_type(event.item):
            case "message":
                yield from self._more_text(place, self._citations.feed(event))
                text = self._citations.shown_text(event)
                marker = self._markers.get(event.output_index, "")
                item = message_host_item(event.item, marker + text)
            case "reasoning":
                seconds = self._now() - self._started[event.output_index]
                item = reasoning_host_item(event.item, round(seconds))
            case _:
                item = call_host_item(event.item)
        yield self._shown.end(place, item)
        yield from self._after_item(event)

    def _after_item(self, event: RunEvent) -> Iterator[Chunk]:
        if isinstance(event, ItemDone):
            yield from self._sources(ended=True)
            yield from show_files(self._shown, event.card)


def _is_shown(item: Item) -> bool:
    """Say whether the host has a card for an item."""
    return item_type(item) in _SHOWN_TYPES and not is_commentary(item)


def _end_of_run(event: RunDone) -> Iterator[Chunk]:
    if event.usage:
        usage = host_usage(event.usage, event.last_usage, event.cost)
        yield {"choices": [{"index": 0, "delta": {}}], "usage": usage}
    if event.ending.is_failure:
        yield error_chunk(event.ending.sentence)
