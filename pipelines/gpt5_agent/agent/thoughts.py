"""Converts run events so that thoughts are shown as reasoning, or left out.

Text in a round that calls tools is a thought, and so is text inside `<think>` tags.
Whether a round calls tools is known only when a call arrives:

    text of a round       thoughts are shown             thoughts are not shown
    before a call         shown; becomes a thought       held back; dropped when a
                          when a call arrives            call arrives, else shown
    after a call          a thought                      dropped
    phase commentary      a thought; the last one also   dropped, unless there is no
                          the answer if there is none    other answer
    phase final_answer    as before a call               shown
    no tools offered      shown                          shown

A `<think>` tag in backticks is plain text. A thought that is never closed ends with the
message.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from openai_responses.items import Item, is_call, item_type, message_text
from openai_responses.loop.events import (
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    PartialImage,
    TextDelta,
)

_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


class ThinkSpan(NamedTuple):
    """A piece of text, and whether it is a thought."""

    is_thought: bool
    text: str


class ThinkTagParser:
    """Splits a text that comes in pieces at its think tags."""

    def __init__(self) -> None:
        """Begin outside of a thought."""
        self._is_thought = False
        self._buffer = ""
        self._previous_character = ""

    def feed(self, text: str) -> list[ThinkSpan]:
        """Take a piece; return the spans that are certain now."""
        self._buffer += text
        return _merge_spans(self._complete_spans(at_end=False))

    def close(self) -> list[ThinkSpan]:
        """Return the rest, which could have been the beginning of a tag."""
        return _merge_spans(self._complete_spans(at_end=True))

    def _complete_spans(self, *, at_end: bool) -> Iterator[ThinkSpan]:
        while self._buffer:
            place, tag = _find_tag(self._buffer)
            if not tag:
                place = len(self._buffer) - (
                    0 if at_end else _count_partial_tag(self._buffer)
                )
                if place:
                    yield self._take_span(place)
                return
            before = self._buffer[place - 1] if place else self._previous_character
            if before == "`":
                yield self._take_span(place + len(tag))
                continue
            if place:
                yield self._take_span(place)
            self._buffer = self._buffer[len(tag) :]
            self._is_thought = tag == _THINK_OPEN

    def _take_span(self, length: int) -> ThinkSpan:
        taken, self._buffer = self._buffer[:length], self._buffer[length:]
        self._previous_character = taken[-1]
        return ThinkSpan(self._is_thought, taken)


def parse_think_spans(text: str) -> list[ThinkSpan]:
    """Return the spans of a whole text."""
    reader = ThinkTagParser()
    return _merge_spans([*reader.feed(text), *reader.close()])


def _merge_spans(spans: Iterator[ThinkSpan] | list[ThinkSpan]) -> list[ThinkSpan]:
    groups = groupby(spans, attrgetter("is_thought"))
    return [
        ThinkSpan(kind, "".join(one.text for one in group)) for kind, group in groups
    ]


def _find_tag(text: str) -> tuple[int, str]:
    lowered = text.lower()
    found = [(lowered.find(tag), tag) for tag in (_THINK_OPEN, _THINK_CLOSE)]
    return min([one for one in found if one[0] >= 0], default=(-1, ""))


def _count_partial_tag(text: str) -> int:
    """Return how many characters at the end of `text` may begin a tag."""
    lowered = text[-len(_THINK_CLOSE) :].lower()
    for length in range(min(len(lowered), len(_THINK_CLOSE) - 1), 0, -1):
        if any(
            tag.startswith(lowered[-length:]) for tag in (_THINK_OPEN, _THINK_CLOSE)
        ):
            return length
    return 0


@dataclass(slots=True)
class _ShownPart:
    """A piece with a place of its own; `name` is its id."""

    index: int
    name: str
    is_thought: bool
    text: str = ""

    def start_event(self) -> ItemAdded:
        """Return the event of its beginning."""
        return ItemAdded(self.index, self._item("in_progress", ""))

    def add_text(self, text: str) -> TextDelta:
        """Add text; return the event of it."""
        self.text += text
        return TextDelta(self.index, "summary" if self.is_thought else "text", 0, text)

    def end_event(self) -> ItemDone:
        """Return the event of its end, which says again what it is."""
        return ItemDone(self.index, self._item("completed", self.text.rstrip()))

    def _item(self, status: str, text: str) -> Item:
        if self.is_thought:
            summary = [{"type": "summary_text", "text": text}] if text else []
            return _build_thought_item(self.name, summary, status)
        part = {"type": "output_text", "text": text, "annotations": []}
        head = {"id": self.name, "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": [part]}


class _MessageParts:
    """Shows a message as thoughts and answer texts.

    What is held back waits for `release` or `become_thought`.
    """

    def __init__(
        self,
        item: Item,
        new_index: Callable[[], int],
        *,
        emits: bool,
        is_thought: bool,
        is_held: bool,
    ) -> None:
        """Take the message as it begins; `emits` shows thoughts."""
        self.is_thought = is_thought
        self.is_held = is_held
        self.is_commentary = item.get("phase") == "commentary"
        self._item = item
        self._new_index = new_index
        self._shows_thoughts = emits
        self._reader = ThinkTagParser()
        self._held: list[ThinkSpan] = []
        self._pieces: list[_ShownPart] = []
        self._is_complete = False

    @property
    def text(self) -> str:
        """The text shown as the answer, joined as the host joins it."""
        return "\n".join(one.text for one in self._pieces if not one.is_thought)

    @property
    def is_shown(self) -> bool:
        """Whether any part is shown."""
        return bool(self._pieces)

    def add_text(self, text: str) -> Iterator[RunEvent]:
        """Yield the events of more text."""
        yield from self._process_spans(self._reader.feed(text))

    def end(self, item: Item) -> Iterator[RunEvent]:
        """Yield the end of the message; `item` is the complete one."""
        self._item, self._is_complete = item, True
        yield from self._process_spans(self._reader.close())
        yield from self._end_last()

    def become_thought(self) -> Iterator[RunEvent]:
        """Turn the shown text into a thought: its round calls a tool."""
        self.is_thought, self._held = True, []
        for piece in self._pieces if self._shows_thoughts else ():
            if not piece.is_thought:
                piece.is_thought = True
                yield piece.end_event()

    def release(self) -> Iterator[RunEvent]:
        """Yield what was held back."""
        self.is_held, held, self._held = False, self._held, []
        yield from self._process_spans(held)
        yield from self.close()
        if self._is_complete:
            yield from self._end_last()

    def repeat_as_answer(self) -> Iterator[RunEvent]:
        """Yield a message that was shown as a thought again, as the answer."""
        spans = parse_think_spans(message_text(self._item))
        text = "".join(span.text for span in spans if not span.is_thought).strip()
        if text and not self.text:
            piece = self._start_part(is_thought=False)
            yield piece.start_event()
            yield piece.add_text(text)
            yield piece.end_event()

    def close(self) -> Iterator[RunEvent]:
        """Yield what could have been the beginning of a tag."""
        yield from self._process_spans(self._reader.close())

    def _process_spans(self, spans: list[ThinkSpan]) -> Iterator[RunEvent]:
        for span in spans:
            is_thought = span.is_thought or self.is_thought
            if self.is_held:
                self._held.append(span)
            elif self._shows_thoughts or not is_thought:
                yield from self._show(span.text, is_thought)

    def _show(self, text: str, is_thought: bool) -> Iterator[RunEvent]:
        last = self._pieces[-1] if self._pieces else None
        if last is None or last.is_thought is not is_thought:
            text = text.lstrip()  # blank lines between a thought and an answer
            if not text:
                return
            if last:
                yield last.end_event()
            last = self._start_part(is_thought)
            yield last.start_event()
        yield last.add_text(text)

    def _start_part(self, is_thought: bool) -> _ShownPart:
        index, own = self._new_index(), str(self._item.get("id") or "")
        name = own if own and not self._pieces else f"{own or 'msg'}_{index}"
        piece = _ShownPart(index, name, is_thought)
        self._pieces.append(piece)
        return piece

    def _end_last(self) -> Iterator[RunEvent]:
        """Yield the end of the last part; a message in one part ends unchanged."""
        if not self._pieces:
            return
        last, own = self._pieces[-1], message_text(self._item)
        if not last.is_thought and parse_think_spans(own) == [ThinkSpan(False, own)]:
            last.text = own
            yield ItemDone(last.index, self._item)
        else:
            yield last.end_event()


def _build_thought_item(
    name: str, summary: list[Item], status: str = "completed"
) -> Item:
    """Return a reasoning item that shows a thought."""
    return {
        "id": f"rs_{name}",
        "type": "reasoning",
        "summary": summary,
        "status": status,
    }


class ThoughtFilter:
    """Shows one run, over all its rounds, under its own indexes."""

    def __init__(self, *, emits: bool) -> None:
        """With `emits` thoughts are shown."""
        self._shows_thoughts = emits
        self._may_call = False
        self._has_called = False
        self._has_thought = False
        self._next = 0
        self._indexes: dict[int, int] = {}
        self._messages: dict[int, _MessageParts] = {}
        self._texts: dict[int, str] = {}

    def begin_round(self, *, may_call: bool) -> None:
        """Prepare for another answer of the model."""
        self._may_call = may_call
        self._has_called = self._has_thought = False
        self._messages = {}

    def get_text(self, index: int) -> str:
        """Return what is shown as an answer of the run's message at `index`."""
        return self._texts.get(index, "")

    def show(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the events that replace an event."""
        match event:
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = self._start_message(event.item)
            case TextDelta() if event.output_index in self._messages:
                yield from self._messages[event.output_index].add_text(event.text)
            case ItemDone() if event.output_index in self._messages:
                yield from self._messages[event.output_index].end(event.item)
            case AnnotationAdded() if event.output_index in self._messages:
                pass  # the ended item has it again
            case Status():
                yield event
            case ResponseDone() | RunDone():
                yield from self._close()
                yield event
            case _:
                yield from self._show_other(event)

    def build_carrier(self) -> Iterator[RunEvent]:
        """Yield an empty thought to which details can be attached."""
        index = self._new_index()
        yield from _build_thought_events(index, f"carrier_{index}", "")

    def _start_message(self, item: Item) -> _MessageParts:
        comments = item.get("phase") == "commentary"
        is_thought = self._has_called or (self._shows_thoughts and comments)
        may_end_in_call = self._may_call and item.get("phase") != "final_answer"
        hides = not self._shows_thoughts and (may_end_in_call or comments)
        return _MessageParts(
            item,
            self._new_index,
            emits=self._shows_thoughts,
            is_thought=is_thought,
            is_held=hides and not is_thought,
        )

    def _show_other(
        self,
        event: (
            ItemAdded
            | TextDelta
            | PartialImage
            | AnnotationAdded
            | ItemDone
            | ToolOutput
        ),
    ) -> Iterator[RunEvent]:
        if isinstance(event, ItemAdded) and is_call(event.item):
            yield from self._handle_call(event.item)
        if isinstance(event, TextDelta) and event.kind in ("summary", "reasoning"):
            self._has_thought = True
        if event.output_index not in self._indexes:
            self._indexes[event.output_index] = self._new_index()
        yield event._replace(output_index=self._indexes[event.output_index])

    def _handle_call(self, call: Item) -> Iterator[RunEvent]:
        """Turn the texts of this round into thoughts, because it calls a tool.

        A round without text gets a thought of ours.
        """
        for message in self._messages.values():
            yield from message.become_thought()
        self._store_texts()
        heard = any(message.is_shown for message in self._messages.values())
        if self._shows_thoughts and not (
            self._has_called or self._has_thought or heard
        ):
            name = call.get("name")
            asks = name == "ask_user"
            sentence = "I have a question." if asks else f"I am going to use {name}."
            yield from _build_thought_events(
                self._new_index(), str(call.get("call_id")), sentence
            )
        self._has_called = True

    def _close(self) -> Iterator[RunEvent]:
        messages = list(self._messages.values())
        has_answer = any(not one.is_commentary for one in messages)
        for message in messages:
            if not message.is_held:
                yield from message.close()
            elif not (self._has_called or (message.is_commentary and has_answer)):
                yield from message.release()
        if self._shows_thoughts and messages and not (self._has_called or has_answer):
            yield from messages[-1].repeat_as_answer()
        self._store_texts()

    def _store_texts(self) -> None:
        self._texts |= {index: one.text for index, one in self._messages.items()}

    def _new_index(self) -> int:
        self._next += 1
        return self._next - 1


def read_answer_text(output: Iterable[Item]) -> str:
    """Return the answer of a round without calls: no thoughts, no commentary."""
    messages = [item for item in output if item_type(item) == "message"]
    final = [item for item in messages if item.get("phase") != "commentary"]
    texts = [
        "".join(
            span.text
            for span in parse_think_spans(message_text(item))
            if not span.is_thought
        )
        for item in final or messages
    ]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _build_thought_events(index: int, name: str, text: str) -> Iterator[RunEvent]:
    thought = _ShownPart(index, name, is_thought=True)
    yield thought.start_event()
    if text:
        yield thought.add_text(text)
    yield thought.end_event()
