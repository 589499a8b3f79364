"""The stream of a response: bytes in, typed events out.

Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
stream". A line can exceed a megabyte, which is too long for aiohttp's own line reader
(docs/reference/responses-api.md, "Stream events").

The `type` alone identifies an event. Those that are not used here only show that the
connection is alive. Gateways send errors that have no type, and other events.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from openai_responses.endings import CHAT_COMPLETIONS, unreadable_answer
from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    MalformedEvent,
    read_api_error,
)
from openai_responses.items import (
    ITEM_KINDS,
    Item,
    flat_annotation,
    json_text,
    part_text,
)
from openai_responses.json_input import (
    FINITE_NUMBERS,
    MAX_JSON_BYTES,
    MAX_JSON_DEPTH,
    JsonObject,
    as_mapping,
    as_text,
    is_too_deep,
    load_json,
    value_at,
)
from openai_responses.transport.delta_runs import join_delta_runs


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline."""

    event: str
    data: str


_LINE_BYTES = 64
"""What a line of an event takes in memory in addition to its text."""
_BLANK_LINE = b"\n\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_USUAL_EVENT = re.compile(r"^event: ([!-~]+)\ndata: (.*)\n\n", re.MULTILINE)
"""An event as OpenAI and most other servers write it."""
_USUAL_LINES = 3
"""Of such an event. If a text has no others, there is nothing between the events."""


