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
"""

from collections.abc import Callable, Iterable, Iterator

from openai_responses.items import (
    Item,
    is_call,
    is_commentary,
    item_type,
    message_text,
)
from openai_responses.loop.events import (
    HiddenMessage,
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
    ItemEvent,
    TextDelta,
)
from strategies.shown_parts import ShownPart, announcement
from strategies.think_tags import (
    TextSpan,
    ThinkTagParser,
    answer_text,
    parse_spans,
)


class _MessageParts:
    """Shows a message as thoughts and answer texts.

    Text that is held back waits for `release` or `become_thought`.
    """

    def __init__(
        self,
        item: Item,
        new_index: Callable[[], int],
        *,
        shows_thoughts: bool,
        is_thought: bool,
    ) -> None:
        """Take the message as it begins; `is_thought` says that all of it is one."""
        self.is_thought = is_thought
        self.is_held = False
        self.is_commentary = is_commentary(item)
        self._item = item
        self._new_index = new_index
        self._shows_thoughts = shows_thoughts
        self._parser = ThinkTagParser()
        self._held: list[TextSpan] = []
        """The spans that wait while `is_held`."""
        self._parts: list[ShownPart] = []
        """The parts on the page."""
        self._is_complete = False

    @property
    def text(self) -> str:
        """The text shown as the answer, joined as the host joins it."""
        return "\n".join(part.text for part in self._parts if not part.is_thought)

    @property
    def is_shown(self) -> bool:
        """Whether any part of the message was shown."""
        return bool(self._parts)

    def add_text(self, text: str) -> Iterator[RunEvent]:
        """Yield what can be shown after more text has come."""
        yield from self._show_spans(self._parser.feed(text))

    def close(self) -> Iterator[RunEvent]:
        """Yield text that could have been the beginning of a tag."""
        yield from self._show_spans(self._parser.feed("", at_end=True))

    def end(self, item: Item) -> Iterator[RunEvent]:
        """Yield the end of the message; `item` is the complete one."""
        self._item = item
        self._is_complete = True
        yield from self.close()
        yield from self._end_last()

    def become_thought(self) -> Iterator[RunEvent]:
        """Turn the shown text into a thought: its round calls a tool."""
        self.is_thought = True
        self._held = []
        if not self._shows_thoughts:
            return
        for part in self._parts:
            if not part.is_thought:
                part.is_thought = True
                yield part.end_event()

    def turn_into(self, thought: Item) -> Iterator[RunEvent]:
        """Yield the end of a text that was a thought (loop/tagged_thoughts.py)."""
        for part in self._parts:
            if part.is_thought:
                yield part.end_event()
            else:
                yield ItemDone(part.index, thought)

    def release(self) -> Iterator[RunEvent]:
        """Yield what was held back."""
        held = self._held
        self.is_held = False
        self._held = []
        yield from self._show_spans(held)
        yield from self.close()
        if self._is_complete:
            yield from self._end_last()

    def repeat_as_answer(self) -> Iterator[RunEvent]:
        """Yield a message that was shown as a thought again, as the answer."""
        text = _answer_text(self._item)
        if text and not self.text:
            yield from self._add_part(is_thought=False).events(text)

    def _show_spans(self, spans: list[TextSpan]) -> Iterator[RunEvent]:
        """Yield spans as parts; those that are held back or not shown are not."""
        for span in spans:
            is_thought = span.is_thought or self.is_thought
            if self.is_held:
                self._held.append(span)
            elif self._shows_thoughts or not is_thought:
                yield from self._show(span.text, is_thought)

    def _show(self, text: str, is_thought: bool) -> Iterator[RunEvent]:
        """Yield a text in the last part, or in a new one of its kind."""
        last = self._parts[-1] if self._parts else None
        if last is None or last.is_thought is not is_thought:
            text = text.lstrip()  # blank lines between a thought and an answer
            if not text:
                return
            if last:
                yield last.end_event()
            last = self._add_part(is_thought)
            yield last.start_event()
        yield last.add_text(text)

    def _add_part(self, is_thought: bool) -> ShownPart:
        """Return a new part; the first one has the id of the message."""
        index = self._new_index()
        message_id = str(self._item.get("id") or "")
        part_id = message_id or "msg"
        if self._parts or not message_id:
            part_id = f"{part_id}_{index}"
        part = ShownPart(index, part_id, is_thought)
        self._parts.append(part)
        return part

    def _end_last(self) -> Iterator[RunEvent]:
        """Yield the end of the last part; a message in one part ends unchanged."""
        if not self._parts:
            return
        last = self._parts[-1]
        text = message_text(self._item)
        is_one_part = parse_spans(text) == [TextSpan(is_thought=False, text=text)]
        if is_one_part and not last.is_thought:
            last.text = text
            yield ItemDone(last.index, self._item)
        else:
            yield last.end_event()


class ThoughtFilter:
    """Shows one run, over all its rounds, under its own indexes."""

    def __init__(self, *, shows_thoughts: bool) -> None:
        """Start before the first round."""
        self._shows_thoughts = shows_thoughts
        self._may_call = False
        """Whether the model may call tools in this round."""
        self._has_called = False
        """Whether it has called one."""
        self._has_thought = False
        """Whether this round brought reasoning."""
        self._next_index = 0
        self._indexes: dict[int, int] = {}
        """The indexes of items that are not messages, by those in the run."""
        self._messages: dict[int, _MessageParts] = {}
        """The messages of this round, by their indexes in the run."""

    def begin_round(self, *, may_call: bool) -> None:
        """Prepare for another answer of the model."""
        self._may_call = may_call
        self._has_called = False
        self._has_thought = False
        self._messages = {}

    def get_text(self, index: int) -> str:
        """Return the shown answer of this round's message at `index`."""
        message = self._messages.get(index)
        return message.text if message else ""

    def show(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the events that replace an event."""
        match event:
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = self._start_message(event.item)
            case TextDelta() if event.output_index in self._messages:
                yield from self._messages[event.output_index].add_text(event.text)
            case ItemDone() if event.output_index in self._messages:
                message = self._messages[event.output_index]
                if item_type(event.item) == "message":
                    yield from message.end(event.item)
                else:
                    del self._messages[event.output_index]
                    self._has_thought = True
                    yield from message.turn_into(event.item)
            case AnnotationAdded() if event.output_index in self._messages:
                pass  # the ended item has it again
            case Status() | HiddenMessage():
                yield event
            case ResponseDone() | RunDone():
                yield from self._close()
                yield event
            case _:
                yield from self._show_other(event)

    def build_carrier(self) -> Iterator[RunEvent]:
        """Yield an empty thought to which details can be attached."""
        index = self._new_index()
        yield from ShownPart(index, f"carrier_{index}", is_thought=True).events("")

    def _start_message(self, item: Item) -> _MessageParts:
        """Return a message that begins, by the table of this module."""
        is_comment = is_commentary(item)
        is_shown_comment = self._shows_thoughts and is_comment
        message = _MessageParts(
            item,
            self._new_index,
            shows_thoughts=self._shows_thoughts,
            is_thought=self._has_called or is_shown_comment,
        )
        may_end_in_call = self._may_call and item.get("phase") != "final_answer"
        if not self._shows_thoughts and not self._has_called:
            message.is_held = may_end_in_call or is_comment
        return message

    def _show_other(self, event: ItemEvent | ToolOutput) -> Iterator[RunEvent]:
        """Yield an event of any other item under its index among those shown."""
        if isinstance(event, ItemAdded) and is_call(event.item):
            yield from self._show_call(event.item)
        if isinstance(event, TextDelta) and event.kind in ("summary", "reasoning"):
            self._has_thought = True
        if event.output_index not in self._indexes:
            self._indexes[event.output_index] = self._new_index()
        yield event._replace(output_index=self._indexes[event.output_index])

    def _show_call(self, call: Item) -> Iterator[RunEvent]:
        """Turn the texts of this round into thoughts, because it calls a tool.

        A round without text gets a thought of ours.
        """
        if self._has_called:
            return
        self._has_called = True
        messages = list(self._messages.values())
        for message in messages:
            yield from message.become_thought()
        has_text = self._has_thought or any(message.is_shown for message in messages)
        if self._shows_thoughts and not has_text:
            yield from self._announce_call(call)

    def _announce_call(self, call: Item) -> Iterator[RunEvent]:
        """Yield a thought about a call."""
        call_id = str(call.get("call_id"))
        thought = ShownPart(self._new_index(), call_id, is_thought=True)
        yield from thought.events(announcement(call))

    def _close(self) -> Iterator[RunEvent]:
        """Yield what is left at the end of a round."""
        messages = list(self._messages.values())
        has_answer = any(not message.is_commentary for message in messages)
        for message in messages:
            is_step = self._has_called or (message.is_commentary and has_answer)
            if not message.is_held:
                yield from message.close()
            elif not is_step:
                yield from message.release()
        lacks_answer = not (self._has_called or has_answer)
        if self._shows_thoughts and messages and lacks_answer:
            yield from messages[-1].repeat_as_answer()

    def _new_index(self) -> int:
        """Return a free index."""
        index = self._next_index
        self._next_index += 1
        return index


def read_answer_text(output: Iterable[Item]) -> str:
    """Return the answer of a round without calls: no thoughts, no commentary."""
    messages = [item for item in output if item_type(item) == "message"]
    final = [item for item in messages if not is_commentary(item)]
    texts = [_answer_text(message) for message in final or messages]
    return "\n\n".join(text for text in texts if text)


def _answer_text(message: Item) -> str:
    """Return the text of a message without its thoughts."""
    return answer_text(message_text(message)).strip()
