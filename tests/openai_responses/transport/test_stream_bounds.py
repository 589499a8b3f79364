"""What a hostile stream may cost: bytes held, and work at n and 2n."""

import gc
import json
import tracemalloc
from contextlib import suppress

import pytest

from measures.work_count import count_joins
from openai_responses.errors import AnswerTooLarge, MalformedEvent
from openai_responses.json_input import MAX_JSON_DEPTH, json_weight, load_json
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ServerSentEvent,
    TextDelta,
    join_deltas,
    parse_event,
)

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
        pytest.param(b"data: x\n" * 8_192, MEGABYTE // 4, id="many lines"),
        pytest.param(b"data\n" * 8_192, MEGABYTE // 4, id="empty lines"),
    ],
)
def test_event_without_an_end_is_refused(piece: bytes, most: int) -> None:
    """At its limit, with no more memory than a few times that."""
    taken, held = fed(piece, most)

    assert taken <= most + 2 * len(piece)
    assert held < 8 * most


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
    """Return JSON of this depth."""
    text = "0"
    for _ in range(depth):
        text = form % text
    return text


@pytest.mark.parametrize(
    ("form", "depth"), [(LISTS, MAX_JSON_DEPTH), (OBJECTS, MAX_JSON_DEPTH), (BOTH, 400)]
)
def test_deep_event_is_malformed(form: str, depth: int) -> None:
    """Python's parser may read it, but whoever walks through it would fail."""
    text = f'{{"type":"response.created","x":{nested(depth, form)}}}'
    with pytest.raises(MalformedEvent):
        parse_event(ServerSentEvent("", text))


@pytest.mark.parametrize("text", ["[" * 100_000, nested(400, BOTH)])
def test_deep_json_is_refused(text: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(ValueError, match="too deep"):
            load_json(form)


@pytest.mark.parametrize("form", [LISTS, OBJECTS])
def test_usual_depth_is_read(form: str) -> None:
    text = nested(MAX_JSON_DEPTH - 1, form)
    assert load_json(text) == json.loads(text)
    parse_event(ServerSentEvent("", f'{{"type":"x","x":{text}}}'))


def test_wide_json_is_not_deep() -> None:
    """The limit is on nesting, not on the number of values."""
    assert len(load_json(json.dumps([[[]]] * 10_000))) == 10_000


@pytest.mark.parametrize(
    "unit", ["[],", "{},", '{"a":1},', "1.5,", '"ab",', "[[[0]]],", '"€",', "1,"]
)
def test_weight_is_the_order_of_the_memory(unit: str) -> None:
    """A text of little bytes that becomes much is counted as much."""
    text = f"[{unit * 20_000}0]"
    gc.collect()
    tracemalloc.start()
    value = json.loads(text)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert len(value) == 20_001
    assert held <= 3 * json_weight(text.encode())
    assert json_weight(text) <= json_weight(text.encode())


@pytest.mark.parametrize("count", [50_000, 100_000])
def test_tiny_deltas_are_joined_once(count: int) -> None:
    events = [TextDelta(0, "text", 0, "x")] * count
    joined: list[object] = []

    assert count_joins(lambda: joined.extend(join_deltas(events))) == 1
    assert joined == [TextDelta(0, "text", 0, "x" * count)]
