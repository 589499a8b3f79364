"""Wire events of a response, built as the API sends them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from openai_responses.transport.stream import ServerSentEvent, StreamEvent, parse_event

Item = dict[str, Any]
Event = dict[str, Any]
Events = list[Event]

USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 4},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 42,
}


def message_item(*texts: str, at: int | str = 0, phase: str | None = None) -> Item:
    """Return a message with one content part a text."""
    content = [{"type": "output_text", "text": t, "annotations": []} for t in texts]
    more = {"phase": phase} if phase else {}
    return {
        "id": f"msg_{at}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **more,
    }


def reasoning_item(*summaries: str, at: int | str = 0, sealed: str = "sealed") -> Item:
    """Return a reasoning item with one summary part a text."""
    return {
        "id": f"rs_{at}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summaries],
        "encrypted_content": sealed,
    }


def call_item(name: str, arguments: str, at: int = 0) -> Item:
    """Return a function call whose call id names its place."""
    return {
        "id": f"fc_{at}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{at}",
        "name": name,
        "arguments": arguments,
    }


def message(*pieces: str, at: int = 0, phase: str | None = None) -> Events:
    """Return the events of a message that grows by these pieces."""
    item = message_item("".join(pieces), at=at, phase=phase)
    part = item["content"][0]
    position = {"item_id": item["id"], "output_index": at, "content_index": 0}
    empty = {**part, "text": ""}
    return [
        added({**item, "status": "in_progress", "content": []}, at=at),
        {"type": "response.content_part.added", **position, "part": empty},
        *(text_delta(piece, at=at) for piece in pieces),
        text_done(part["text"], at=at),
        {"type": "response.content_part.done", **position, "part": part},
        done(item, at=at),
    ]


def refusal(*pieces: str, at: int = 0) -> Events:
    """Return the events of a message that is a refusal."""
    part = {"type": "refusal", "refusal": "".join(pieces)}
    item = {**message_item(at=at), "content": [part]}
    position = {"item_id": item["id"], "output_index": at, "content_index": 0}
    return [
        added({**item, "status": "in_progress", "content": []}, at=at),
        *({"type": "response.refusal.delta", **position, "delta": p} for p in pieces),
        {"type": "response.refusal.done", **position, "refusal": part["refusal"]},
        done(item, at=at),
    ]


def reasoning(*parts: Sequence[str], at: int = 0, sealed: str = "sealed") -> Events:
    """Return the events of a reasoning item; each part is a row of pieces."""
    item = reasoning_item(*("".join(pieces) for pieces in parts), at=at, sealed=sealed)
    begun = {**item, "summary": [], "encrypted_content": sealed[:3]}
    grown = [
        event
        for part, pieces in enumerate(parts)
        for event in _summary_part(pieces, part, at)
    ]
    return [added(begun, at=at), *grown, done(item, at=at)]


def _summary_part(pieces: Sequence[str], part: int, at: int) -> Events:
    name = "response.reasoning_summary"
    position = {"item_id": f"rs_{at}", "output_index": at, "summary_index": part}
    text = "".join(pieces)
    empty, full = ({"type": "summary_text", "text": t} for t in ("", text))
    return [
        {"type": f"{name}_part.added", **position, "part": empty},
        *({"type": f"{name}_text.delta", **position, "delta": p} for p in pieces),
        {"type": f"{name}_text.done", **position, "text": text},
        {"type": f"{name}_part.done", **position, "part": full},
    ]


def reasoning_text(*pieces: str) -> Events:
    """Return the events of a reasoning item of an open-weight model."""
    text = "".join(pieces)
    content = [{"type": "reasoning_text", "text": text}]
    item = {"id": "rs_0", "type": "reasoning", "summary": [], "content": content}
    name = "response.reasoning_text"
    position = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    return [
        added({**item, "content": []}),
        *({"type": f"{name}.delta", **position, "delta": piece} for piece in pieces),
        {"type": f"{name}.done", **position, "text": text},
        done(item),
    ]


def function_call(name: str, *pieces: str, at: int = 0) -> Events:
    """Return the events of a function call whose arguments grow by these pieces."""
    item = call_item(name, "".join(pieces), at=at)
    position = {"item_id": item["id"], "output_index": at}
    kind = "response.function_call_arguments"
    return [
        added({**item, "status": "in_progress", "arguments": ""}, at=at),
        *({"type": f"{kind}.delta", **position, "delta": piece} for piece in pieces),
        {"type": f"{kind}.done", **position, "arguments": item["arguments"]},
        done(item, at=at),
    ]


def custom_call(name: str, *pieces: str, at: int = 0) -> Events:
    """Return the events of a custom tool call whose input grows by these pieces."""
    text = "".join(pieces)
    item = {
        "id": f"ctc_{at}",
        "type": "custom_tool_call",
        "call_id": f"call_{at}",
        "name": name,
        "input": text,
    }
    position = {"item_id": item["id"], "output_index": at}
    kind = "response.custom_tool_call_input"
    return [
        added({**item, "input": ""}, at=at),
        *({"type": f"{kind}.delta", **position, "delta": piece} for piece in pieces),
        {"type": f"{kind}.done", **position, "input": text},
        done(item, at=at),
    ]


def added(item: Item, at: int = 0) -> Event:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def done(item: Item, at: int = 0) -> Event:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def text_delta(text: str, at: int = 0) -> Event:
    """Return one delta of a message."""
    position = {"item_id": f"msg_{at}", "output_index": at, "content_index": 0}
    return {
        "type": "response.output_text.delta",
        **position,
        "delta": text,
        "logprobs": [],
    }


def text_done(text: str, at: int = 0) -> Event:
    where = {"item_id": f"msg_{at}", "output_index": at, "content_index": 0}
    return {"type": "response.output_text.done", **where, "text": text, "logprobs": []}


def response(status: str, *output: Item, **more: Any) -> dict[str, Any]:
    """Return a response object as a snapshot holds it."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_795_262_400,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5.6-sol",
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": USAGE,
        **more,
    }


def created() -> Event:
    """Return the first event of a stream."""
    return {
        "type": "response.created",
        "response": response("in_progress", usage=None),
    }


def ended(status: str, *output: Item, **more: Any) -> Event:
    """Return the last event of a response that ends with `status`."""
    return {"type": f"response.{status}", "response": response(status, *output, **more)}


def completed(*output: Item) -> Event:
    return ended("completed", *output)


def error_flat(code: str | None, text: str = "Sorry!") -> Event:
    """Return the `error` event in the shape that is documented."""
    return {"type": "error", "code": code, "message": text, "param": None}


def error_nested(code: str | None) -> Event:
    """Return the `error` event in the shape that the live API sends."""
    error = {"type": "broken", "code": code, "message": "Sorry!", "param": None}
    return {"type": "error", "error": error}


def items_of(events: Iterable[Event]) -> list[Item]:
    """Return the items that `events` end, in their order."""
    return [
        event["item"]
        for event in events
        if event["type"] == "response.output_item.done"
    ]


def whole_stream(*groups: Events) -> Events:
    """Return a response from its first to its last event, numbered."""
    middle = [event for group in groups for event in group]
    return numbered([created(), *middle, completed(*items_of(middle))])


def numbered(events: Iterable[Event]) -> Events:
    """Return `events` with their sequence numbers."""
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def on_the_wire(*events: Event) -> bytes:
    """Return the bytes of `events`, with half a character as JSON escapes it."""
    lines = (
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    )
    return "".join(lines).encode(errors="backslashreplace")


def parsed(event: Event) -> StreamEvent:
    return parse_event(ServerSentEvent(event["type"], json.dumps(event)))
