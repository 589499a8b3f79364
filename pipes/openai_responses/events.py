"""The closed union of stream events that we act on.

All other events, also those that do not exist yet, are `Unknown`: they keep the
connection alive, nothing more (responses-api.md §0.5). Events are told apart by their
`type` alone; the `event:` line only repeats it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from openai_responses.errors import ApiError, MalformedEvent
from openai_responses.items import Item
from openai_responses.sse import ServerSentEvent


@dataclass(frozen=True, slots=True)
class Delta:
    """More of a text that grows while we read.

    `kind` says which: the "text" or "refusal" of a message, the "summary" or the raw
    "reasoning" of a reasoning item, the "arguments" of a call (a custom call's input
    too). `part` is the content or summary index, 0 for arguments.
    """

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A text that has ended: it replaces the deltas of the same kind and place."""

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """`response.output_item.added`: an item began; its content is still missing."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ItemDone:
    """`response.output_item.done`: the item as it counts, encrypted content included."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """`response.completed`, `.incomplete` or `.failed`, with the final snapshot."""

    status: str
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamError:
    """`error`: the request failed; no response object comes with it."""

    error: ApiError


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything else, by its type."""

    type: str


StreamEvent = (
    Delta | Whole | ItemAdded | ItemDone | ResponseEnded | StreamError | Unknown
)

_Reader = Callable[[Mapping[str, Any]], StreamEvent]

KNOWN_TYPES = frozenset(
    {
        "error",
        "response.audio.delta",
        "response.audio.done",
        "response.audio.transcript.delta",
        "response.audio.transcript.done",
        "response.code_interpreter_call.completed",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        "response.compaction.compacting",
        "response.completed",
        "response.content_part.added",
        "response.content_part.done",
        "response.created",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.failed",
        "response.file_search_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.image_generation_call.completed",
        "response.image_generation_call.generating",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.partial_image",
        "response.in_progress",
        "response.incomplete",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.mcp_list_tools.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.annotation.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.queued",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.refusal.delta",
        "response.refusal.done",
        "response.shell_call_command.added",
        "response.shell_call_command.delta",
        "response.shell_call_command.done",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
        "response.web_search_call.completed",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
    }
)
"""The 59 event types of the API as of 2026-11-21; a new one is worth a debug line."""


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent when it is not a JSON object."""
    if event.data == "[DONE]":  # other servers end their streams with it
        return Unknown("[DONE]")
    try:
        wire = json.loads(event.data)
    except (ValueError, RecursionError):  # the latter for thousands of brackets
        raise MalformedEvent("The server sent an event that is not JSON.") from None
    if not isinstance(wire, dict):
        raise MalformedEvent("The server sent an event that is not an object.")
    kind = wire.get("type") or event.event
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        return Unknown(str(kind))
    try:
        return read(wire)
    except (KeyError, TypeError, AttributeError):
        raise MalformedEvent(
            f"The server sent a {kind} event without the fields it must have."
        ) from None


def joined_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events` with neighbouring deltas of one text as one delta."""
    out: list[StreamEvent] = []
    for place, neighbours in groupby(events, _delta_place):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, Delta)]
            out.append(Delta(*place, "".join(texts)))
    return out


def _delta_place(event: StreamEvent) -> tuple[str, int, int] | None:
    """Return what tells one growing text from another; None for all other events."""
    if not isinstance(event, Delta):
        return None
    return (event.kind, event.output_index, event.part)


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, of a response or of either shape of the event."""
    while isinstance(wire, Mapping) and isinstance(wire.get("error"), Mapping | str):
        wire = wire["error"]
    if isinstance(wire, str):
        return ApiError(message=wire)
    if not isinstance(wire, Mapping):
        return ApiError()
    message = wire.get("message") or wire.get("detail")
    return ApiError(
        code=_text_or_none(wire.get("code")),
        type=_text_or_none(wire.get("type")),
        param=_text_or_none(wire.get("param")),
        message=message if isinstance(message, str) else "",
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _index(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _delta_reader(kind: str, part: str) -> _Reader:
    """Return the reader of a delta whose place in its item is named by `part`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        place = _index(wire.get(part, 0))
        return Delta(kind, _index(wire["output_index"]), place, _text(wire["delta"]))

    return read


def _whole_reader(kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a `*.done` event that holds the whole text in `field`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        place = _index(wire.get(part, 0))
        return Whole(kind, _index(wire["output_index"]), place, _text(wire[field]))

    return read


def _read_item_added(wire: Mapping[str, Any]) -> StreamEvent:
    return ItemAdded(_index(wire["output_index"]), _object(wire["item"]))


def _read_item_done(wire: Mapping[str, Any]) -> StreamEvent:
    return ItemDone(_index(wire["output_index"]), _object(wire["item"]))


def _ended_reader(status: str) -> _Reader:
    """Return the reader of the last event of a response that ends with `status`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        return ResponseEnded(status, _object(wire["response"]))

    return read


def _read_error(wire: Mapping[str, Any]) -> StreamEvent:
    # The flat shape has its own `type`, which says "error" and nothing more.
    flat = {key: value for key, value in wire.items() if key != "type"}
    return StreamError(read_api_error(flat))


_READERS: Mapping[str, _Reader] = {
    "response.output_text.delta": _delta_reader("text", "content_index"),
    "response.output_text.done": _whole_reader("text", "content_index", "text"),
    "response.refusal.delta": _delta_reader("refusal", "content_index"),
    "response.refusal.done": _whole_reader("refusal", "content_index", "refusal"),
    "response.reasoning_summary_text.delta": _delta_reader("summary", "summary_index"),
    "response.reasoning_summary_text.done": _whole_reader(
        "summary", "summary_index", "text"
    ),
    "response.reasoning_text.delta": _delta_reader("reasoning", "content_index"),
    "response.reasoning_text.done": _whole_reader("reasoning", "content_index", "text"),
    "response.function_call_arguments.delta": _delta_reader("arguments", "part"),
    "response.function_call_arguments.done": _whole_reader(
        "arguments", "part", "arguments"
    ),
    "response.custom_tool_call_input.delta": _delta_reader("arguments", "part"),
    "response.custom_tool_call_input.done": _whole_reader("arguments", "part", "input"),
    "response.output_item.added": _read_item_added,
    "response.output_item.done": _read_item_done,
    "response.completed": _ended_reader("completed"),
    "response.incomplete": _ended_reader("incomplete"),
    "response.failed": _ended_reader("failed"),
    "error": _read_error,
}