class EventStreamDecoder:
    """Turns chunks of any size into events.

    The bytes of an unfinished line are copied once, when the line ends, so the work is
    linear in the length of the stream.
    """

    def __init__(
        self, most_bytes: int = MAX_JSON_BYTES, *, joins_deltas: bool = False
    ) -> None:
        """Start before the first byte; an event can have `most_bytes`.

        With `joins_deltas`, deltas of one text that come together may be one event, for
        readers who need the texts alone.
        """
        self._most_bytes = most_bytes
        self._joins_deltas = joins_deltas
        self._partial_line = bytearray()
        """The beginning of a line whose end has not come."""
        self._is_first_line = True
        """Whether no line has ended yet: the first may begin with a byte-order mark."""
        self._after_cr = False
        """Whether the last chunk ended with CR: an LF then belongs to the same line."""
        self._event = b""
        """The name of the event whose lines are being read."""
        self._lines: list[bytes] = []
        """The data of that event so far."""
        self._size = 0
        """About what its lines take in memory, other fields and comments included."""

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
        return self._take(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event whose final blank line is missing at the end of the stream.

        The standard drops it, but without its terminal event a finished answer would
        count as cut.
        """
        return self._take(_BLANK_LINE)

    def _take(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end in `chunk`.

        Those that lie in it whole are found at once; the event at each of its ends is
        read line by line.
        """
        text = b"".join((self._partial_line, chunk))
        self._partial_line = bytearray()
        if self._is_first_line:
            self._is_first_line = False
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if b"\r" in text:
            return self._take_lines(text)
        events: list[ServerSentEvent] = []
        if self._event or self._lines:
            first, blank_line, text = text.partition(_BLANK_LINE)
            events += self._take_lines(first + blank_line)
        whole, blank_line, last = text.rpartition(_BLANK_LINE)
        events += self._take_whole(whole + blank_line)
        if last:
            events += self._take_lines(last)
        return events

    def _take_whole(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events of a text that begins and ends between two of them.

        If all of them are written as usual, no line needs a look of its own: one search
        takes a third of the time. Each is made as a plain tuple, in half the time.
        """
        decoded = text.decode("utf-8", "replace")
        if self._joins_deltas and decoded.count("\n\n") > 1:
            # To find that one event is no run takes longer than all else done with it.
            decoded = join_delta_runs(decoded)
        rows = _USUAL_EVENT.findall(decoded)
        if len(rows) * _USUAL_LINES < decoded.count("\n"):
            return self._take_lines(text)
        return [tuple.__new__(ServerSentEvent, row) for row in rows]

    def _take_lines(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events that end; id, retry and unknown fields are not used.

        A blank line ends an event; without data there is none to dispatch. Some proxies
        strip blank lines: then the next name, or data after a whole JSON object, begins
        another event. Gateways that have begun to stream write the server's error as it
        is, without a field (lemonade-sdk/lemonade 2975): it counts as data.
        """
        # Bytes are split at CR, LF and CRLF alone, as the standard wants it; text would
        # be split at U+2028 as well, which may occur inside JSON.
        lines = text.splitlines()
        self._size += len(text) + _LINE_BYTES * len(lines)
        # A line may end with CR, LF or both; the LF may come with the next chunk.
        if text.endswith(b"\r"):
            self._after_cr = True
        elif lines and not text.endswith(b"\n"):
            self._partial_line.extend(lines.pop())
            self._size -= len(self._partial_line)  # `feed` counts it apart
        events = []
        for line in lines:
            # A line that begins with a colon is a comment: its field has no name.
            field, _, value = line.partition(b":")
            if line.startswith(b"{") and line.endswith(b"}"):
                field = b"data"
                value = line
            if not line or self._begins_another(field, value):
                if self._lines:
                    name = self._event.decode("utf-8", "replace")
                    data = b"\n".join(self._lines).decode("utf-8", "replace")
                    events.append(ServerSentEvent(name, data))
                self._event = b""
                self._lines = []
                self._size = 0
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
        return events

    def _begins_another(self, field: bytes, value: bytes) -> bool:
        """Say whether a field begins another event although no blank line came.

        No event has two names, and no JSON goes on after a whole object. Only the first
        line of an event is read for that, so each line is read once.
        """
        if len(self._lines) != 1:
            return False
        has_name = field == b"event" and bool(self._event)
        if not has_name and (field != b"data" or not value.strip()):
            return False
        first = self._lines[0].strip()
        if not (first.startswith(b"{") and first.endswith(b"}")):
            return False
        try:
            load_json(first)
        except ValueError:
            return False
        return True


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


class PartDone(TextDone):
    """A part that has ended: it repeats what other events have brought, if they have."""


class AnnotationAdded(NamedTuple):
    """What a place in a text refers to."""

    output_index: int
    annotation: Item
    item_id: str = ""


class PartialImage(NamedTuple):
    """An image as far as it is generated.

    `image` is base64; `form` is its format, if the server tells it.
    """

    output_index: int
    image: str
    form: str
    item_id: str = ""


class ResponseOpened(NamedTuple):
    """The server has begun to answer; gateways that ask it again say so once more."""

    response_id: str


class ItemAdded(NamedTuple):
    """An item began; its content is still missing."""

    output_index: int
    item: Item


class ItemDone(NamedTuple):
    """The item as it counts, byte for byte.

    Its encrypted content is whole only here, not in `response.output_item.added` (types
    of openai-python 3.54.0, `response_reasoning_item_param.py`).

    `card` holds what a host shows with it (`files`, `links`, `notes`). It and `shown` are
    empty here; a host fills them in.
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


class EndMark(NamedTuple):
    """The `[DONE]` with which streams of other servers end."""


class LooseWords(NamedTuple):
    """A message that is no event: the cause, if the stream ends without a response.

    Bedrock sends `{"message": ...}` so (vercel/ai 20505).
    """

    error: ApiError


ItemEvent = ItemAdded | TextDelta | AnnotationAdded | PartialImage | ItemDone
"""What happens to one output item.

On the wire `item_id` and `output_index` name the item, or one of them: "" and -1 stand
for none. After `loop.response` the index alone does, and counts over the whole run.
"""

StreamEvent = (
    ItemEvent
    | ResponseOpened
    | FinalResponse
    | StreamError
    | EndMark
    | LooseWords
    | None
)
"""None means all other events."""


def join_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events`, with neighboring deltas of one text joined to one delta.

    Of each delta only the text is kept, so a batch of thousands takes little memory.
    """

    def identity_of(event: StreamEvent) -> tuple[int, str, int, str] | None:
        """Return the text that a delta adds to; None for any other event."""
        if type(event) is not TextDelta:  # a TextDone is one, too
            return None
        return event.output_index, event.kind, event.part, event.item_id

    joined: list[StreamEvent] = []
    for identity, neighbors in groupby(events, identity_of):
        if identity is None:
            joined += neighbors
            continue
        index, kind, part, item_id = identity
        text = "".join(
            [delta.text for delta in neighbors if isinstance(delta, TextDelta)]
        )
        joined.append(TextDelta(index, kind, part, text, item_id))
    return joined


_SCAN_JSON = vars(json.JSONDecoder(strict=False, **FINITE_NUMBERS))["scan_once"]
"""What `raw_decode` calls; without its frame it is a tenth faster.

It takes control characters in texts, which servers leave as the model wrote them
(earendil-works/pi 4446): the delta would be lost.
"""

_END_OF_STREAM = "[DONE]"
"""Of Chat Completions; no recorded stream of OpenAI has it."""
_JSON_SPACE = " \t\n\r"
"""RFC 8259, section 2."""

_Reader = Callable[[JsonObject], StreamEvent]


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent if it is not a JSON object.

    Raises UnreadableAnswer for a chunk of Chat Completions. Thousands of brackets are a
    RecursionError, no value a StopIteration.
    """
    text = event.data.strip(_JSON_SPACE)
    if text == _END_OF_STREAM:
        return EndMark()
    try:
        wire, end = _SCAN_JSON(text, 0)
        if end != len(text):
            raise ValueError
        # A level takes two characters at least, so a delta needs no look at its depth.
        if len(text) > 2 * MAX_JSON_DEPTH:
            brackets = text.count("[") + text.count("{")
            if brackets > MAX_JSON_DEPTH and is_too_deep(wire):
                raise ValueError
        read = _READERS.get(wire.get("type") or event.event)
        if read:
            return read(wire)
        # The API's own events may have an `error`, too, as that of an MCP call.
        if as_text(wire.get("type")).startswith("response."):
            return None
        error = find_error(wire, event.event)
        if error is not None:
            return StreamError(error)
        refuse_completion(wire)
        words = as_text(wire.get("message") or wire.get("error_message"))
        if words and "type" not in wire:
            return LooseWords(read_api_error(wire))
        return None
    except _ODD_EVENT:
        # Servers that frame twice send `data: data: {...}` (shimmy 26, aprender 2015).
        bare = _FIELD_IN_DATA.sub("", text)
        if bare != text:
            return parse_event(event._replace(data=bare))
        if event.event == "error" and text:  # a proxy's own words
            return StreamError(read_api_error(text))
        raise MalformedEvent from None


_FIELD_IN_DATA = re.compile(r"\A(?:data:\s*)+")
"""No JSON begins so."""


_OPENING_EVENTS = ("response.created", "response.queued", "response.in_progress")


def is_opening(event: ServerSentEvent) -> bool:
    """Say whether an event has nothing but the response as the request opened it.

    It repeats the request with all its tools, so that parsing it takes longer than all
    deltas of a short answer.
    """
    name = event.event
    return name in _OPENING_EVENTS and event.data.startswith(f'{{"type":"{name}",')


_OPENED = re.compile(
    r'\{"type":"response\.created",(?:"sequence_number":\d{1,9},)?'
    r'"response":\{"id":"([\w-]{1,200})"'
)
"""How the first event begins, as OpenAI writes it."""


def read_opening(event: ServerSentEvent) -> StreamEvent:
    """Return what is used of such an event, which is not parsed: the id."""
    opened = _OPENED.match(event.data)
    return ResponseOpened(opened[1]) if opened else None


def _read_opened(wire: JsonObject) -> StreamEvent:
    response_id = as_text(value_at(wire, "response", "id"))
    return ResponseOpened(response_id) if response_id else None


def find_error(wire: JsonObject, name: str = "") -> ApiError | None:
    """Return the error that a body or an event of this name is, None if it is none.

    The flat form of the event is documented (types of openai-python 3.54.0), the nested
    one comes (openai/openai-dotnet 881, Effect-TS/effect 7262). LiteLLM, OpenRouter and
    other gateways send `{"error": {...}}` without a type, vLLM `{"object": "error",
    "message": ...}`.
    """
    if not wire.get("error") and "error" not in (
        name,
        wire.get("type"),
        wire.get("object"),
    ):
        return None
    # In the flat form `type` is only "error".
    error = read_api_error(
        {key: value for key, value in wire.items() if (key, value) != ("type", "error")}
    )
    # Codex's own server has the status of HTTP next to the error (openai/codex 10324),
    # and gateways pass it on; codex-proxy (5.0) has it inside.
    for fields in (wire, as_mapping(wire.get("error"))):
        stated = fields.get("status") or fields.get("status_code")
        with_status = error._replace(code=str(stated))
        if error.code is None and error.type is None and with_status.status:
            return with_status
    return error


def refuse_completion(wire: JsonObject) -> None:
    """Raise UnreadableAnswer for an answer, or a part of one, of Chat Completions."""
    if as_text(wire.get("object")).startswith("chat.completion"):
        raise unreadable_answer(CHAT_COMPLETIONS)


def describe_unreadable(event: ServerSentEvent) -> str:
    """Return what a malformed event is, without a word of it."""
    if not event.data.strip():
        return "empty"
    try:
        wire = load_json(event.data)
    except ValueError:
        return "no JSON"
    return "with odd fields" if isinstance(wire, dict) else "no object"


_ODD_EVENT = (
    StopIteration,
    ValueError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)
"""Errors of text that is not JSON, and of JSON that is not an event."""


_Kind = TypeVar("_Kind")


def _check_type(value: object, kind: type[_Kind]) -> _Kind:
    """Return a value of a type; raises TypeError for any other."""
    if not isinstance(value, kind):
        raise TypeError
    return value


NO_INDEX = -1
"""The `output_index` of an event that names none."""
_MOST = 2**53
"""A place that is further says nothing. Python's sets and dicts put all multiples of
2**61 - 1 in one place: some megabytes of events with such places would take hours."""


def _read_index(wire: JsonObject) -> int:
    index = wire.get("output_index")
    if index is None:
        return NO_INDEX
    place = _read_place(index)
    return place if -_MOST < place < _MOST else NO_INDEX


_NUMBER_AS_TEXT = re.compile(r"-?[0-9]{1,20}")


def _read_place(value: object) -> int:
    """Return the number of a place; raises TypeError for anything else.

    Gateways whose JSON has no whole numbers, or only texts, write `0.0` or `"0"`, as
    they do for counts of tokens.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value):
        return int(value)
    return _check_type(value, int)


def _text_reader(event: type[TextDelta], kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a text in `field`, whose place is in the field `part`.

    The tuple is made in half the time of the named tuple's own `__new__`.
    """
    new = partial(tuple.__new__, event)

    def read(wire: JsonObject) -> StreamEvent:
        text = wire[field]
        part_index = wire.get(part) or 0
        item_id = wire.get("item_id")
        index = wire.get("output_index")
        if index is None:
            index = NO_INDEX
        if not isinstance(text, str):
            if text is None:
                return None  # the item, or the deltas, have the text
            # Gateways to Anthropic make a part of a delta (tombii/better-ccflare 233).
            text = json_text(text) if kind == "arguments" else part_text(text)
            if not text:
                raise TypeError
        if not isinstance(part_index, int) or not isinstance(index, int):
            part_index = _read_place(part_index)
            index = _read_place(index)
        if not -_MOST < part_index < _MOST:
            part_index = 0
        if not -_MOST < index < _MOST:
            index = NO_INDEX
        if not isinstance(item_id, str):
            # DeepSeek names a call by this one (lidge-jun/opencodex 1361).
            item_id = as_text(wire.get("call_id"))
        return new((index, kind, part_index, text, item_id))

    return read


_KINDS_OF_PARTS = {
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
    "summary_text": "summary",
    "reasoning_text": "reasoning",
}


def _read_part_end(field: str, wire: JsonObject) -> StreamEvent:
    """Return the whole text of a part that has ended; its place is in the `field`.

    Some answers have their text nowhere else (RooCodeInc/Roo-Code 11621).
    """
    part = _check_type(wire["part"], dict)
    kind = _KINDS_OF_PARTS.get(as_text(part.get("type")))
    text = part_text(part)
    if kind is None or not text:
        return None
    number = _read_place(wire.get(field) or 0)
    item_id = as_text(wire.get("item_id"))
    return PartDone(_read_index(wire), kind, number, text, item_id)


def _read_annotation(wire: JsonObject) -> StreamEvent:
    """Return a citation; the type allows none, the final item has all of them."""
    annotation = wire.get("annotation")
    if annotation is None:
        return None
    item_id = as_text(wire.get("item_id"))
    flat = flat_annotation(_check_type(annotation, dict))
    return AnnotationAdded(_read_index(wire), flat, item_id)


def _read_partial_image(wire: JsonObject) -> StreamEvent:
    return PartialImage(
        _read_index(wire),
        _check_type(wire["partial_image_b64"], str),
        str(wire.get("output_format") or ""),
        as_text(wire.get("item_id")),
    )


def _read_item(event: type[ItemAdded | ItemDone], wire: JsonObject) -> StreamEvent:
    return event(_read_index(wire), _check_type(wire["item"], dict))


_OTHER_ENDS = ("incomplete", "failed", "cancelled")


def _read_final(status: str, wire: JsonObject) -> StreamEvent:
    """Return the end of a response; some gateways leave the response itself out.

    vLLM sends `response.completed` at every end, and only the response says that the
    answer was cut off (vllm-project/vllm 45386).
    """
    response = as_mapping(wire.get("response"))
    if not response and "output" in wire:  # not inside (7836246/cursor2api 115)
        response = wire
    own_status = as_text(response.get("status"))
    if status == "completed" and own_status in _OTHER_ENDS:
        status = own_status
    # The reason may be next to the response (openai/codex 24973).
    outer_error = wire.get("error")
    if status == "failed" and outer_error and not response.get("error"):
        response = {**response, "error": outer_error}
    return FinalResponse(status, response)


def _read_other_error(wire: JsonObject) -> StreamEvent:
    """Return an error under a name that the API does not have."""
    error = wire.get("error") or value_at(wire, "response", "error")
    return StreamError(read_api_error({"error": error or wire.get("message")}))


_PART_EVENTS = (
    ("output_text", "text", "content_index", "text"),
    ("refusal", "refusal", "content_index", "refusal"),
    ("reasoning_summary_text", "summary", "summary_index", "text"),
    ("reasoning_text", "reasoning", "content_index", "text"),
    # What OpenAI's packages called it before (openai-python 1.76 to 1.99).
    ("reasoning_summary", "summary", "summary_index", "text"),
    # What Open Responses and its gateways call a thought that grows; other gateways.
    ("reasoning", "reasoning", "content_index", "text"),
    ("reasoning_content", "reasoning", "content_index", "text"),
)
"""Texts of which an item has a list: their name and kind, the field of their place, and
that of the whole text in the event that ends them."""


def _text_readers() -> Mapping[str, _Reader]:
    """Return the readers of all texts that grow, by the type of their events."""
    texts = [*_PART_EVENTS]
    for item_name, item_kind in ITEM_KINDS.items():
        # The events of the one text of a call are named for its item and its field, as
        # `function_call_arguments`; they name no place.
        if item_kind.text:
            kind, field = item_kind.text
            texts.append((f"{item_name}_{field}", kind, "", field))
    readers: dict[str, _Reader] = {}
    for name, kind, part, whole in texts:
        delta = _text_reader(TextDelta, kind, part, "delta")
        readers[f"response.{name}.delta"] = delta
        readers[f"response.{name}.done"] = _text_reader(TextDone, kind, part, whole)
    return readers


_READERS: Mapping[str, _Reader] = {
    **_text_readers(),
    "response.content_part.done": partial(_read_part_end, "content_index"),
    "response.reasoning_summary_part.done": partial(_read_part_end, "summary_index"),
    "response.output_text.annotation.added": _read_annotation,
    "response.image_generation_call.partial_image": _read_partial_image,
    "response.created": _read_opened,
    "response.output_item.added": partial(_read_item, ItemAdded),
    "response.output_item.done": partial(_read_item, ItemDone),
    "response.completed": partial(_read_final, "completed"),
    "response.incomplete": partial(_read_final, "incomplete"),
    "response.failed": partial(_read_final, "failed"),
    # Gateways end with these, too, as Codex's own server and the Realtime API do
    # (can1357/oh-my-pi 4692, decolua/9router 2142).
    "response.done": partial(_read_final, "completed"),
    "response.cancelled": partial(_read_final, "cancelled"),
    "response.error": _read_other_error,
}
