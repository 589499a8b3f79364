"""The stream of a response: bytes in, typed events out.

Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
stream". A line can exceed a megabyte, which is too long for aiohttp's own line reader
(docs/reference/responses-api.md, "Stream events").

The `type` alone identifies an event. Those that are not used here only show that the
connection is alive.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    MalformedEvent,
    read_api_error,
)
from openai_responses.items import Item
from openai_responses.json_input import (
    MAX_JSON_BYTES,
    MAX_JSON_DEPTH,
    JsonObject,
    as_text,
    is_too_deep,
)


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline."""

    event: str
    data: str


_LINE_BYTES = 64
"""What a line of an event takes in memory beside its text."""


class EventStreamDecoder:
    """Turns chunks of any size into events.

    The bytes of an unfinished line are copied once, when the line ends, so the work is
    linear in the length of the stream.
    """

    def __init__(self, most_bytes: int = MAX_JSON_BYTES) -> None:
        """Start before the first byte; an event can have `most_bytes`."""
        self._most_bytes = most_bytes
        self._partial_line = bytearray()
        self._after_cr = False
        self._event = b""
        self._lines: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes; it may begin inside of a CRLF.

        Raises AnswerTooLarge for the event after those that were returned.
        """
        if len(self._partial_line) + self._size > self._most_bytes:
            raise AnswerTooLarge
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._partial_line.extend(chunk)
            return []
        return self._take_lines(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event whose final blank line is missing at the end of the stream.

        The standard drops it, but without its terminal event a finished answer would
        count as cut.
        """
        return self._take_lines(b"\n\n")

    def _take_lines(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end; id, retry and unknown fields are not used."""
        text = b"".join((self._partial_line, chunk))
        lines, self._partial_line = text.splitlines(), bytearray()
        self._size += len(text) + _LINE_BYTES * len(lines)
        if text.endswith(b"\r"):
            self._after_cr = True
        elif not text.endswith(b"\n"):
            self._partial_line.extend(lines.pop())
            self._size -= len(self._partial_line)
        events = []
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            elif not line:
                if self._lines:
                    name = self._event.decode("utf-8", "replace")
                    value = b"\n".join(self._lines)
                    data = value.decode("utf-8", "replace")
                    events.append(tuple.__new__(ServerSentEvent, (name, data)))
                self._event, self._lines, self._size = b"", [], 0
        return events


NO_CARD: JsonObject = MappingProxyType({})


class TextDelta(NamedTuple):
    """An addition to a text that grows.

    `kind` is the "text" or "refusal" of a message, the "summary" or raw "reasoning" of
    a reasoning item, the "arguments" of a call, or the "code" that the API runs. `part`
    is the content or summary index, 0 for arguments and code.
    """

    output_index: int
    kind: str
    part: int
    text: str
    item_id: str = ""


class TextDone(TextDelta):
    """A text that has ended: it replaces the deltas of the same kind and place."""


class AnnotationAdded(NamedTuple):
    """What a place in a text refers to."""

    output_index: int
    annotation: Item
    item_id: str = ""


class PartialImage(NamedTuple):
    """An image as far as it is drawn.

    `image` is base64; `form` is its format, if the server tells it.
    """

    output_index: int
    image: str
    form: str
    item_id: str = ""


class ItemAdded(NamedTuple):
    """An item began; its content is still missing."""

    output_index: int
    item: Item


class ItemDone(NamedTuple):
    """The item as it counts, byte for byte.

    `card` holds what a host shows beside it (`files`, `links`, `notes`).
    """

    output_index: int
    item: Item
    card: JsonObject = NO_CARD
    shown: str = ""
    """The text of a message as a host shows it."""


class FinalResponse(NamedTuple):
    """The end of a response, with its final snapshot.

    `status` is "completed", "incomplete" or "failed"; also "cancelled" if the response
    itself was requested.
    """

    status: str
    response: JsonObject


class StreamError(NamedTuple):
    """The request failed; no response object comes with it."""

    error: ApiError


ItemEvent = ItemAdded | TextDelta | AnnotationAdded | PartialImage | ItemDone
"""What happens to one output item.

On the wire `item_id` and `output_index` name the item, or one of them: "" and -1 stand
for none. Behind `loop.response` the index alone does, and counts over the whole run.
"""

StreamEvent = ItemEvent | FinalResponse | StreamError | None
"""None stands for all other events."""


def join_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events`, with neighbouring deltas of one text joined to one delta."""
    out: list[StreamEvent] = []
    for place, neighbours in groupby(
        events, lambda one: one[:3] + one[4:] if type(one) is TextDelta else None
    ):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, TextDelta)]
            out.append(TextDelta._make((*place[:3], "".join(texts), place[3])))
    return out


