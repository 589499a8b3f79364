"""Very large answers, and hostile texts of megabytes: what it takes to show them.

Each function prepares one case of a given size and returns its work.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from gpt5_agent.shell.views import HostRenderer
from large_cases.chats import (
    MODEL,
    ORIGIN,
    SIGN,
    call_item,
    thought_item,
)
from openai_responses.endings import COMPLETED
from openai_responses.items import Item
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent, ToolOutput
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.citations import Citations
from owui_chat.events import StoredRecord
from owui_chat.render.completions import ChunkRenderer
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.output_carrier import record_item
from owui_chat.storage.recorder import NewRecord, Recorder, RecordScope
from owui_chat.storage.records import write_records
from strategies.thoughts import RunTexts
from upstream.wire import message_item

Work = Callable[[], object]

_DELTA_CHARACTERS = 100_000


# ---------------------------------------------------------------- what shows an answer


def _show_and_record(events: Iterable[RunEvent]) -> None:
    """Show an answer in the page, and record it, as the pipe does."""
    view = NativeRenderer(lambda: 0.0, HostedItems)
    scope = RecordScope("a", ORIGIN, keeps_reasoning=True, carrier="output")
    ulids = itertools.count()

    def next_ulid() -> str:
        return f"{next(ulids):026d}"

    recorder = Recorder(scope, next_ulid)
    citations = Citations()
    for event in events:
        for cited in citations.feed(event):
            for recorded in recorder.feed(cited):
                if not isinstance(recorded, NewRecord):
                    _consume(view.render(recorded))
                    continue
                record, index = recorded
                value = write_records({record.ulid: record}, SIGN)
                stored = StoredRecord(record_item(record.ulid, value), index)
                _consume(view.render(stored))


def _consume(chunks: Iterable[object]) -> None:
    for _ in chunks:
        pass


def _item_events(items: Iterable[Item]) -> list[RunEvent]:
    """Return the events of items that arrive whole, one after the other."""
    events: list[RunEvent] = []
    for index, item in enumerate(items):
        events += [ItemAdded(index, item), ItemDone(index, item)]
    return events


def _message_events(index: int, message: Item, text: str) -> list[RunEvent]:
    """Return the events of a message whose text arrives in large deltas."""
    events: list[RunEvent] = [ItemAdded(index, {**message, "content": []})]
    for start in range(0, len(text), _DELTA_CHARACTERS):
        delta = text[start : start + _DELTA_CHARACTERS]
        events.append(TextDelta(index, "text", 0, delta))
    return [*events, ItemDone(index, message)]


def _done(output: Iterable[Item]) -> RunDone:
    return RunDone(COMPLETED, output=tuple(output))


# ---------------------------------------------------------------- answers


def recorded_calls(count: int) -> Work:
    """Calls of one response with their outputs."""
    calls = [call_item(number) for number in range(count)]
    outputs = []
    output_events: list[RunEvent] = []
    for number, call in enumerate(calls):
        output = {
            "type": "function_call_output",
            "call_id": call["call_id"],
            "output": "Rain.",
        }
        outputs.append(output)
        output_events.append(ToolOutput(count + number, output))
    events = [
        *_item_events(calls),
        ResponseDone(),
        *output_events,
        _done([*calls, *outputs]),
    ]
    return partial(_show_and_record, events)


def recorded_messages(count: int) -> Work:
    """Messages with reasoning between them, each with a record of its own."""
    return _answer_with_phase(count, "final_answer")


def recorded_commentary(count: int) -> Work:
    """The same with commentary, which has a card of its own."""
    return _answer_with_phase(count, "commentary")


def _answer_with_phase(count: int, phase: str) -> Work:
    events: list[RunEvent] = []
    output: list[Item] = []
    for number in range(count):
        text = f"Step {number}."
        reasoning = thought_item(number)
        message = message_item(text, at=number, phase=phase)
        index = len(output)
        events += [ItemAdded(index, reasoning), ItemDone(index, reasoning)]
        events += _message_events(index + 1, message, text)
        output += [reasoning, message]
    return partial(_show_and_record, [*events, _done(output)])


def cited_sources(count: int) -> Work:
    """An answer with many sources, as the page is shown it."""
    message = _message_with_links(count)
    events = [*_message_events(0, message, ""), _done([message])]
    return partial(_show_and_record, events)


def plain_sources(count: int) -> Work:
    return partial(_show_plainly, _message_events(0, _message_with_links(count), ""))


def _show_plainly(events: Sequence[RunEvent]) -> None:
    view = ChunkRenderer("chatcmpl-1", 0, MODEL)
    for event in events:
        _consume(view.render(event))


def _message_with_links(count: int) -> Item:
    text = ""
    annotations = []
    for number in range(count):
        url = f"https://a.example/{number}?utm_source=openai"
        annotations.append(
            {
                "type": "url_citation",
                "url": url,
                "title": f"Page {number}",
                "start_index": len(text),
                "end_index": len(text) + 10,
            }
        )
        text += f"([a.example]({url})) "
    message = message_item(text)
    message["content"][0]["annotations"] = annotations
    return message


def calls_of_the_agent(count: int) -> Work:
    """Calls and texts of one round of the pipeline's agent."""
    items = []
    for number in range(count):
        items.append(message_item(f"Step {number}.", at=number))
        items.append(call_item(number))
    return partial(_show_round, [*_item_events(items), ResponseDone()])


def _show_round(events: Sequence[RunEvent]) -> None:
    thoughts = RunTexts(are_shown=True)
    view = HostRenderer(True, ORIGIN, SIGN)
    thoughts.begin_round(may_call=True)
    for event in events:
        for shown in thoughts.feed(event):
            _consume(view.show(shown))


# ---------------------------------------------------------------- hostile texts


def foreign_lines(characters: int) -> Work:
    """Marker lines of another pipe that become such only one after the other."""
    line = "[0123456789ABCDEFGHIJ]: #\n"
    text = line + _repeat(f"\u3000{line}", characters)
    return partial(strip_markers, text)


def half_links(characters: int) -> Work:
    """A text of beginnings of links."""
    text = _repeat("[a](https://b(c [d]([https://e?utm_source=openai ", characters)
    message = message_item(text)
    events = [*_message_events(0, message, text), _done([message])]
    return partial(_show_and_record, events)


def _repeat(piece: str, characters: int) -> str:
    return piece * (characters // len(piece))
