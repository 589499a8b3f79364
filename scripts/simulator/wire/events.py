"""The events of a whole response in the API's order, and their bytes as server-sent events."""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simulator.options import Options
from simulator.scenarios.scenario import Ending, Reply
from simulator.sealing import make_digest, rewrite_seal

Item = dict[str, Any]
Event = dict[str, Any]
WORD_PATTERN = re.compile(r"\S+\s*|\s+")
PIECE_CHARACTERS = 8


def build_item_events(item: Item, index: int) -> Iterator[Event]:
    """Yield the events of one finished item at its place in the output."""
    begun = _empty_item(item)
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    place = {"item_id": item["id"], "output_index": index}
    for name, fields in STEPS_BY_TYPE.get(item["type"], _no_steps)(item):
        yield {"type": f"response.{name}", **place, **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


EventSteps = Iterator[tuple[str, Event]]


def split_words(text: str) -> list[str]:
    """Cut a text into deltas of a word each."""
    return WORD_PATTERN.findall(text)


def split_pieces(text: str) -> list[str]:
    """Cut arguments or code into deltas of a few characters each."""
    return [
        text[start : start + PIECE_CHARACTERS]
        for start in range(0, len(text), PIECE_CHARACTERS)
    ]


def _empty_item(item: Item) -> Item:
    """Return an item as ``output_item.added`` shows it: still empty."""
    emptied = {**item, **{key: v for key, v in EMPTY_FIELDS.items() if key in item}}
    if item["type"] == "web_search_call":
        emptied["action"] = {"type": "search"}
    if "encrypted_content" in item:
        # May be incomplete here (docs/reference/responses-api.md, "Items in later
        # requests"), so it always is.
        emptied["encrypted_content"] = item["encrypted_content"][:120]
    if item["type"] == "image_generation_call":
        emptied = {key: item[key] for key in ("id", "type")}
        emptied.update(status="in_progress", result=None)
    if item["type"] == "mcp_approval_request":
        return item
    return emptied


EMPTY_FIELDS: Mapping[str, Any] = {
    "content": [],
    "summary": [],
    "arguments": "",
    "input": "",
    "status": "in_progress",
    "code": "",
    "outputs": None,
    "output": None,
    "tools": [],
    "queries": [],
    "error": None,
}


def _no_steps(_item: Item) -> EventSteps:
    return iter(())


def _message(item: Item) -> EventSteps:
    for index, part in enumerate(item["content"]):
        place = {"content_index": index}
        if part["type"] == "refusal":
            empty = {**part, "refusal": ""}
            steps = _refusal(part)
        else:
            empty = {**part, "text": "", "annotations": []}
            steps = _text(part)
        yield "content_part.added", {**place, "part": empty}
        for name, fields in steps:
            yield name, {**place, **fields}
        yield "content_part.done", {**place, "part": part}


def _text(part: Item) -> EventSteps:
    """Yield the deltas, each annotation behind the words that it is about."""
    waiting = list(enumerate(part["annotations"]))
    sent_characters = 0
    for delta in split_words(part["text"]):
        yield "output_text.delta", {"delta": delta, "logprobs": []}
        sent_characters += len(delta)
        while waiting and _end_index(waiting[0][1]) <= sent_characters:
            yield _annotation(*waiting.pop(0))
    for index, annotation in waiting:
        yield _annotation(index, annotation)
    yield "output_text.done", {"text": part["text"], "logprobs": []}


def _end_index(annotation: Item) -> int:
    return int(annotation.get("end_index", annotation.get("index")) or 0)


def _annotation(index: int, annotation: Item) -> tuple[str, Event]:
    fields = {"annotation_index": index, "annotation": annotation}
    return "output_text.annotation.added", fields


def _refusal(part: Item) -> EventSteps:
    for delta in split_words(part["refusal"]):
        yield "refusal.delta", {"delta": delta}
    yield "refusal.done", {"refusal": part["refusal"]}


def _reasoning(item: Item) -> EventSteps:
    for index, part in enumerate(item["summary"]):
        place = {"summary_index": index}
        name = "reasoning_summary_part"
        yield f"{name}.added", {**place, "part": {**part, "text": ""}}
        for delta in split_words(part["text"]):
            yield "reasoning_summary_text.delta", {**place, "delta": delta}
        yield "reasoning_summary_text.done", {**place, "text": part["text"]}
        yield f"{name}.done", {**place, "part": part}
    for index, part in enumerate(item.get("content") or []):
        place = {"content_index": index}
        yield "content_part.added", {**place, "part": {**part, "text": ""}}
        for delta in split_words(part["text"]):
            yield "reasoning_text.delta", {**place, "delta": delta}
        yield "reasoning_text.done", {**place, "text": part["text"]}
        yield "content_part.done", {**place, "part": part}


def _build_text_steps(prefix: str, field: str) -> Callable[[Item], EventSteps]:
    """Return the steps of a field that is streamed in pieces."""

    def steps(item: Item) -> EventSteps:
        for delta in split_pieces(item[field]):
            yield f"{prefix}.delta", {"delta": delta}
        yield f"{prefix}.done", {field: item[field]}

    return steps


def _build_status_steps(prefix: str, *names: str) -> Callable[[Item], EventSteps]:
    """Return steps that only name how far a hosted call has come."""

    def steps(_item: Item) -> EventSteps:
        for name in names:
            yield f"{prefix}.{name}", {}

    return steps


def _code_interpreter(item: Item) -> EventSteps:
    prefix = "code_interpreter_call"
    yield f"{prefix}.in_progress", {}
    yield from _build_text_steps(f"{prefix}_code", "code")(item)
    yield f"{prefix}.interpreting", {}
    if item["status"] == "completed":
        yield f"{prefix}.completed", {}


def _image_generation(item: Item) -> EventSteps:
    prefix = "image_generation_call"
    yield f"{prefix}.in_progress", {}
    yield f"{prefix}.generating", {}
    if item["status"] == "failed":
        return
    shown = {key: item[key] for key in ("background", "output_format", "size")}
    yield (
        f"{prefix}.partial_image",
        {"partial_image_b64": item["result"], "partial_image_index": 0, **shown},
    )
    yield f"{prefix}.completed", {}


def _mcp_list_tools(item: Item) -> EventSteps:
    yield "mcp_list_tools.in_progress", {}
    yield f"mcp_list_tools.{'failed' if item.get('error') else 'completed'}", {}


def _mcp_call(item: Item) -> EventSteps:
    yield "mcp_call.in_progress", {}
    yield from _build_text_steps("mcp_call_arguments", "arguments")(item)
    yield f"mcp_call.{'failed' if item['error'] else 'completed'}", {}


STEPS_BY_TYPE: Mapping[str, Callable[[Item], EventSteps]] = {
    "compaction": _build_status_steps("compaction", "compacting"),
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _build_text_steps("function_call_arguments", "arguments"),
    "custom_tool_call": _build_text_steps("custom_tool_call_input", "input"),
    "web_search_call": _build_status_steps(
        "web_search_call", "in_progress", "searching", "completed"
    ),
    "file_search_call": _build_status_steps(
        "file_search_call", "in_progress", "searching", "completed"
    ),
    "code_interpreter_call": _code_interpreter,
    "image_generation_call": _image_generation,
    "mcp_list_tools": _mcp_list_tools,
    "mcp_call": _mcp_call,
}


FAILURE_EVENTS = ("response.failed", "error")
MAX_PADDING = 16


def build_stream(
    reply: Reply, opened: Item, closed: Item, options: Options
) -> list[Event]:
    """Return the events of a response, not yet numbered."""
    begun = {**opened, "status": "in_progress"}
    events: list[Event] = [{"type": "response.created", "response": opened}]
    if opened["background"]:
        events.append({"type": "response.queued", "response": opened})
    events.append({"type": "response.in_progress", "response": begun})
    events += _build_item_events(closed["output"], reply.ending)
    last = (
        reply.ending.before,
        _build_last_event(reply.ending, closed),
        reply.ending.behind,
    )
    events += [event for event in last if event is not None]
    if reply.disorder is not None:
        events = reply.disorder(events, options)
    return events


def apply_ending(items: Sequence[Item], ending: Ending) -> list[Item]:
    """Return the items as the ending leaves them.

    A limit leaves the last item incomplete; a failure leaves it out.
    """
    if ending.event in FAILURE_EVENTS:
        return list(items[:-1])
    if ending.event == "response.incomplete" and items:
        return [*items[:-1], {**items[-1], "status": "incomplete"}]
    return list(items)


def finish_output(items: Sequence[Item], ending: Ending) -> list[Item]:
    """Return the items of the response object that ends a stream.

    Their encrypted content is written anew: it differs from that of
    `response.output_item.done`, and both are accepted again (recorded: 15 of 15).
    """
    return [_rewrite_item(item) for item in apply_ending(items, ending)]


def _rewrite_item(item: Item) -> Item:
    content = item.get("encrypted_content")
    if not content:
        return item
    return {**item, "encrypted_content": rewrite_seal(content, "final")}


def number_events(events: Sequence[Event], obfuscated: bool) -> list[Event]:
    """Number events from 0 and pad the deltas, as the API does."""
    numbered = []
    for position, event in enumerate(events):
        kind = event["type"]
        padded = {"type": kind, "sequence_number": position, **event}
        if obfuscated and kind.endswith(".delta"):
            padding = make_digest(f"{position} {event['delta']}")
            padded["obfuscation"] = padding[: 1 + position % MAX_PADDING]
        numbered.append(padded)
    return numbered


def _build_item_events(items: Sequence[Item], ending: Ending) -> list[Event]:
    written = [list(build_item_events(item, index)) for index, item in enumerate(items)]
    if ending.event in FAILURE_EVENTS and written:
        written[-1] = written[-1][: max(2, len(written[-1]) // 2)]
    return [event for events in written for event in events]


def _build_last_event(ending: Ending, closed: Item) -> Event:
    if ending.event == "error":
        return {"type": "error", **ending.fields}
    output = finish_output(closed["output"], ending)
    return {"type": ending.event, "response": {**closed, "output": output}}


EventObject = Mapping[str, Any]
CHUNK_LENGTHS = (4, 16, 128)


def encode_event(event: EventObject, options: Options) -> bytes:
    """Write one event as the lines of a server-sent event."""
    indent = 1 if options.has("multiline") else None
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(event, ensure_ascii=False, indent=indent, separators=separators)
    lines = [f"data: {line}" for line in text.split("\n")]
    if not options.has("nameless"):
        lines.insert(0, f"event: {event['type']}")
    if options.has("comments"):
        lines.insert(0, ": a comment")
    end = _line_end(options)
    return "".join(f"{line}{end}" for line in (*lines, "")).encode()


def encode_end(options: Options) -> bytes:
    """Write what some gateways put behind the last event."""
    if not options.has("done"):
        return b""
    return f"data: [DONE]{_line_end(options) * 2}".encode()


def _line_end(options: Options) -> str:
    if options.has("crlf"):
        return "\r\n"
    return "\r" if options.has("cr") else "\n"


def split_chunks(
    writes: Iterable[bytes], options: Options, dice: random.Random
) -> Iterator[bytes]:
    """Cut writes into the chunks that were asked for, inside characters too."""
    size = options.text("chunks")
    for write in writes:
        start = 0
        while start < len(write):
            length = len(write) - start
            if size == "random":
                length = min(length, dice.randint(1, dice.choice(CHUNK_LENGTHS)))
            elif size:
                length = int(size)
            yield write[start : start + length]
            start += length
