"""The stream events of one item, in the API's order (responses-api.md §3)."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Item = dict[str, Any]
Event = dict[str, Any]
WORD = re.compile(r"\S+\s*|\s+")
PIECE = 8


def events_of(item: Item, index: int) -> Iterator[Event]:
    """Yield the events of one finished item at its place in the output."""
    begun = _begin(item)
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    place = {"item_id": item["id"], "output_index": index}
    for name, fields in STEPS.get(item["type"], _no_steps)(item):
        yield {"type": f"response.{name}", **place, **fields}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


Steps = Iterator[tuple[str, Event]]


def words_in(text: str) -> list[str]:
    """Cut a text into deltas of a word each."""
    return WORD.findall(text)


def pieces_of(text: str) -> list[str]:
    """Cut arguments or code into deltas of a few characters each."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _begin(item: Item) -> Item:
    """Return an item as ``output_item.added`` shows it: still empty."""
    emptied = {**item, **{key: v for key, v in EMPTY.items() if key in item}}
    if item["type"] == "web_search_call":
        emptied["action"] = {"type": "search"}
    if "encrypted_content" in item:
        # May be incomplete here (responses-api.md §0.3), so it always is.
        emptied["encrypted_content"] = item["encrypted_content"][:120]
    if item["type"] == "image_generation_call":
        emptied = {key: item[key] for key in ("id", "type")}
        emptied.update(status="in_progress", result=None)
    if item["type"] == "mcp_approval_request":
        return item
    return emptied


EMPTY: Mapping[str, Any] = {
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


def _no_steps(item: Item) -> Steps:
    del item
    return iter(())


def _message(item: Item) -> Steps:
    for index, part in enumerate(item["content"]):
        place = {"content_index": index}
        refuses = part["type"] == "refusal"
        empty = {**part, **({"refusal": ""} if refuses else {"text": ""})}
        if not refuses:
            empty["annotations"] = []
        yield "content_part.added", {**place, "part": empty}
        for name, fields in (_refusal if refuses else _text)(part):
            yield name, {**place, **fields}
        yield "content_part.done", {**place, "part": part}


def _text(part: Item) -> Steps:
    """Yield the deltas, each annotation behind the words that it is about."""
    waiting, told = list(enumerate(part["annotations"])), 0
    for delta in words_in(part["text"]):
        yield "output_text.delta", {"delta": delta, "logprobs": []}
        told += len(delta)
        while waiting and _last_place(waiting[0][1]) < told:
            yield _annotation(*waiting.pop(0))
    for index, annotation in waiting:
        yield _annotation(index, annotation)
    yield "output_text.done", {"text": part["text"], "logprobs": []}


def _last_place(annotation: Item) -> int:
    return int(annotation.get("end_index", annotation.get("index")) or 0)


def _annotation(index: int, annotation: Item) -> tuple[str, Event]:
    fields = {"annotation_index": index, "annotation": annotation}
    return "output_text.annotation.added", fields


def _refusal(part: Item) -> Steps:
    for delta in words_in(part["refusal"]):
        yield "refusal.delta", {"delta": delta}
    yield "refusal.done", {"refusal": part["refusal"]}


def _reasoning(item: Item) -> Steps:
    for index, part in enumerate(item["summary"]):
        place = {"summary_index": index}
        name = "reasoning_summary_part"
        yield f"{name}.added", {**place, "part": {**part, "text": ""}}
        for delta in words_in(part["text"]):
            yield "reasoning_summary_text.delta", {**place, "delta": delta}
        yield "reasoning_summary_text.done", {**place, "text": part["text"]}
        yield f"{name}.done", {**place, "part": part}
    for index, part in enumerate(item.get("content") or []):
        place = {"content_index": index}
        yield "content_part.added", {**place, "part": {**part, "text": ""}}
        for delta in words_in(part["text"]):
            yield "reasoning_text.delta", {**place, "delta": delta}
        yield "reasoning_text.done", {**place, "text": part["text"]}
        yield "content_part.done", {**place, "part": part}


def _spelled(prefix: str, field: str) -> Callable[[Item], Steps]:
    """Return the steps of a field that is streamed in pieces."""

    def steps(item: Item) -> Steps:
        for delta in pieces_of(item[field]):
            yield f"{prefix}.delta", {"delta": delta}
        yield f"{prefix}.done", {field: item[field]}

    return steps


def _phases(prefix: str, *names: str) -> Callable[[Item], Steps]:
    """Return steps that only name how far a hosted call has come."""

    def steps(item: Item) -> Steps:
        del item
        for name in names:
            yield f"{prefix}.{name}", {}

    return steps


def _code_interpreter(item: Item) -> Steps:
    prefix = "code_interpreter_call"
    yield f"{prefix}.in_progress", {}
    yield from _spelled(f"{prefix}_code", "code")(item)
    yield f"{prefix}.interpreting", {}
    if item["status"] == "completed":
        yield f"{prefix}.completed", {}


def _image_generation(item: Item) -> Steps:
    prefix = "image_generation_call"
    yield f"{prefix}.in_progress", {}
    yield f"{prefix}.generating", {}
    if item["status"] != "completed":
        return
    shown = {key: item[key] for key in ("background", "output_format", "size")}
    yield (
        f"{prefix}.partial_image",
        {"partial_image_b64": item["result"], "partial_image_index": 0, **shown},
    )
    yield f"{prefix}.completed", {}


def _mcp_list_tools(item: Item) -> Steps:
    yield "mcp_list_tools.in_progress", {}
    yield f"mcp_list_tools.{'failed' if item.get('error') else 'completed'}", {}


def _mcp_call(item: Item) -> Steps:
    yield "mcp_call.in_progress", {}
    yield from _spelled("mcp_call_arguments", "arguments")(item)
    yield f"mcp_call.{'failed' if item['error'] else 'completed'}", {}


STEPS: Mapping[str, Callable[[Item], Steps]] = {
    "compaction": _phases("compaction", "compacting"),
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _spelled("function_call_arguments", "arguments"),
    "custom_tool_call": _spelled("custom_tool_call_input", "input"),
    "web_search_call": _phases(
        "web_search_call", "in_progress", "searching", "completed"
    ),
    "file_search_call": _phases(
        "file_search_call", "in_progress", "searching", "completed"
    ),
    "code_interpreter_call": _code_interpreter,
    "image_generation_call": _image_generation,
    "mcp_list_tools": _mcp_list_tools,
    "mcp_call": _mcp_call,
}
