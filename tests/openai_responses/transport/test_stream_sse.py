"""Bytes become events by the rules of the standard, however they are cut, within limits."""

import gc
import json
import tracemalloc
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from measures.work_count import count_joins
from openai_responses.errors import AnswerTooLarge, MalformedEvent
from openai_responses.json_input import MAX_JSON_DEPTH, json_weight, load_json
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ItemDone,
    ServerSentEvent,
    TextDelta,
    join_deltas,
    parse_event,
)


def decoded(*chunks: bytes) -> list[ServerSentEvent]:
    """Return all events of a stream that ends after these chunks."""
    decoder = EventStreamDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [*events, *decoder.close()]


def event(data: str, name: str = "") -> ServerSentEvent:
    return ServerSentEvent(name, data)


def bytewise(text: bytes) -> list[bytes]:
    """Return the chunks of the worst network."""
    return [text[offset : offset + 1] for offset in range(len(text))]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends_are_read(end: bytes) -> None:
    text = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
    expected = [event("1", "a"), event("2")]
    assert decoded(text) == expected
    assert decoded(*bytewise(text)) == expected


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"data: a\ndata: b\n\n", "a\nb"),
        (b"data\n\n", ""),
        (b"data\ndata\n\n", "\n"),
        (b"data:a\n\n", "a"),
        (b"data:  a\n\n", " a"),
        (b"data: a:b\n\n", "a:b"),
        (b": a comment\ndata: a\n:\n\n", "a"),
        (b"id: 7\nretry: 10\nnobody: knows\ndata: a\n\n", "a"),
        (b"database: no\ndata: a\n\n", "a"),
        # A name alone is no event, and does not name the next one.
        (b"event: a\n\n\n\ndata: a\n\n", "a"),
        (b"data: a\x0bb\x0cc\x1cd\n\n", "a\x0bb\x0cc\x1cd"),
        ("data: a\u2028b\u0085c\n\n".encode(), "a\u2028b\u0085c"),
    ],
)
def test_each_kind_of_line_does_what_the_standard_says(text: bytes, data: str) -> None:
    assert decoded(text) == [event(data)]
    assert decoded(*bytewise(text)) == [event(data)]


def test_bytes_that_are_no_utf8() -> None:
    """They are replaced; the stream goes on."""
    assert decoded(b"data: a\xffb\n\ndata: c\n\n") == [event("a\ufffdb"), event("c")]


@pytest.mark.parametrize("between", [(), (b"",)])
def test_crlf_in_two_chunks(between: tuple[bytes, ...]) -> None:
    """Its second half is not a line of its own, which would end the event early."""
    chunks = (b"data: a\r", *between, b"\ndata: b\r", *between, b"\n\r", b"\n")
    assert decoded(*chunks) == [event("a\nb")]
    assert decoded(b"data: a\r", *between, b"\n\ndata: b\n\n") == [
        event("a"),
        event("b"),
    ]


def test_event_is_there_with_its_blank_line() -> None:
    """Nothing waits for the byte after a carriage return; then nothing is left to say."""
    decoder = EventStreamDecoder()
    assert decoder.feed(b"data: a\r\r") == [event("a")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: b\n\n") == [event("b")]
    assert [*decoder.close(), *decoder.close()] == []


@pytest.mark.parametrize("rest", [b"data: a", b"data: a\r\n"])
def test_end_without_a_blank_line(rest: bytes) -> None:
    """The last event counts although the stream ended too early for the standard."""
    assert decoded(rest) == [event("a")]


@pytest.mark.parametrize(
    "text",
    [b"data: a\n\n", b"data: a\r\rdata: b\r\r", b"event: x\ndata: a\n\n", b"data: a"],
)
def test_byte_order_mark_is_no_part_of_the_first_line(text: bytes) -> None:
    """Of the first alone; a second mark belongs to the line."""
    mark = b"\xef\xbb\xbf"
    assert decoded(mark + text) == decoded(text) != []
    assert decoded(*bytewise(mark + text)) == decoded(text)
    assert decoded(mark + mark + b"data: a\n\n") == []
    later = b"data: a\n\n" + mark + b"data: b\n\n"
    assert decoded(later) == decoded(*bytewise(later)) == [event("a")]
    assert decoded(mark) == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("has_names", [True, False])
def test_stream_whose_blank_lines_a_proxy_stripped(
    end: bytes, *, has_names: bool
) -> None:
    """Data after a whole JSON object cannot belong to it, nor does an event have two names."""
    rows = [("a", '{"n": 1}'), ("b", ' {"n": {}} '), ("c", "[DONE]")]
    lines: list[bytes] = []
    for name, data in rows:
        lines += [f"event: {name}".encode()] if has_names else []
        lines.append(f"data: {data}".encode())
    text = end.join(lines)

    expected = [event(data, name if has_names else "") for name, data in rows]
    assert decoded(text) == expected
    assert decoded(*bytewise(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'data: {"a":\ndata: {}}\n\n', event('{"a":\n{}}')),
        (b'data: {"a": 1}\nevent: x\n\n', event('{"a": 1}', "x")),
        (b'event: x\ndata: {"a": 1}\ndata: \n\n', event('{"a": 1}\n', "x")),
        (b"data: {a}\ndata: {b}\n\n", event("{a}\n{b}")),
    ],
)
def test_event_of_several_lines_stays_one(
    text: bytes, expected: ServerSentEvent
) -> None:
    assert decoded(text) == [expected]
    assert decoded(*bytewise(text)) == [expected]


