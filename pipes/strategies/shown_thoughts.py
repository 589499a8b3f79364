"""Shows an agent's thoughts beside messages that stay items of their own (R14).

Where a host stores each message of the model with its record, a message cannot become
another item, as in `strategies.thoughts`. So it keeps its place and its own text, and
only what is shown of it changes:

    text in think tags             a thought in front of the message, or nothing
    a call without a word          a thought in front of it that names the tool, or
                                   nothing
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from openai_responses.items import (
    Item,
    content_parts,
    is_call,
    item_type,
    message_text,
)
from openai_responses.json_input import as_text
from openai_responses.loop.events import ResponseDone, RunDone
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import AnswerEvent, CitedEvent
from strategies.shown_parts import ShownPart, announcement
from strategies.think_tags import (
    TextSpan,
    ThinkTagParser,
    answer_text,
    parse_spans,
)

_READ_KINDS = ("text", "refusal", "summary", "reasoning")
"""The kinds of deltas that people read."""


@dataclass(slots=True)
class _GrowingMessage:
    """A message that has not ended."""

    added: ItemAdded
    """Its beginning, which waits for the first text of the answer: a thought that comes
    before stands in front of the message."""
    parser: ThinkTagParser = field(default_factory=ThinkTagParser)
    has_begun: bool = False
    """Whether its beginning was shown."""
    has_text: bool = False
    """Whether text of the answer was shown."""
    has_thought: bool = False
    """Whether the model has written a thought."""
    thought: ShownPart | None = None
    """The thought that is open on the page."""


class ShownThoughts:
    """Shows one answer over all its responses.

    Thoughts have negative indexes, so that all others stay those of the run: records
    are stored by them.
    """

    def __init__(self, *, are_shown: bool) -> None:
        """Start before the first response."""
        self._are_shown = are_shown
        self._thought_count = 0
        self._has_called = False
        """Whether the current response calls a tool."""
        self._has_words = False
        """Whether the current response brought text that people read."""
        self._messages: dict[int, _GrowingMessage] = {}
        """Those that have not ended, by their indexes."""
        self._announced: dict[str, Item] = {}
        """The thoughts that name a tool, by the ids of their calls."""

    def show(self, event: CitedEvent) -> Iterator[CitedEvent]:
        """Yield the events that replace an event."""
        match event:
            case ItemAdded():
                yield from self._begin(event)
            case TextDelta() if event.output_index in self._messages:
                yield from self._grow(self._messages[event.output_index], event)
            case ItemDone() if event.output_index in self._messages:
                yield from self._end(event)
            case ResponseDone() | RunDone():
                yield from self._end_response()
                yield event
            case _:
                self._note_words(event)
                yield event

    def _begin(self, event: ItemAdded) -> Iterator[CitedEvent]:
        """Yield the beginning of an item; that of a message waits."""
        for message in self._messages.values():
            yield from _begin_message(message)
        if item_type(event.item) == "message":
            self._messages[event.output_index] = _GrowingMessage(event)
            return
        if is_call(event.item):
            yield from self._announce(event.item)
        yield event

    def _announce(self, call: Item) -> Iterator[CitedEvent]:
        """Yield a thought about the first call of a response without a word."""
        is_silent = not (self._has_called or self._has_words)
        self._has_called = True
        if self._are_shown and is_silent:
            call_id = str(call.get("call_id"))
            thought = self._new_thought(call_id)
            yield from thought.events(announcement(call))
            self._announced[call_id] = thought.end_event().item

    def _grow(self, message: _GrowingMessage, event: TextDelta) -> Iterator[CitedEvent]:
        """Yield more text of a message."""
        self._note_words(event)
        if event.kind != "text":
            yield from _begin_message(message)
            yield event
            return
        yield from self._show_spans(message, message.parser.feed(event.text))

    def _end(self, event: ItemDone) -> Iterator[CitedEvent]:
        """Yield the rest of a message, and its end with the text of the answer."""
        message = self._messages.pop(event.output_index)
        yield from self._close(message)
        yield from _begin_message(message)
        if not message.has_text and message_text(event.item):
            # Whoever records the message does it at its first text.
            yield TextDelta(event.output_index, "text", 0, "")
        yield event._replace(shown=answer_text(event.shown))

    def _end_response(self) -> Iterator[CitedEvent]:
        """Yield what is left of messages that were interrupted."""
        for message in self._messages.values():
            yield from self._close(message)
            yield from _begin_message(message)
        self._messages = {}
        self._has_called = False
        self._has_words = False

    def _close(self, message: _GrowingMessage) -> Iterator[CitedEvent]:
        """Yield text that could have been the beginning of a tag, and end a thought."""
        last_spans = message.parser.feed("", at_end=True)
        yield from self._show_spans(message, last_spans)
        yield from _end_thought(message)

    def _show_spans(
        self, message: _GrowingMessage, spans: Sequence[TextSpan]
    ) -> Iterator[CitedEvent]:
        """Yield the spans of a message: thoughts if they are shown, and texts."""
        for span in spans:
            if not span.is_thought:
                yield from _end_thought(message)
                yield from _show_text(message, span.text)
                continue
            message.has_thought = True
            if self._are_shown:
                yield from self._show_thought(message, span.text)

    def _show_thought(
        self, message: _GrowingMessage, text: str
    ) -> Iterator[CitedEvent]:
        """Yield more of a thought, or a new one without the blank lines before it."""
        if message.thought is None:
            text = text.lstrip()
            if not text:
                return
            owner = str(message.added.item.get("id") or "msg")
            message.thought = self._new_thought(owner)
            yield message.thought.start_event()
        yield message.thought.add_text(text)

    def finish(self, event: AnswerEvent) -> AnswerEvent:
        """Return an event whose messages are without thoughts, for whoever shows it.

        Whoever records the messages needs the model's own texts, so this comes later.
        """
        if isinstance(event, ItemDone):
            return event._replace(item=_answer_item(event.item))
        return event

    def whole(self, ended: RunDone) -> RunDone:
        """Return the end of a run with its output as it is shown."""
        output: list[Item] = []
        for item in ended.output:
            output += self._shown_items(item)
        return ended._replace(output=tuple(output))

    def _shown_items(self, item: Item) -> Iterator[Item]:
        """Yield an item of a whole answer, behind its thought if that is shown."""
        if is_call(item):
            announced = self._announced.get(str(item.get("call_id")))
            if announced:
                yield announced
        elif self._are_shown:
            yield from _thought_items(item)
        yield _answer_item(item)

    def _new_thought(self, owner: str) -> ShownPart:
        """Return a thought that belongs to an item."""
        self._thought_count += 1
        number = self._thought_count
        return ShownPart(-number, f"{owner}_{number}", is_thought=True)

    def _note_words(self, event: CitedEvent) -> None:
        """Remember that a response has something to read."""
        if not isinstance(event, TextDelta) or event.kind not in _READ_KINDS:
            return
        if event.text.strip():
            self._has_words = True


def _begin_message(message: _GrowingMessage) -> Iterator[CitedEvent]:
    """Yield the beginning of a message, if it still waits."""
    if not message.has_begun:
        message.has_begun = True
        yield message.added


def _show_text(message: _GrowingMessage, text: str) -> Iterator[CitedEvent]:
    """Yield more of the answer; blank lines behind a thought are no part of it."""
    if message.has_thought and not message.has_text:
        text = text.lstrip()
    if not text:
        return
    message.has_text = True
    yield from _begin_message(message)
    yield TextDelta(message.added.output_index, "text", 0, text)


def _end_thought(message: _GrowingMessage) -> Iterator[CitedEvent]:
    """Yield the end of the thought that is open, if there is one."""
    if message.thought:
        yield message.thought.end_event()
        message.thought = None


def _thought_items(item: Item) -> Iterator[Item]:
    """Yield the thoughts of a message, as one reasoning item."""
    if not _has_tags(item):
        return
    spans = parse_spans(message_text(item))
    texts = [span.text.strip() for span in spans if span.is_thought]
    if any(texts):
        thought = ShownPart(-1, str(item.get("id") or "msg"), is_thought=True)
        thought.add_text("\n\n".join(text for text in texts if text))
        yield thought.end_event().item


def _answer_item(item: Item) -> Item:
    """Return a message without its thoughts; any other item as it is."""
    if not _has_tags(item):
        return item
    parts = [_answer_part(part) for part in content_parts(item.get("content"))]
    return {**item, "content": parts}


def _has_tags(item: Item) -> bool:
    return item_type(item) == "message" and "think>" in message_text(item).lower()


def _answer_part(part: Item) -> Item:
    """Return a part of a message without thoughts; its citations keep their words."""
    text = as_text(part.get("text"))
    answer = dict(part)
    if text:
        answer["text"] = answer_text(text)
    annotations = content_parts(part.get("annotations"))
    if annotations:
        moved = [_move_annotation(annotation, text) for annotation in annotations]
        answer["annotations"] = moved
    return answer


def _move_annotation(annotation: Item, text: str) -> Item:
    """Return an annotation of `text` with its indexes in the answer.

    An index moves by the characters of the thoughts before it.
    """
    moved = dict(annotation)
    for name in ("start_index", "end_index"):
        index = annotation.get(name)
        if isinstance(index, int):
            moved[name] = len(answer_text(text[:index]))
    return moved