_SCAN_JSON = vars(json.JSONDecoder())["scan_once"]
"""What `raw_decode` calls; without its frame it is a tenth faster."""
_Reader = Callable[[JsonObject], StreamEvent]


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent if it is not a JSON object.

    Other servers end their streams with `[DONE]`. White space is that of RFC 8259,
    section 2. Thousands of brackets are a RecursionError, no value a StopIteration. A
    level takes two characters at least, so a delta needs no look at its depth.
    """
    if event.data == "[DONE]":
        return None
    text = event.data.strip(" \t\n\r")
    try:
        wire, end = _SCAN_JSON(text, 0)
        may_be_deep = (
            len(text) > 2 * MAX_JSON_DEPTH
            and text.count("[") + text.count("{") > MAX_JSON_DEPTH
        )
        if end != len(text) or (may_be_deep and is_too_deep(wire)):
            raise ValueError
        read = _READERS.get(wire.get("type") or event.event)
        return read(wire) if read else None
    except _ODD_EVENT:
        raise MalformedEvent from None


_ODD_EVENT = (
    StopIteration,
    ValueError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)
"""Errors of text that is not JSON, and of JSON that is not an event."""


def _checked(value: object, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _index(wire: JsonObject) -> int:
    index = wire.get("output_index")
    return -1 if index is None else _checked(index, int)


def _text_reader(event: type[TextDelta], kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a text in `field`, whose place is the field `part`.

    The tuple is made in half the time of the named tuple's own `__new__`.
    """
    new = partial(tuple.__new__, event)

    def read(wire: JsonObject) -> StreamEvent:
        place, text, item_id = wire.get(part, 0), wire[field], wire.get("item_id")
        index = wire.get("output_index")
        if index is None:
            index = -1
        if not (
            isinstance(text, str) and isinstance(place, int) and isinstance(index, int)
        ):
            raise TypeError
        if not isinstance(item_id, str):
            item_id = ""
        return new((index, kind, place, text, item_id))

    return read


def _read_annotation(wire: JsonObject) -> StreamEvent:
    """Return a citation; the type allows none, the final item has all of them."""
    if (annotation := wire.get("annotation")) is None:
        return None
    item_id = as_text(wire.get("item_id"))
    return AnnotationAdded(_index(wire), _checked(annotation, dict), item_id)


def _read_partial_image(wire: JsonObject) -> StreamEvent:
    return PartialImage(
        _index(wire),
        _checked(wire["partial_image_b64"], str),
        str(wire.get("output_format") or ""),
        as_text(wire.get("item_id")),
    )


def _item_reader(event: type[ItemAdded] | type[ItemDone]) -> _Reader:
    return lambda wire: event(_index(wire), _checked(wire["item"], dict))


def _final_reader(status: str) -> _Reader:
    return lambda wire: FinalResponse(status, _checked(wire["response"], dict))


def _read_error(wire: JsonObject) -> StreamEvent:
    """Return the error; in the flat form `type` is only "error"."""
    flat = {key: value for key, value in wire.items() if key != "type"}
    return StreamError(read_api_error(flat))


_TEXT_EVENTS = (
    ("output_text", "text", "content_index", "text"),
    ("refusal", "refusal", "content_index", "refusal"),
    ("reasoning_summary_text", "summary", "summary_index", "text"),
    ("reasoning_text", "reasoning", "content_index", "text"),
    ("function_call_arguments", "arguments", "part", "arguments"),
    ("custom_tool_call_input", "arguments", "part", "input"),
    ("mcp_call_arguments", "arguments", "part", "arguments"),
    ("code_interpreter_call_code", "code", "part", "code"),
)
"""Texts that grow: the events' name, the kind, the field of its place, and the field of
the whole text."""

_READERS: Mapping[str, _Reader] = {
    **{
        f"response.{name}.delta": _text_reader(TextDelta, kind, part, "delta")
        for name, kind, part, _ in _TEXT_EVENTS
    },
    **{
        f"response.{name}.done": _text_reader(TextDone, *places)
        for name, *places in _TEXT_EVENTS
    },
    "response.output_text.annotation.added": _read_annotation,
    "response.image_generation_call.partial_image": _read_partial_image,
    "response.output_item.added": _item_reader(ItemAdded),
    "response.output_item.done": _item_reader(ItemDone),
    **{
        f"response.{status}": _final_reader(status)
        for status in ("completed", "incomplete", "failed")
    },
    "error": _read_error,
}