_LINES = st.sampled_from(
    ["data: {}", "data:x", "data", "event: é", ": c", "", "", "id: 1", "data: 東🚀"]
)
_ENDS = st.sampled_from(["\n", "\r", "\r\n"])
_CUTS = st.lists(st.floats(0, 1), max_size=8)


@given(
    lines=st.lists(st.tuples(_LINES, _ENDS)),
    tail=st.sampled_from(["", "data: tail", ":"]),
    cuts=_CUTS,
)
@example(lines=[("data: {}", "\r"), ("", "\r\n"), ("data", "\n")], tail="", cuts=[0.8])
@example(
    lines=[("data: 1", "\n"), ("event: a", "\n"), ("data: 2", "\n"), ("", "\n")],
    tail="",
    cuts=[0.31],  # in front of what would be an event of its own
)
def test_chunks_do_not_matter(
    lines: list[tuple[str, str]], tail: str, cuts: list[float]
) -> None:
    text = ("".join(line + end for line, end in lines) + tail).encode()
    places = sorted({0, len(text), *(round(cut * len(text)) for cut in cuts)})
    chunks = [text[a:b] for a, b in pairwise(places)]
    assert b"".join(chunks) == text
    assert decoded(*chunks) == decoded(*bytewise(text)) == decoded(text)


_USUAL = "event: response.output_text.delta\ndata: {}\n\n"
_UNUSUAL = [
    *(": a comment\n", "\n", "event: a\n", "event: a\n\n"),
    "event:  a b \ndata:  東🚀\n\n",
    "event: a\ndata: 1\ndata: 2\n\n",
    *("data: 1\n\n", "data: x\n", "x", "x\u2028", "event: a\r\ndata: 1\r\n\r\n"),
]
_PARTS = st.one_of(st.just(_USUAL), st.sampled_from(_UNUSUAL))


@given(
    parts=st.lists(_PARTS), tail=st.sampled_from(["", "event: a", "event: a\ndata: b"])
)
@example(parts=["event: a\ndata: 1\rdata: 2\n\n"], tail="")
def test_usual_events_are_read_as_line_by_line(parts: list[str], tail: str) -> None:
    """Events that are found by one search are those that their lines would give."""
    text = ("".join(parts) + tail).encode()
    assert decoded(text) == decoded(*bytewise(text))


class Glued(bytes):
    """A piece of a stream that says how many bytes are glued to others with a plus."""

    glued = 0

    def __add__(self, other: object) -> bytes:
        Glued.glued += len(self)
        return Glued(bytes(self) + bytes(other))  # type: ignore[call-overload]

    def __radd__(self, other: object) -> bytes:
        Glued.glued += len(self)
        return Glued(bytes(other) + bytes(self))  # type: ignore[call-overload]


def joins_for(megabytes: int) -> int:
    """Return the joins for one line of that length in pieces of 64 kB; none is glued."""
    Glued.glued = 0
    decoder = EventStreamDecoder()
    events: list[ServerSentEvent] = []
    text = b"data: " + b"x" * (megabytes << 20) + b"\n\n"

    def read() -> None:
        for start in range(0, len(text), 1 << 16):
            events.extend(decoder.feed(Glued(text[start : start + (1 << 16)])))

    joins = count_joins(read)
    assert [len(e.data) for e in events] == [megabytes << 20]
    assert Glued.glued == 0
    return joins


def test_long_line_is_joined_once() -> None:
    """A line of megabytes costs one copy, not one for each piece that arrives."""
    assert joins_for(1) == joins_for(4) <= 3


MEGABYTE = 1 << 20


