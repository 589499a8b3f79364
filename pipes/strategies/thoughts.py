"""What is shown of an agent's texts between its tools (R14).

The answer is the text of the round that calls no tool. Text of another round is a step,
and text in think tags is a thought. Whether a round calls tools is known only when a
call arrives:

    text of a round         thoughts are shown          thoughts are not shown
    before a call           shown; a step when a        held back; hidden when a call
                            call arrives                arrives, else shown
    after a call            a step                      hidden
    phase commentary        a step; the last one also   hidden, unless there is no
                            the answer if there is      other answer
                            none
    phase final_answer      as before a call            shown
    no tools offered        shown                       shown
    in think tags           a thought                   left out
    a call without a word   a thought that names the    nothing
                            tool

`IntermediateTexts` hides whole messages, and comes first: in the pipe, what no one sees
has no sources either. `ShownThoughts` shows what is left. Where a record of each
message is stored by its index, as in the pipe, a step stays the message that it is.
Elsewhere it is shown as a thought; `RunTexts` is both stages for such a host.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from openai_responses.items import (
    Item,
    content_parts,
    is_call,
    is_commentary,
    item_type,
    message_text,
    move_annotations,
)
from openai_responses.json_input import as_text
from openai_responses.loop.events import (
    GIVEN_UP,
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
)
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent, TextDelta
from owui_chat.events import AnswerEvent, CitedEvent, SourceCited
from strategies.shown_parts import ShownPart, announcement
from strategies.think_tags import (
    TextSpan,
    ThinkTagParser,
    answer_place_finder,
    answer_text,
    parse_spans,
)


class IntermediateTexts:
    """Hides the messages that are steps, if thoughts are not shown.

    Text that may become a step is held back until that is known: a model that names the
    phase of its messages says it at their beginning, with others a call tells. What is
    hidden is sent to the model again.
    """

    def __init__(self, *, are_shown: bool) -> None:
        self._are_shown = are_shown
        self._may_call = False
        """Whether the model may call tools in the current round."""
        self._calls = set[int]()
        """The indexes of its calls."""
        self._has_answer = False
        """Whether a message of the current round is known to be the answer."""
        self._held: dict[int, list[RunEvent]] = {}
        """The events of each message that is held back, by its index."""
        self._hidden: list[Item] = []
        """The hidden messages of the whole run."""
        self._hidden_indexes: set[int] = set()

    def begin_round(self, *, may_call: bool) -> None:
        """Prepare for another answer of the model."""
        self._may_call = may_call
        self._calls = set()
        self._has_answer = False

    def feed(self, event: RunEvent) -> list[RunEvent]:
        """Return what is shown of an event."""
        if self._are_shown:
            return [event]
        match event:
            case ItemAdded() if is_call(event.item):
                self._calls.add(event.output_index)
                return [*self._hide(self._held), event]
            case ItemAdded() if event.item.get("phase") == "final_answer":
                self._has_answer = True
                return [*self._hide(self._held), event]
            case ResponseDone():
                return [*self._release(), event]
            case RunDone():
                rest = self._release()
                hidden = {id(item) for item in self._hidden}
                output = [item for item in event.output if id(item) not in hidden]
                return [*rest, event._replace(output=tuple(output))]
            case ItemDone(item=item) if item == GIVEN_UP:
                self._calls.discard(event.output_index)
            case ItemDone() if event.output_index in self._hidden_indexes:
                self._hidden.append(event.item)  # it went on, and ends again
                return [HiddenMessage(event.output_index, event.item)]
        return [] if self._hold(event) else [event]

    def _hold(self, event: RunEvent) -> bool:
        """Hold an event back if it belongs to a message that may be hidden.

        Returns whether it is held.
        """
        if not isinstance(event, ItemEvent):
            return False
        if event.output_index in self._hidden_indexes:
            return True
        begins = isinstance(event, ItemAdded) and item_type(event.item) == "message"
        if begins and self._may_call:
            self._held[event.output_index] = []
        if event.output_index not in self._held:
            return False
        if isinstance(event, ItemDone) and item_type(event.item) != "message":
            # Its text was a thought (loop/tagged_thoughts.py), which is nowhere.
            del self._held[event.output_index]
            return True
        self._held[event.output_index].append(event)
        return True

    def _release(self) -> list[RunEvent]:
        """Return what is left at the end of a response.

        Commentary is the answer only if there is no other.
        """
        for events in self._held.values():
            if not _is_commentary_message(events):
                self._has_answer = True
        released: list[RunEvent] = []
        for index, events in list(self._held.items()):
            is_step = _is_commentary_message(events) and self._has_answer
            if self._calls or is_step:
                released += self._hide([index])
            else:
                released += events
        self._held = {}
        return released

    def _hide(self, indexes: Iterable[int]) -> list[RunEvent]:
        """Return the messages at `indexes` as hidden ones, if they are complete."""
        hidden: list[RunEvent] = []
        for index in list(indexes):  # a copy: hidden messages leave `_held`
            last = self._held[index][-1]
            if isinstance(last, ItemDone):
                del self._held[index]
                self._hidden.append(last.item)
                self._hidden_indexes.add(index)
                hidden.append(HiddenMessage(index, last.item))
        return hidden


def _is_commentary_message(events: Sequence[RunEvent]) -> bool:
    first = events[0]
    return isinstance(first, ItemAdded) and is_commentary(first.item)


_READ_KINDS = ("text", "refusal", "summary", "reasoning")
"""The kinds of deltas that users read."""


@dataclass(slots=True)
class _Message:
    """A message of the current response."""

    added: ItemAdded
    """Its beginning, which waits for the first text of the answer: a thought that comes
    before precedes the message."""
    is_step: bool
    """Whether all of it is shown as a thought."""
    parser: ThinkTagParser = field(default_factory=ThinkTagParser)
    has_begun: bool = False
    """Whether its beginning was shown."""
    texts: list[str] = field(default_factory=list)
    """What was shown as the answer."""
    has_thought: bool = False
    """Whether the model has written a thought."""
    thought: ShownPart | None = None
    """The thought that is open on the page."""
    ended: Item | None = None
    """The message as it ended."""
    repeated: ShownPart | None = None
    """The step that is shown again as the answer, because there is no other."""

    @property
    def id(self) -> str:
        """The id that its parts are named after."""
        return str(self.added.item.get("id") or "msg")


class ShownThoughts:
    """Shows the thoughts and messages of one answer over all its responses.

    Thoughts have negative indexes, so that all others stay those of the run: records
    are stored by them. `keeps_messages` says that there are such records.
    """

    def __init__(self, *, are_shown: bool, keeps_messages: bool) -> None:
        self._are_shown = are_shown
        self._keeps_messages = keeps_messages
        self._steps_as_thoughts = are_shown and not keeps_messages
        self._last_index = 0
        self._calls = set[int]()
        """The indexes of the calls of the current response."""
        self._has_words = False
        """Whether the current response brought text that users read."""
        self._messages: dict[int, _Message] = {}
        """Those of the current response, by their indexes."""
        self._open: dict[int, _Message] = {}
        """Those that have not ended."""
        self._announced: dict[str, Item] = {}
        """The thoughts that name a tool, by the ids of their calls."""
        self._answers: dict[int, str] = {}
        """What is shown as the answer, by the indexes of its messages."""

    def begin_round(self) -> None:
        """Prepare for another answer of the model.

        A call may be shown after its response, when the user was asked about it.
        """
        self._messages = {}
        self._calls = set()
        self._has_words = False

    def feed(self, event: CitedEvent) -> list[CitedEvent]:
        """Return the events that replace an event."""
        shown: list[CitedEvent] = []
        if isinstance(event, TextDelta) and event.kind in _READ_KINDS:
            self._has_words = self._has_words or bool(event.text.strip())
        match event:
            case ItemAdded():
                shown += self._begin(event)
            case TextDelta() if event.output_index in self._open:
                message = self._open[event.output_index]
                if event.kind == "text":
                    spans = message.parser.feed(event.text)
                    shown += self._show_spans(message, spans)
                else:
                    shown += [*_begin_message(message), event]
            case ItemDone() if event.output_index in self._open:
                shown += self._end(event)
            case ItemDone(item=item) if item == GIVEN_UP:
                self._calls.discard(event.output_index)
                shown.append(event)
            case ResponseDone() | RunDone():
                shown += [*self._end_response(), event]
                if self._keeps_messages:  # calls are shown within their response
                    self.begin_round()
            case _:
                shown.append(event)
        return shown

    def text_of(self, index: int) -> str:
        """Return what is shown as the answer of the message at `index`."""
        return self._answers.get(index, "")

    def build_carrier(self) -> list[RunEvent]:
        """Return an empty thought to which details can be attached."""
        return self._new_thought("carrier").events("")

    def new_index(self) -> int:
        """Return an index that no item of the run has."""
        self._last_index -= 1
        return self._last_index

    def _begin(self, event: ItemAdded) -> list[CitedEvent]:
        """Return the beginning of an item; that of a message waits."""
        shown: list[CitedEvent] = []
        if self._keeps_messages:
            for message in self._open.values():
                shown += _begin_message(message)
        if item_type(event.item) == "message":
            is_step = bool(self._calls) or is_commentary(event.item)
            message = _Message(event, is_step=is_step and self._steps_as_thoughts)
            self._messages[event.output_index] = message
            self._open[event.output_index] = message
            return shown
        if not is_call(event.item):
            return [*shown, event]
        is_first = not self._calls
        self._calls.add(event.output_index)
        if is_first:
            if self._steps_as_thoughts:
                shown += self._show_as_thoughts()
            if self._are_shown and not self._has_words:
                # A response without a word: a thought names the tool.
                call_id = str(event.item.get("call_id"))
                thought = self._new_thought(call_id)
                shown += thought.events(announcement(event.item))
                self._announced[call_id] = thought.end_event().item
        return [*shown, event]

    def _show_as_thoughts(self) -> list[CitedEvent]:
        """Return the messages that were shown as the answer again, now as thoughts."""
        turned: list[CitedEvent] = []
        for index, message in self._messages.items():
            self._answers.pop(index, None)
            if message.repeated:
                message.repeated.is_thought = True
                turned.append(message.repeated.end_event())
            elif message.has_begun and not message.is_step:
                step = ShownPart(
                    index, message.id, is_thought=True, texts=message.texts
                )
                turned.append(step.end_event())
            message.is_step = True
        return turned

    def _end(self, event: ItemDone) -> list[CitedEvent]:
        """Return the rest of a message, and its end with the text of the answer."""
        index = event.output_index
        message = self._open.pop(index)
        shown = self._close(message)
        if self._keeps_messages:
            shown += _begin_message(message)
            if not message.texts and message_text(event.item):
                # Whoever records the message does it at its first text.
                shown.append(TextDelta(index, "text", 0, ""))
        if item_type(event.item) == "message":
            message.ended = event.item
        else:  # its text was a thought (loop/tagged_thoughts.py)
            del self._messages[index]
        if message.has_begun and not message.is_step:
            if message.ended:
                self._answers[index] = answer_text(message_text(message.ended))
            shown.append(event._replace(shown=answer_text(event.shown)))
        return shown

    def _end_response(self) -> list[CitedEvent]:
        """Return what is left of messages that were interrupted.

        Commentary that was shown as a thought is the answer too, if there is no other.
        """
        shown: list[CitedEvent] = []
        for index, message in self._open.items():
            shown += self._close(message)
            if self._keeps_messages:
                shown += _begin_message(message)
            self._answers[index] = "".join(message.texts)
        messages = list(self._messages.items())
        if messages and not self._calls:
            index, last = messages[-1]
            text = answer_text(message_text(last.ended or {})).strip()
            is_missing = all(message.is_step for _, message in messages)
            if text and is_missing and index not in self._answers:
                part_index = self.new_index()
                part_id = f"{last.id}_{-part_index}"
                last.repeated = ShownPart(part_index, part_id, is_thought=False)
                shown += last.repeated.events(text)
                self._answers[index] = text
        self._open = {}
        return shown

    def _close(self, message: _Message) -> list[CitedEvent]:
        """Return text that could have been the beginning of a tag, and end a thought."""
        last_spans = message.parser.feed("", at_end=True)
        return [*self._show_spans(message, last_spans), *_end_thought(message)]

    def _show_spans(
        self, message: _Message, spans: Sequence[TextSpan]
    ) -> list[CitedEvent]:
        """Return the spans of a message: thoughts if they are shown, and texts."""
        shown: list[CitedEvent] = []
        for span in spans:
            text = span.text
            if span.is_thought or message.is_step:
                message.has_thought = True
                if not self._are_shown:
                    continue
                if message.thought is None:
                    text = text.lstrip()
                    if not text:
                        continue
                    message.thought = self._new_thought(message.id)
                    shown.append(message.thought.start_event())
                shown.append(message.thought.add_text(text))
                continue
            shown += _end_thought(message)
            # Blank lines after a thought are no part of the answer, and a message that
            # may become a thought does not begin with any.
            is_first = not message.texts
            if is_first and (message.has_thought or not self._keeps_messages):
                text = text.lstrip()
            if text:
                message.texts.append(text)
                shown += _begin_message(message)
                shown.append(TextDelta(message.added.output_index, "text", 0, text))
        return shown

    def without_thoughts(self, event: AnswerEvent) -> AnswerEvent:
        """Return an event whose messages are without thoughts, for whoever shows it.

        Whoever records the messages needs the model's own texts, so this comes later.
        """
        if isinstance(event, ItemDone):
            return event._replace(item=_answer_item(event.item))
        return event

    def shown_end(self, ended: RunDone) -> RunDone:
        """Return the end of a run with its output as it is shown."""
        output: list[Item] = []
        for item in ended.output:
            if is_call(item):
                announced = self._announced.get(str(item.get("call_id")))
                if announced:
                    output.append(announced)
            elif self._are_shown and _has_tags(item):
                # Its thoughts come before it, as one reasoning item.
                spans = parse_spans(message_text(item))
                texts = [span.text.strip() for span in spans if span.is_thought]
                text = "\n\n".join(text for text in texts if text)
                if text:
                    owner = str(item.get("id") or "msg")
                    thought = ShownPart(-1, owner, is_thought=True, texts=[text])
                    output.append(thought.end_event().item)
            output.append(_answer_item(item))
        return ended._replace(output=tuple(output))

    def _new_thought(self, owner: str) -> ShownPart:
        index = self.new_index()
        return ShownPart(index, f"{owner}_{-index}", is_thought=True)


class RunTexts:
    """Hides and shows the texts of a run that has no records of its messages."""

    def __init__(self, *, are_shown: bool) -> None:
        self._texts = IntermediateTexts(are_shown=are_shown)
        self._thoughts = ShownThoughts(are_shown=are_shown, keeps_messages=False)
        self.text_of = self._thoughts.text_of
        self.build_carrier = self._thoughts.build_carrier
        self.new_index = self._thoughts.new_index

    def begin_round(self, *, may_call: bool) -> None:
        """Prepare for another answer of the model."""
        self._texts.begin_round(may_call=may_call)
        self._thoughts.begin_round()

    def feed(self, event: RunEvent) -> list[RunEvent]:
        """Return the events that replace an event."""
        replaced: list[RunEvent] = []
        for kept in self._texts.feed(event):
            for shown in self._thoughts.feed(kept):
                if isinstance(shown, ItemDone):
                    replaced.append(shown._replace(item=_answer_item(shown.item)))
                elif not isinstance(shown, SourceCited):  # they are added later
                    replaced.append(shown)
        return replaced


def _begin_message(message: _Message) -> list[CitedEvent]:
    """Return the beginning of a message, if it still waits."""
    if message.has_begun:
        return []
    message.has_begun = True
    return [message.added]


def _end_thought(message: _Message) -> list[CitedEvent]:
    """Return the end of the thought that is open, if there is one."""
    if message.thought is None:
        return []
    end = message.thought.end_event()
    message.thought = None
    return [end]


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
    if not text:
        return part
    answer = {**part, "text": answer_text(text)}
    return move_annotations(answer, answer_place_finder(text))


def read_answer_text(output: Iterable[Item]) -> str:
    """Return the answer of a round without calls: no thoughts, no commentary."""
    messages = [item for item in output if item_type(item) == "message"]
    final = [item for item in messages if not is_commentary(item)]
    texts = [answer_text(message_text(item)).strip() for item in final or messages]
    return "\n\n".join(text for text in texts if text)
