"""Runs for tests: from the transcripts of the wire, or from a few items."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ulid

from openai_responses.endings import CUT
from openai_responses.errors import MalformedEvent, UnreadableAnswer
from openai_responses.items import Item, is_call, item_texts, item_type, open_calls
from openai_responses.loop.events import (
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.loop.response import ResponseState
from openai_responses.loop.tools import output_item, tool_error
from openai_responses.requests.replay import Origin, is_approval_request
from openai_responses.transport.stream import (
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    StreamEvent,
    TextDelta,
    parse_event,
)
from owui_chat.citations import Citations
from owui_chat.events import (
    AnswerEvent,
    CitedEvent,
    StoredRecord,
)
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.output_carrier import record_item
from owui_chat.storage.recorder import DetailsRecorder, NewRecord, Recorder, RecordScope
from owui_chat.storage.records import Record, write_records
from runs.tools import calling
from runs.transcripts import FOLDER as STREAMS
from stand_in.signing import SIGN
from upstream.wire import message_item, reasoning_item

TRANSCRIPTS = sorted(path.name for path in STREAMS.glob("*.sse"))
ORIGIN = Origin("gpt-5.2", "api.openai.com")
AUTHOR = RecordScope("m-1", ORIGIN, keeps_reasoning=True)
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


# ------------------------------------------------------------------------ items


def reasoning(name: str, summary: str = "Thinking.", **more: Any) -> Item:
    """A reasoning item as the wire ends it."""
    item = reasoning_item(summary, at=name, sealed=f"sealed-{name}")
    return {**item, "status": "completed", **more}


def message(name: str, text: str, phase: str | None = None, **part: Any) -> Item:
    """A message of the model as the wire ends it."""
    item = message_item(text, at=name, phase=phase)
    item["content"][0] |= {"logprobs": [], **part}
    return item


def refusal(name: str, text: str) -> Item:
    item = message(name, "")
    return {**item, "content": [{"type": "refusal", "refusal": text}]}


def call(number: str, arguments: str = '{"city": "Bern"}', **more: Any) -> Item:
    """A call of one tool as the wire ends it."""
    return calling("get_weather", number, arguments, **more)


def custom_call(name: str, text: str) -> Item:
    """A call of a custom tool as the wire ends it; it has no status there."""
    return {
        "type": "custom_tool_call",
        "id": f"ctc_{name}",
        "call_id": f"call_{name}",
        "name": "take_note",
        "input": text,
    }


def output(name: str, text: str = "rain") -> Item:
    """What a tool returned, as it is sent."""
    return {"type": "function_call_output", "call_id": f"call_{name}", "output": text}


def search(name: str) -> Item:
    """A search that the API ran: nothing that the chat shows or a later turn sends."""
    action = {"type": "search", "query": "rain", "sources": []}
    return {
        "id": f"ws_{name}",
        "type": "web_search_call",
        "status": "completed",
        "action": action,
    }


def without(item: Item, *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}


# ------------------------------------------------------------------------- runs


def run_of(*items: Item, status: str = "completed") -> list[RunEvent]:
    """What one response of these items reports, its texts in two pieces."""
    events: list[StreamEvent] = []
    for index, item in enumerate(items):
        events.append(ItemAdded(index, _begun(item)))
        for (kind, part), text in item_texts(item):
            half = (len(text) + 1) // 2
            events += [TextDelta(index, kind, part, text[:half])]
            events += [TextDelta(index, kind, part, text[half:])]
        events.append(ItemDone(index, item))
    response = {"id": "resp_1", "output": list(items), "usage": USAGE}
    events.append(FinalResponse(status, response))
    return _reported(events)


def run_with_tools(*outputs: Item) -> list[RunEvent]:
    """What a run reports that answers two calls and a text."""
    first = run_of(reasoning("1"), call("1"), call("2"))
    given = outputs or (output("1"), output("2", "snow"))
    answered: list[RunEvent] = [
        ToolOutput(3 + number, item, number == 1) for number, item in enumerate(given)
    ]
    head = ItemAdded(5, _begun(message("1", "")))
    text: list[RunEvent] = [
        head,
        TextDelta(5, "text", 0, "Rain."),
        ItemDone(5, message("1", "Rain.")),
    ]
    items = (reasoning("1"), call("1"), call("2"), *given, message("1", "Rain."))
    ended = first[-1]
    assert isinstance(ended, RunDone)
    return [*first[:-1], *answered, *text, ended._replace(output=items)]


def joined_rounds(rounds: Sequence[Sequence[RunEvent]]) -> list[RunEvent]:
    """What one run reports that answers the calls of each round."""
    events: list[RunEvent] = []
    output: list[Item] = []
    last = RunDone(CUT)
    for round_events in rounds:
        *parts, ended = round_events
        assert isinstance(ended, RunDone)
        first = len(output)
        events += [shifted(part, first) for part in parts]
        output += ended.output
        for item in open_calls(ended.output):
            answer = answered_call(item)
            events.append(ToolOutput(len(output), answer))
            output.append(answer)
        last = ended
    return [*events, last._replace(output=tuple(output))]


def shifted(event: RunEvent, first: int) -> RunEvent:
    """An event of a response as one of the whole run, where it began at `first`."""
    if isinstance(event, ResponseDone | Status | RunDone):
        return event
    return event._replace(output_index=event.output_index + first)


def answered_call(item: Item) -> Item:
    """The output of a call, as it is sent."""
    text = f"output of {item['call_id']}"
    kind = f"{item_type(item)}_output"
    return {"type": kind, "call_id": item["call_id"], "output": text}


def run_of_transcript(name: str, folder: Path = STREAMS) -> list[RunEvent]:
    return _reported(_parsed([(folder / name).read_bytes()], joins_deltas=False))


def run_of_chunks(
    chunks: Iterable[bytes], tools: Collection[str] | None = None
) -> list[RunEvent]:
    """What the run of a stream reports that comes in these chunks.

    `tools` are those that the request names, if that counts.
    """
    return _reported(_parsed(chunks, joins_deltas=True), tools)


def _parsed(chunks: Iterable[bytes], *, joins_deltas: bool) -> Iterator[StreamEvent]:
    """The events up to where the connection broke."""
    decoder = EventStreamDecoder(joins_deltas=joins_deltas)
    with suppress(MalformedEvent, UnreadableAnswer):
        for chunk in chunks:
            yield from map(parse_event, decoder.feed(chunk))
        yield from map(parse_event, decoder.close())


def _begun(item: Item) -> Item:
    """The item as the wire announces it: without its texts, not yet sealed."""
    empty: dict[str, Item] = {
        "message": {"content": []},
        "reasoning": {"summary": [], "encrypted_content": "not-yet"},
        "function_call": {"arguments": ""},
    }
    begun = {**item, "status": "in_progress", **empty.get(item_type(item), {})}
    return (
        begun if item.get("encrypted_content") else without(begun, "encrypted_content")
    )


def _reported(
    events: Iterable[StreamEvent], tools: Collection[str] | None = None
) -> list[RunEvent]:
    turn = ResponseState(tool_names=tools)
    reported = [event for given in events for event in turn.feed(given)]
    ending = turn.ending or CUT
    output = list(turn.output)
    for call_item in filter(is_call, turn.output if ending.is_failure else ()):
        answer = output_item(call_item, tool_error("it broke off."))
        reported.append(ToolOutput(len(output), answer, failed=True))
        output.append(answer)
    used = tuple(filter(None, (turn.usage,)))
    done = RunDone(ending, turn.usage, turn.usage, tuple(output), usages=used)
    return [*reported, done]


def ended_items(events: Sequence[RunEvent]) -> list[Item]:
    """The items of a run that ended, in the order of the wire."""
    ended = events[-1]
    return list(ended.output) if isinstance(ended, RunDone) else []


# --------------------------------------------------------------- kept and shown


@dataclass
class Ids:
    """Gives records ids that count up, all at one time."""

    given: int = 0

    def __call__(self) -> str:
        self.given += 1
        number = (1_795_262_400_000 << 80) | self.given
        return str(ulid.from_int(number))


class Page:
    """Shows a run as the pipe does: texts are cited before they are rendered."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._citations = Citations()
        self._view = NativeRenderer(now, HostedItems)

    @property
    def items(self) -> list[Item]:
        return self._view.output.items

    def render(self, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        cited = self._citations.feed(event) if isinstance(event, RunEvent) else [event]
        for each in cited:
            yield from self._view.render(each)


def without_addresses(text: str) -> str:
    """A text as the page draws it: the addresses of its numbers are not drawn."""
    return re.sub(r"\n\n(?:\[\d+\]: http\S+(?: \".*\")?\n?)+\Z", "", text)


def on_page(events: Iterable[AnswerEvent]) -> tuple[list[dict[str, Any]], list[Item]]:
    """What is sent of a run, and the items that the host has stored then."""
    page = Page(lambda: 0.0)
    chunks = [chunk for event in events for chunk in page.render(event)]
    return chunks, page.items


@dataclass
class Told:
    """What the run of a message showed and kept."""

    view: NativeRenderer
    chunks: list[dict[str, Any]] = field(default_factory=list)
    written: list[Record] = field(default_factory=list)

    @property
    def records(self) -> dict[str, Record]:
        """The records as they are after the last write of each."""
        return {record.ulid: record for record in self.written}


def tell(
    events: Sequence[RunEvent],
    author: RecordScope = AUTHOR,
    ids: Ids | None = None,
    in_output: bool = False,
) -> Told:
    """Keep and show a run, as the pipe does.

    With `in_output` the records go into the message's own output.
    """
    scope = author._replace(carrier="output") if in_output else author
    shown = Told(NativeRenderer(lambda: 100.0, HostedItems))
    kind = DetailsRecorder if scope.carrier == "details" else Recorder
    for event in recorded(events, kind(scope, ids or Ids())):
        if not isinstance(event, NewRecord):
            shown.chunks += shown.view.render(event)
            continue
        record, index = event
        shown.written.append(record)
        if in_output:
            value = write_records({record.ulid: record}, SIGN)
            shown.chunks += shown.view.render(
                StoredRecord(record_item(record.ulid, value), index)
            )
    return shown


def natives(chunks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chunks that are events of items, of which the host makes what it stores."""
    return [chunk for chunk in chunks if "type" in chunk]


def recorded(
    events: Iterable[RunEvent], recorder: Recorder | DetailsRecorder
) -> Iterator[AnswerEvent | NewRecord]:
    """The events of a run after citations and recorder.

    After a question of the API the run goes on.
    """
    citations = Citations()
    for event in events:
        for cited in citations.feed(event):
            yield from (cited,) if _asks(cited) else recorder.feed(cited)


def _asks(event: CitedEvent) -> bool:
    output = event.output if isinstance(event, RunDone) else ()
    return any(map(is_approval_request, output))


def has_marker(text: str) -> bool:
    return strip_markers(text) != text


def texts_of(events: Iterable[RunEvent]) -> dict[int, str]:
    """The text of each message of a run as far as it grew."""
    messages: dict[int, str] = {}
    for event in events:
        match event:
            case ItemAdded() if item_type(event.item) == "message":
                messages[event.output_index] = ""
            case TextDelta() if event.output_index in messages:
                messages[event.output_index] += event.text
    return messages
