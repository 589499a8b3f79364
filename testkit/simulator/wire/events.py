"""The events of a response in the API's order, and their bytes as server-sent events."""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simulator.options import Options
from simulator.scenarios.scenario import Ending, Reply
from simulator.sealing import make_digest, rewrite_seal

Item = dict[str, Any]
Event = dict[str, Any]
WORD_PATTERN = re.compile(r"\S+\s*|\s+")
PIECE_CHARACTERS = 8


def build_item_events(item: Item, index: int) -> Iterator[Event]:
    """Yield the events of one item of the output, from its beginning to its end."""
    empty = _empty_item(item)
    yield {"type": "response.output_item.added", "output_index": index, "item": empty}
    position = {"item_id": item["id"], "output_index": index}
    steps = STEPS_BY_TYPE.get(item["type"])
    for name, fields in steps(item) if steps else ():
        yield {"type": f"response.{name}", **position, **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


EventSteps = Iterator[tuple[str, Event]]
"""The names and fields of the events between the beginning and the end of an item."""


def _empty_item(item: Item) -> Item:
    """Return an item as ``output_item.added`` shows it: without content."""
    if item["type"] == "mcp_approval_request":
        return item
    if item["type"] == "image_generation_call":
        empty = {"id": item["id"], "type": item["type"]}
        return {**empty, "status": "in_progress", "result": None}
    empty = {key: EMPTY_FIELDS.get(key, value) for key, value in item.items()}
    if item["type"] == "web_search_call":
        empty["action"] = {"type": "search"}
    if "encrypted_content" in item:
        # May be incomplete here (docs/reference/responses-api.md, "Items in later
        # requests"), so it always is.
        empty["encrypted_content"] = item["encrypted_content"][:120]
    return empty


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


def _message_steps(item: Item) -> EventSteps:
    for index, part in enumerate(item["content"]):
        position = {"content_index": index}
        if part["type"] == "refusal":
            empty = {**part, "refusal": ""}
            steps = _text_field_steps("refusal", part["refusal"], "refusal")
        else:
            empty = {**part, "text": "", "annotations": []}
            steps = _text_steps(part)
        yield "content_part.added", {**position, "part": empty}
        for name, fields in steps:
            yield name, {**position, **fields}
        yield "content_part.done", {**position, "part": part}


def _text_field_steps(prefix: str, text: str, field: str = "text") -> EventSteps:
    """Yield a delta for each word, then the whole text."""
    for delta in WORD_PATTERN.findall(text):
        yield f"{prefix}.delta", {"delta": delta}
    yield f"{prefix}.done", {field: text}


def _text_steps(part: Item) -> EventSteps:
    """Yield the deltas, and each annotation after the words that it is about."""
    unsent = list(enumerate(part["annotations"]))
    sent_characters = 0
    for word in (*WORD_PATTERN.findall(part["text"]), ""):
        if word:
            yield "output_text.delta", {"delta": word, "logprobs": []}
        sent_characters += len(word)
        # Those that are left at the end come there, wherever their places are.
        while unsent:
            annotation = unsent[0][1]
            end = annotation.get("end_index", annotation.get("index")) or 0
            if word and end > sent_characters:
                break
            index, annotation = unsent.pop(0)
            fields = {"annotation_index": index, "annotation": annotation}
            yield "output_text.annotation.added", fields
    yield "output_text.done", {"text": part["text"], "logprobs": []}


def _reasoning_steps(item: Item) -> EventSteps:
    for parts, place, part_kind, text_kind in (
        (
            item["summary"],
            "summary_index",
            "reasoning_summary_part",
            "reasoning_summary_text",
        ),
        (item.get("content") or [], "content_index", "content_part", "reasoning_text"),
    ):
        for index, part in enumerate(parts):
            position = {place: index}
            yield f"{part_kind}.added", {**position, "part": {**part, "text": ""}}
            for name, fields in _text_field_steps(text_kind, part["text"]):
                yield name, {**position, **fields}
            yield f"{part_kind}.done", {**position, "part": part}


def _build_piece_steps(prefix: str, field: str) -> Callable[[Item], EventSteps]:
    """Return the steps of a field that is streamed in pieces."""

    def steps(item: Item) -> EventSteps:
        text = item[field]
        for start in range(0, len(text), PIECE_CHARACTERS):
            piece = text[start : start + PIECE_CHARACTERS]
            yield f"{prefix}.delta", {"delta": piece}
        yield f"{prefix}.done", {field: text}

    return steps


def _build_status_steps(prefix: str, *names: str) -> Callable[[Item], EventSteps]:
    """Return steps without fields, which name the states of a hosted call."""

    def steps(_item: Item) -> EventSteps:
        for name in names:
            yield f"{prefix}.{name}", {}

    return steps


def _code_interpreter_steps(item: Item) -> EventSteps:
    yield "code_interpreter_call.in_progress", {}
    yield from _build_piece_steps("code_interpreter_call_code", "code")(item)
    yield "code_interpreter_call.interpreting", {}
    if item["status"] == "completed":
        yield "code_interpreter_call.completed", {}


def _image_generation_steps(item: Item) -> EventSteps:
    yield "image_generation_call.in_progress", {}
    yield "image_generation_call.generating", {}
    if item["status"] == "failed":
        return
    partial_image = {
        "partial_image_b64": item["result"],
        "partial_image_index": 0,
        "background": item["background"],
        "output_format": item["output_format"],
        "size": item["size"],
    }
    yield "image_generation_call.partial_image", partial_image
    yield "image_generation_call.completed", {}


def _mcp_list_steps(item: Item) -> EventSteps:
    yield "mcp_list_tools.in_progress", {}
    status = "failed" if item.get("error") else "completed"
    yield f"mcp_list_tools.{status}", {}


def _mcp_call_steps(item: Item) -> EventSteps:
    yield "mcp_call.in_progress", {}
    yield from _build_piece_steps("mcp_call_arguments", "arguments")(item)
    status = "failed" if item["error"] else "completed"
    yield f"mcp_call.{status}", {}


STEPS_BY_TYPE: Mapping[str, Callable[[Item], EventSteps]] = {
    "compaction": _build_status_steps("compaction", "compacting"),
    "message": _message_steps,
    "reasoning": _reasoning_steps,
    "function_call": _build_piece_steps("function_call_arguments", "arguments"),
    "custom_tool_call": _build_piece_steps("custom_tool_call_input", "input"),
    "web_search_call": _build_status_steps(
        "web_search_call", "in_progress", "searching", "completed"
    ),
    "file_search_call": _build_status_steps(
        "file_search_call", "in_progress", "searching", "completed"
    ),
    "code_interpreter_call": _code_interpreter_steps,
    "image_generation_call": _image_generation_steps,
    "mcp_list_tools": _mcp_list_steps,
    "mcp_call": _mcp_call_steps,
}


FAILURE_EVENTS = ("response.failed", "error")
MAX_PADDING = 16


def build_stream(reply: Reply, opened: Item, closed: Item) -> list[Event]:
    """Return the events of a response, without their numbers."""
    ending = reply.ending
    started = {**opened, "status": "in_progress"}
    events: list[Event] = [{"type": "response.created", "response": opened}]
    if opened["background"]:
        events.append({"type": "response.queued", "response": opened})
    events.append({"type": "response.in_progress", "response": started})
    for index, item in enumerate(closed["output"]):
        item_events = list(build_item_events(item, index))
        # A failure comes in the middle of the last item.
        if ending.event in FAILURE_EVENTS and index == len(closed["output"]) - 1:
            item_events = item_events[: max(2, len(item_events) // 2)]
        events += item_events
    if ending.event_before is not None:
        events.append(ending.event_before)
    if ending.event == "error":
        events.append({"type": "error", **ending.fields})
    else:
        # The encrypted content here differs from that of `response.output_item.done`;
        # a later request may contain either (recorded: 15 of 15).
        output = [
            (
                {**item, "encrypted_content": rewrite_seal(content, "final")}
                if (content := item.get("encrypted_content"))
                else item
            )
            for item in apply_ending(closed["output"], ending)
        ]
        response = {**closed, "output": output}
        events.append({"type": ending.event, "response": response})
    if ending.event_after is not None:
        events.append(ending.event_after)
    return reply.fault(events) if reply.fault else events


def apply_ending(items: Sequence[Item], ending: Ending) -> list[Item]:
    """Return the items as the ending leaves them.

    A limit leaves the last item incomplete; a failure leaves it out.
    """
    if ending.event in FAILURE_EVENTS:
        return list(items[:-1])
    if ending.event == "response.incomplete" and items:
        return [*items[:-1], {**items[-1], "status": "incomplete"}]
    return list(items)


def number_events(events: Sequence[Event], obfuscated: bool) -> list[Event]:
    """Number events from 0; pad the deltas if they are to be obfuscated."""
    numbered = []
    for number, event in enumerate(events):
        kind = event["type"]
        numbered_event = {"type": kind, "sequence_number": number, **event}
        if obfuscated and kind.endswith(".delta"):
            padding = make_digest(f"{number} {event['delta']}")
            numbered_event["obfuscation"] = padding[: 1 + number % MAX_PADDING]
        numbered.append(numbered_event)
    return numbered


CHUNK_LENGTHS = (4, 16, 128)
_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ON_LINES = json.JSONEncoder(ensure_ascii=False, separators=(",", ": "), indent=1)


def encode_event(event: Mapping[str, Any], options: Options) -> bytes:
    """Return one event as the lines of a server-sent event."""
    form = _ON_LINES if options.has("multiline") else _ON_ONE_LINE
    lines = [f"data: {line}" for line in form.encode(event).split("\n")]
    if not options.has("nameless"):
        lines.insert(0, f"event: {event['type']}")
    if options.has("comments"):
        lines.insert(0, ": a comment")
    return _end_lines(*lines, options=options)


def encode_end(options: Options) -> bytes:
    """Return what some gateways send after the last event."""
    return _end_lines("data: [DONE]", options=options) if options.has("done") else b""


def _end_lines(*lines: str, options: Options) -> bytes:
    end = "\r\n" if options.has("crlf") else "\r" if options.has("cr") else "\n"
    return "".join(f"{line}{end}" for line in (*lines, "")).encode()


def split_chunks(
    text: bytes, options: Options, randomness: random.Random
) -> Iterator[bytes]:
    """Split a text into the chunks that the options ask for, inside characters too."""
    size = options.text("chunks")
    start = 0
    while start < len(text):
        length = len(text) - start
        if size == "random":
            max_length = randomness.choice(CHUNK_LENGTHS)
            length = min(length, randomness.randint(1, max_length))
        else:
            length = int(size)
        yield text[start : start + length]
        start += length
