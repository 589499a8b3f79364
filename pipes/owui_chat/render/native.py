"""Run events as Open WebUI's native events, and the last status line of an answer.

The host builds the items that it shows and stores from events of the Responses API, so
a run looks like Open WebUI's own and is the same after a reload. The events differ from
the wire where the host needs it (docs/reference/open-webui.md, "Native events", "What a
pipe yields" and "Usage"): one numbering over all responses, no `response.completed`, no
encrypted content, and a `choices` delta for stream filters and other functions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    is_commentary,
    is_reasoning,
    item_type,
    open_calls,
    text_part,
)
from openai_responses.loop.events import GIVEN_UP, RunDone, Status, ToolOutput
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    ItemEvent,
    PartialImage,
    TextDelta,
)
from owui_chat.answers import closing_commentary
from owui_chat.cards import certain_length, without_cards
from owui_chat.citations import HoldbackBuffer
from owui_chat.closing_line import AnswerFigures, closing_line
from owui_chat.code import CODE_CARD
from owui_chat.events import (
    AnswerEvent,
    AnswerReport,
    Marker,
    SourceCited,
    StoredRecord,
    TurnDetails,
)
from owui_chat.render.chunks import (
    Chunk,
    Chunks,
    closing_chunk,
    compaction_chunk,
    error_chunk,
    host_event,
    host_usage,
    status_chunk,
    warning_chunk,
)
from owui_chat.render.commentary import Commentary
from owui_chat.render.items import (
    INVISIBLE_TYPE,
    OutputItems,
    begun_host_item,
    call_host_item,
    message_host_item,
    reasoning_host_item,
)

_SAID_AS = {
    "text": "content",
    "refusal": "content",
    "summary": "reasoning_content",
    "reasoning": "reasoning_content",
}
"""The fields of Chat Completions for the texts of deltas, by their kinds."""
_COMPACTED = "This chat was compacted: from now on the model reads a summary of what came before."
_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


class HostedView(Protocol):
    """Shows the items of OpenAI's own tools, like `HostedItems`."""

    def render(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for an event of an item."""

    def break_off(self, event: RunDone) -> Chunks:
        """Yield the chunks for items that the run did not end."""


_MOST_ENDS = 2
"""Of a thought that goes on: a message may be announced before its time."""


_MOST_STATUS_LINES = 200
"""Of an answer. For each the host writes the message with all its lines, and the chat
(models/chats.py:1417 of 0.12.4)."""
_MOST_STATUS_CHARACTERS = 1_000_000
"""Of all of them; the addresses of one search may have 800,000."""
_LONGEST_STATUS_LINE = 2_000
"""Characters. A server names tools and writes queries; ours are shorter."""
_FEW_ARGUMENTS = 500
"""Characters. A card shows arguments to those who open it while they are written. Each
event costs the host what a text does, and the end of a call has all of them."""


@dataclass(slots=True)
class _OpenThought:
    """A thought that the run has not ended, as far as it is on the page."""

    kind: str = "summary"
    texts: list[str] = field(default_factory=list)
    end: float | None = None
    """When something else followed it."""
    ends: int = 0
    """How often that was."""
    held: HoldbackBuffer = field(default_factory=lambda: HoldbackBuffer(certain_length))
    """What is on the page at its end only: it may become a card."""

    def grow(self, kind: str, text: str) -> None:
        """Take more text: the thought goes on."""
        self.kind = kind
        self.texts.append(text)
        self.end = None

    def fields(self) -> Item:
        """Return its text as the wire has it."""
        text = "".join(self.texts)
        if self.kind == "summary":
            return {"summary": [text_part("summary", text)]}
        return {"content": [text_part("reasoning", text)]}


@dataclass(slots=True)
class _ShownItem:
    """An item of the run on the page."""

    host_index: int
    """Its place among the host's."""
    began: float
    thought: _OpenThought | None = None
    """That of reasoning that the run has not ended."""
    marker: str = ""
    """In front of its text."""
    last_part: int | None = None
    """The part of its last text."""
    unshown_arguments: str = ""
    """Those of a call that wait for more."""


class NativeRenderer:
    """Shows one run."""

    def __init__(
        self,
        now: Callable[[], float],
        make_hosted: Callable[[OutputItems], HostedView] | None = None,
        *,
        has_status_lines: bool = True,
    ) -> None:
        """Take a clock in seconds, and what shows the items of OpenAI's own tools.

        Without the latter they are not shown, and there is no last status line.
        """
        self._has_status_lines = has_status_lines
        self.advice = ""
        """How an answer ended that the model can continue, for a status line: an error
        of the host's row would stay below the whole answer.
        """
        self._now = now
        self._began = now()
        self.output = OutputItems()
        """What the host has stored so far."""
        self.report = AnswerReport()
        self._hosted = make_hosted(self.output) if make_hosted else None
        self._commentary: dict[int, Commentary] = {}
        self._next_marker = ""
        self._has_ended = False
        self._status_lines = 0
        self._status_size = 0
        self._notes = 0
        self._note_subjects: dict[str, None] = {}
        self._retries = 0
        self._is_compacting = False
        self._items: dict[int, _ShownItem] = {}
        """By their output indexes."""
        self._unfollowed: dict[int, _ShownItem] = {}
        """The thoughts that nothing has followed yet."""
        self._last_said: dict[str, tuple[int, int]] = {}
        """The part of the last text in each field of Chat Completions."""
        self._has_text = False

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; `citations` has put the shown texts into events.

        A server's items may cause status lines without end; those of the end always come.
        """
        self._has_ended = self._has_ended or isinstance(event, RunDone)
        for chunk in self._chunks_of(event):
            if "event" in chunk and chunk["event"]["type"] == "status":
                status = chunk["event"]["data"]
                status["description"] = status["description"][:_LONGEST_STATUS_LINE]
                self._status_lines += 1
                self._status_size += len(str(status))
                is_much = self._status_lines > _MOST_STATUS_LINES
                is_much = is_much or self._status_size > _MOST_STATUS_CHARACTERS
                if is_much and not self._has_ended:
                    continue
            yield chunk

    def _chunks_of(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks for an event, with all its status lines."""
        if self._unfollowed and isinstance(event, ItemAdded | TextDelta):
            yield from self._end_thoughts(event)
        match event:
            case TextDelta() if event.output_index in self._items:
                yield from self._grow(event)
            case ItemAdded() if is_commentary(event.item):
                commentary = Commentary(self.output)
                self._commentary[event.output_index] = commentary
                yield from commentary.render(event, "")
            case ItemAdded() if item_type(event.item) in _SHOWN_TYPES:
                yield self._start(event)
            case ItemDone() if event.output_index in self._items:
                yield from self._end(event)
            case ItemAdded() | ItemDone() if item_type(event.item) == "compaction":
                # The event only shows on the page that it lasts; the host stores the
                # line.
                self._is_compacting = isinstance(event, ItemAdded)
                yield compaction_chunk(has_ended=not self._is_compacting)
                if not self._is_compacting:
                    self._notes += 1
                    yield status_chunk(_COMPACTED)
            case TextDelta() | ItemDone() if event.output_index in self._commentary:
                commentary = self._commentary[event.output_index]
                marker = self._take_marker() if isinstance(event, ItemDone) else ""
                yield from commentary.render(event, marker)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                if self._hosted:
                    yield from self._hosted.render(event)
            case Marker():
                self._next_marker = event.text
            case ToolOutput():
                self._retries = 0
                yield from self.output.answer(event)
            case RunDone():
                yield from self._end_run(event)
            case _:
                yield from self._render_other(event)

    def _render_other(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks for events that are not items of the run."""
        match event:
            case SourceCited():
                yield host_event("source", event.source)
            case Status():
                if event.message and event.is_note:
                    self._notes += 1
                    self._note_subjects[event.subject] = None
                if event.is_retry:
                    self._retries += 1
                yield status_chunk(event.message)
            case StoredRecord():
                # The item whose text follows the record; None for the end.
                host_index: int | None = None
                if event.output_index in self._commentary:
                    host_index = self._commentary[event.output_index].host_index
                elif event.output_index in self._items:
                    host_index = self._items[event.output_index].host_index
                yield from self.output.add_record(event, host_index)
            case TurnDetails():
                yield from self.output.add_details(event)
            case AnswerReport():
                self.report = event

    def _take_marker(self) -> str:
        """Return the marker that waits for the next text, once."""
        marker = self._next_marker
        self._next_marker = ""
        return marker

    def _end_run(self, event: RunDone) -> Chunks:
        """Yield the end of what is open, the last lines, and the usage."""
        if self._is_compacting:
            yield compaction_chunk(has_ended=True)
        if self._hosted:
            yield from self._hosted.break_off(event)
        for commentary in self._commentary.values():
            yield from commentary.break_off()
        closing = closing_commentary(event.output)
        gap = "\n\n" if "content" in self._last_said else ""
        for commentary in self._commentary.values():
            yield from commentary.become_answer(closing, gap)
        ending = event.ending
        if ending.can_continue and self._has_text and self._has_status_lines:
            self.advice = ending.message
        # Open WebUI runs a call without an output, whatever its status, and calls the
        # pipe again (utils/middleware.py:5544): those that the run leaves to it, but none
        # that its server began and did not end.
        left = {call["call_id"] for call in open_calls(event.output)}
        yield from self.output.break_off_calls(left)
        marker = self._take_marker()
        if marker:
            yield from self.output.add_marker(marker)
        yield from self.output.show_files(is_last=True)
        last_item = self.output.items[-1] if self.output.items else {}
        if last_item.get("type") == CODE_CARD:
            # In its older mode of tools Open WebUI takes code at the end for a request
            # to run it, and calls the pipe again, up to five times
            # (utils/middleware.py:6117). So something invisible is the end.
            end = {"type": INVISIBLE_TYPE, "id": f"end_{last_item['id']}"}
            yield from self.output.add(end)
        yield from self._last_chunks(event)
        if ending.is_failure and not self.advice:
            # Without choices it keeps the text and stores the error; an exception would
            # lose the text (utils/middleware.py:4939).
            yield error_chunk(event.ending.message)

    def _last_chunks(self, event: RunDone) -> Chunks:
        """Yield the last status line, how to go on, and the usage."""
        lines: list[Chunk] = []
        has_failed = event.ending.is_failure
        metadata = self.report.metadata
        has_line = not open_calls(event.output)
        if has_failed:  # one that counts notes, or that has an agent's metadata
            has_line = self._notes > 0 or bool(metadata)
        if has_line and self._hosted is not None:
            figures = AnswerFigures(
                seconds=self._now() - self._began,
                is_failure=has_failed,
                usage=event.usage,
                report=self.report,
            )
            lines.append(closing_chunk(self.last_line(figures), metadata))
        if self.advice:
            # The line is above the answer, where the reader of the end of a long one does
            # not see it. It stays; the warning only lasts for some seconds.
            lines += [warning_chunk(self.advice), status_chunk(self.advice)]
        # In no native event: Open WebUI ignores `response.incomplete` with its usage, and
        # a `response.completed` would replace all items (utils/response.py:714). In the
        # chunk of the last line, because it sends each chunk to the page.
        usage = host_usage(event, self.report.cost)
        if usage:
            last = lines.pop() if lines else {"choices": [{"index": 0, "delta": {}}]}
            lines.append({**last, **usage})
        yield from lines

    def last_line(self, figures: AnswerFigures) -> str:
        """Return the line of what an answer took, with what was shown above it."""
        has_retried = figures.is_failure and self._retries > 0
        shown = figures._replace(
            notes=self._notes,
            note_subjects=[subject for subject in self._note_subjects if subject],
            failed_attempts=self._retries + 1 if has_retried else 0,
        )
        return closing_line(shown)

    def _start(self, event: ItemAdded) -> Chunk:
        if item_type(event.item) == "message":
            self._retries = 0  # an attempt succeeded
        shown = _ShownItem(len(self.output.items), self._now())
        self._items[event.output_index] = shown
        if item_type(event.item) == "reasoning":
            shown.thought = _OpenThought()
            self._unfollowed[event.output_index] = shown
        return self.output.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta) -> Chunks:
        """Yield more text, after the marker that waited for it."""
        shown = self._items[event.output_index]
        marker = self._take_marker()
        if marker:
            shown.marker = marker
        # The page joins the parts of a summary, so all parts are shown as one.
        is_thought = event.kind in ("summary", "reasoning")
        is_next = shown.last_part not in (None, event.part)
        shown.last_part = event.part
        text = marker + ("\n\n" if is_thought and is_next else "") + event.text
        thought = shown.thought
        if thought:
            thought.grow(event.kind, text)
            text = without_cards(thought.held.feed(text))
            if thought.ends < _MOST_ENDS:
                self._unfollowed[event.output_index] = shown
        is_answer = event.kind in ("text", "refusal")
        self._has_text = self._has_text or (is_answer and bool(event.text.strip()))
        if event.kind == "arguments":
            text = shown.unshown_arguments + text
            shown.unshown_arguments = text if len(text) < _FEW_ARGUMENTS else ""
            if shown.unshown_arguments:
                return
        if text:
            said = self._say(event)
            yield self.output.grow(shown.host_index, event.kind, text, said)

    def _say(self, event: TextDelta) -> Chunk:
        """Return the text as a delta of Chat Completions.

        There are no items, so a blank line is between two messages or thoughts; and no
        marker, which only the stored chat needs.
        """
        key = _SAID_AS.get(event.kind)
        if not key or not event.text:
            return {}
        part = (event.output_index, 0 if key == "content" else event.part)
        gap = "\n\n" if self._last_said.get(key, part) != part else ""
        self._last_said[key] = part
        return {key: gap + event.text}

    def _end_thoughts(self, follows: ItemAdded | TextDelta) -> Chunks:
        """Yield the end of the thoughts that something else follows.

        llama.cpp ends all items at the end of its stream (recorded), so a thought would
        last as long as the whole answer. Each end has the whole thought, so one that
        goes on again and again has its last end from the run.
        """
        following = self._items.get(follows.output_index)
        if following and following.thought:
            return
        for shown in self._unfollowed.values():
            if shown.thought:
                shown.thought.end = self._now()
                shown.thought.ends += 1
                begun = self.output.items[shown.host_index]
                item = self._thought_item(shown, {**begun, **shown.thought.fields()})
                yield self.output.end(shown.host_index, item)
        self._unfollowed = {}

    def _thought_item(self, shown: _ShownItem, item: Item) -> Item:
        """Return a thought with its duration, up to now or to what followed it."""
        end = shown.thought.end if shown.thought else None
        seconds = (self._now() if end is None else end) - shown.began
        return reasoning_host_item(item, round(seconds))

    def _give_up(self, shown: _ShownItem) -> Chunks:
        """Yield the end of an item that is not kept; people keep a thought as they read it."""
        begun = self.output.items[shown.host_index]
        if shown.thought and shown.thought.texts:
            read = {**begun, **shown.thought.fields()}
            item = self._thought_item(shown, read)
            yield self.output.end(shown.host_index, item)
        elif not is_reasoning(begun) or begun["status"] == "in_progress":
            yield self.output.hide(shown.host_index)

    def _end(self, event: ItemDone) -> Chunks:
        """Yield the end of an item, or its other form."""
        index = event.output_index
        shown = self._items[index]
        self._unfollowed.pop(index, None)
        shown.unshown_arguments = ""
        if event.item == GIVEN_UP:
            del self._items[index]
            yield from self._give_up(shown)
            return
        match item_type(event.item):
            case "message":
                self._has_text = self._has_text or bool(event.shown.strip())
                item = message_host_item(event.item, shown.marker + event.shown)
            case "reasoning":
                item = self._thought_item(shown, event.item)
            case _:
                item = call_host_item(event.item)
        shown.thought = None
        yield self.output.end(shown.host_index, item)
        yield from self.output.add_files(event.card)
