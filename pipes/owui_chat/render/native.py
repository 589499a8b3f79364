"""Run events as Open WebUI's native events, and the last status line of an answer.

The host builds the items that it shows and stores from events of the Responses API, so
a run looks like Open WebUI's own and is the same after a reload. The events differ from
the wire where the host needs it (docs/reference/open-webui.md, "Native events", "What a
pipe yields" and "Usage"): one numbering over all responses, no `response.completed`, no
encrypted content, and an empty `choices` delta for stream filters that look for one.
"""

from collections.abc import Callable
from typing import Any

from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    is_commentary,
    item_type,
    open_calls,
)
from openai_responses.loop.events import NO_THOUGHT, RunDone, Status, ToolOutput
from openai_responses.models.usage import Usage, format_money
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    ItemEvent,
    PartialImage,
    TextDelta,
)
from owui_chat.code import CODE_CARD
from owui_chat.events import (
    AnswerEvent,
    Marker,
    SourceCited,
    StoredRecord,
    TurnDetails,
)
from owui_chat.render.chunks import (
    Chunk,
    Chunks,
    error_chunk,
    host_event,
    host_usage,
    status_chunk,
)
from owui_chat.render.commentary import Commentary
from owui_chat.render.items import (
    OutputItems,
    begun_host_item,
    call_host_item,
    message_host_item,
    reasoning_host_item,
)
from owui_chat.storage.output_carrier import closing_commentary


def _closing_line(seconds: float, ended: RunDone, notes: int) -> str:
    """Return the last status line: time, tokens and cost, as far as they are known.

    The page hides the lines before it until somebody opens them: it counts the notes.
    A phone shows about 40 characters, so the remark is the last.
    """
    word = "Broke off after" if ended.ending.is_failure else "Finished in"
    parts = [f"{word} {_duration(seconds)}"]
    if ended.usage:
        parts.append(_tokens(ended.usage))
    if ended.cost is not None:
        parts.append(format_money(ended.cost))
    if notes:
        parts.append(f"{notes} note{'s' * (notes > 1)}")
    return " · ".join(filter(None, [*parts, ended.remark]))


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "under a second"
    return f"{whole // 60} min {whole % 60} s"


def _tokens(usage: Usage) -> str:
    share = 100 * usage.cached // usage.input if usage.input else 0
    cached = f", {share} % of the input cached" if share else ""
    return f"{usage.total:,} tokens{cached}"


_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


def _end_after_code(shown: OutputItems) -> Chunks:
    """Yield an invisible item if code would be the last item of a run."""
    last = shown.items[-1] if shown.items else {}
    if last.get("type") == CODE_CARD:
        end = {"type": "openai_responses:end", "id": f"end_{last['id']}"}
        yield from shown.add(end)


class NativeRenderer:
    """Shows one run."""

    def __init__(self, now: Callable[[], float], hosted: Any = None) -> None:
        """Take a clock in seconds.

        `shown` has what the host stored so far. `hosted` makes what shows the items of
        OpenAI's own tools, like `HostedItems`;
        without it there are none, and no last status line.
        """
        self._now = now
        self._began = now()
        self.shown = OutputItems()
        self._commentary: dict[int, Commentary] = {}
        self._hosted = hosted and hosted(self.shown)
        self._places: dict[int, int] = {}
        self._marker = ""
        self._notes = 0
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._parts: dict[int, int] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; `citations` has put the shown texts into events."""
        match event:
            case TextDelta() if event.output_index in self._places:
                yield from self._grow(event)
            case ItemAdded() if _is_shown(event.item):
                yield self._start(event)
            case ItemDone() if event.output_index in self._places:
                yield from self._end(event)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                yield from self._render_other(event)
            case Marker():
                self._marker = event.text
            case ToolOutput():
                yield from self.shown.answer(event)
            case RunDone():
                yield from self._end_run(event)
            case _:
                yield from self._render_beside(event)

    def _render_other(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for commentary and for items of OpenAI's own tools."""
        index = event.output_index
        if isinstance(event, ItemAdded) and is_commentary(event.item):
            self._commentary[index] = Commentary(self.shown)
        if index in self._commentary:
            yield from self._commentary[index].render(event, self._take_marker())
        else:
            yield from self._hosted.render(event) if self._hosted else ()

    def _render_beside(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks for events that are not items of the run."""
        match event:
            case SourceCited():
                yield host_event("source", event.source)
            case Status():
                self._notes += bool(event.sentence)
                yield status_chunk(event.sentence)
            case StoredRecord():
                yield from self.shown.add_record(event, self._place_of(event))
            case TurnDetails():
                yield from self.shown.add_details(event)

    def _place_of(self, stored: StoredRecord) -> int | None:
        index = -1 if stored.output_index is None else stored.output_index
        remark = self._commentary.get(index)
        return remark.place if remark else self._places.get(index)

    def _take_marker(self) -> str:
        marker, self._marker = self._marker, ""
        return marker

    def _end_run(self, event: RunDone) -> Chunks:
        failed = event.ending.is_failure
        yield from self._hosted.break_off(event) if self._hosted else ()
        for commentary in self._commentary.values():
            yield from commentary.break_off()
        closing = closing_commentary(event.output)
        for commentary in self._commentary.values():
            yield from commentary.become_answer(closing)
        if failed:
            yield from self.shown.break_off_calls()
        if marker := self._take_marker():
            yield from self.shown.add_marker(marker)
        yield from self.shown.show_files(is_last=True)
        yield from _end_after_code(self.shown)
        told = self._notes if failed else not open_calls(event.output)
        if self._hosted and told:
            seconds = self._now() - self._began
            yield status_chunk(_closing_line(seconds, event, self._notes))
        if usage := host_usage(event):
            yield {"choices": [{"index": 0, "delta": {}}], **usage}
        if failed:
            yield error_chunk(event.ending.sentence)

    def _start(self, event: ItemAdded) -> Chunk:
        self._places[event.output_index] = len(self.shown.items)
        self._started[event.output_index] = self._now()
        return self.shown.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta) -> Chunks:
        marker = self._take_marker()
        if marker:
            self._markers[event.output_index] = marker
        if text := marker + self._gap(event) + event.text:
            yield self.shown.grow(self._places[event.output_index], event.kind, text)

    def _gap(self, event: TextDelta) -> str:
        """Return the blank line between two parts of a thought.

        The page joins the parts of a summary, so all parts are shown as one.
        """
        before = self._parts.get(event.output_index, event.part)
        self._parts[event.output_index] = event.part
        thought = event.kind in ("summary", "reasoning")
        return "\n\n" if thought and event.part != before else ""

    def _end(self, event: ItemDone) -> Chunks:
        """Yield the end of an item, or its other form; a failed thought frees its index."""
        index = event.output_index
        place = self._places[index]
        match item_type(event.item):
            case _ if event.item == NO_THOUGHT:
                del self._places[index]
                item = {**self.shown.items[place], "type": "openai_responses:end"}
            case "message":
                text = self._markers.get(index, "") + event.shown
                item = message_host_item(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[index]
                item = reasoning_host_item(event.item, round(seconds))
            case _:
                item = call_host_item(event.item)
        yield self.shown.end(place, item)
        yield from self.shown.add_files(event.card)


def _is_shown(item: Item) -> bool:
    return item_type(item) in _SHOWN_TYPES and not is_commentary(item)