def fed(piece: bytes, most: int) -> tuple[int, int]:
    """Feed copies of a piece until one is refused: how many bytes, and the peak held."""
    decoder = EventStreamDecoder(most)
    taken = 0
    gc.collect()
    tracemalloc.start()
    try:
        with suppress(AnswerTooLarge):
            while taken <= 8 * most:
                taken += len(piece)
                decoder.feed(bytes(bytearray(piece)))  # as a connection gives another
        return taken, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("piece", "most"),
    [
        pytest.param(b"x" * 65_536, MEGABYTE // 4, id="a line"),
        pytest.param(b"xy", MEGABYTE // 64, id="a line in tiny pieces"),
        pytest.param(b"data: xy\n" * 64, MEGABYTE // 4, id="many lines"),
        pytest.param(b"data\n" * 64, MEGABYTE // 4, id="empty lines"),
    ],
)
def test_event_without_an_end_is_refused(piece: bytes, most: int) -> None:
    """At its limit, with no more memory than twice that: a short line takes more."""
    taken, held = fed(piece, most)

    assert taken <= most + 2 * len(piece)
    assert held < 2 * most


def test_comments_hold_nothing() -> None:
    """They are counted by the limit of the answer alone."""
    decoder = EventStreamDecoder(MEGABYTE)
    tracemalloc.start()
    for _ in range(20):
        assert decoder.feed(b": still here\n\n" * 4_096) == []
    assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    tracemalloc.stop()


def test_events_in_front_of_the_endless_one_are_told() -> None:
    """The refusal comes with the next bytes."""
    decoder = EventStreamDecoder(1_000)

    events = decoder.feed(b"data: kept\n\ndata: " + b"x" * 2_000)

    assert events == [ServerSentEvent("", "kept")]
    with pytest.raises(AnswerTooLarge):
        decoder.feed(b"x")


@pytest.mark.parametrize(("begin", "size"), [(b"data: ", 900), (b"id: 1\ndata: ", 700)])
def test_event_of_the_largest_size_is_read(begin: bytes, size: int) -> None:
    """The limit is for one event: it begins anew with each, and counts no byte twice."""
    decoder = EventStreamDecoder(1_000)
    for _ in range(5):
        events = decoder.feed(begin + b"x" * size) + decoder.feed(b"\n\n")
        assert [len(event.data) for event in events] == [size]


LISTS = "[%s]"
OBJECTS = '{"a":%s}'
BOTH = '[{"a":%s}]'


def nested(depth: int, form: str) -> str:
    text = "0"
    for _ in range(depth):
        text = form % text
    return text


@pytest.mark.parametrize("form", [LISTS, OBJECTS])
def test_depth_of_json_has_a_limit(form: str) -> None:
    """Python's parser may read more, but whoever walks through it would fail."""
    deepest = nested(MAX_JSON_DEPTH - 1, form)
    assert load_json(deepest) == json.loads(deepest)
    parse_event(ServerSentEvent("", f'{{"type":"response.created","x":{deepest}}}'))
    with pytest.raises(MalformedEvent):
        parse_event(ServerSentEvent("", f'{{"type":"x","x":{form % deepest}}}'))


@pytest.mark.parametrize("text", ["[" * 100_000, nested(400, BOTH)])
def test_deep_json_is_refused(text: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(ValueError, match="too deep"):
            load_json(form)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400"])
def test_number_that_no_reader_has_is_null(number: str) -> None:
    """The page could read no event of its socket, and PostgreSQL stored no chat."""
    item = f'{{"type":"message","id":"m","x":[{number},1.5,1e3]}}'
    wire = f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}'

    event = parse_event(ServerSentEvent("", wire))

    assert event == ItemDone(0, {"type": "message", "id": "m", "x": [None, 1.5, 1e3]})


def test_wide_json_is_not_deep() -> None:
    """The limit is on nesting, not on the number of values."""
    assert len(load_json(json.dumps([[[]]] * 10_000))) == 10_000


@pytest.mark.parametrize(
    "unit", ["[],", "{},", '{"a":1},', "1.5,", '"ab",', "[[[0]]],", '"€",', "1,"]
)
def test_weight_is_the_order_of_the_memory(unit: str) -> None:
    """A text of little bytes that becomes much is counted as much."""
    text = f"[{unit * 5_000}0]"
    gc.collect()
    tracemalloc.start()
    value = json.loads(text)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert len(value) == 5_001
    assert held <= 3 * json_weight(text.encode())
    assert json_weight(text) <= json_weight(text.encode())


@pytest.mark.parametrize("count", [50_000, 100_000])
def test_tiny_deltas_are_joined_once(count: int) -> None:
    events = [TextDelta(0, "text", 0, "x")] * count
    joined: list[object] = []

    assert count_joins(lambda: joined.extend(join_deltas(events))) == 1
    assert joined == [TextDelta(0, "text", 0, "x" * count)]


@pytest.mark.parametrize("before", [b": ping\n\n", b"data: {}\n\n", b"data: {}\n"])
def test_error_without_a_field_is_data(before: bytes) -> None:
    """A gateway that has begun to stream passes on the body of a refusal as it is."""
    error = '{"error": {"code": 400}}'
    first = [event("{}")] if before.startswith(b"data") else []
    for end in (b"", b"\n", b"\n\n"):
        text = before + error.encode() + end
        assert decoded(text) == [*first, event(error)]
        assert decoded(*bytewise(text)) == [*first, event(error)]
    assert decoded(b'data: a\n\n{\n"error": 1\n}\n') == [event("a")]
