"""Nothing that a server, a chat or a store can hold breaks or stops a run.

What must hold of each module by itself is in its own tests; here what comes from
outside goes all the way: bytes to chunks and records, records and messages to input.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from measures.work_count import count_work
from openai_responses.endings import CUT
from openai_responses.errors import InvalidRequest, MalformedEvent
from openai_responses.items import Item, message_text
from openai_responses.loop.events import HiddenMessage, RunDone, RunEvent
from openai_responses.loop.response import ResponseState
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ItemAdded,
    ItemDone,
    TextDelta,
    join_deltas,
    parse_event,
)
from owui_chat.events import AnswerReport
from owui_chat.input.history import build_input
from owui_chat.messages import parse_messages
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.storage.markers import (
    MarkedText,
    format_marker,
    split_at_markers,
    strip_markers,
)
from owui_chat.storage.records import message_key, read_records, write_records
from runs.sample import ORIGIN, TRANSCRIPTS, call, message, reasoning, tell
from runs.transcripts import FOLDER as STREAMS
from stand_in.signing import SIGN
from strictness.mutations import mutated, spoiled, within
from upstream import wire

Json = dict[str, Any]

ENDLESS = 20.0
"""Seconds of CPU after which an example counts as one that never ends."""
LARGE = 200_000
TEXT = "response.output_text.delta"
MAX_CALLS = 1_000_000
"""Of functions, to read that many bytes: five for each."""


PROFILE = settings.default or settings()
many = settings(max_examples=PROFILE.max_examples * 5)


def reported(pieces: Iterable[bytes]) -> list[RunEvent]:
    """What a run reports of a body, up to where it cannot be read."""
    decoder = EventStreamDecoder()
    turn = ResponseState()
    run_events: list[RunEvent] = []
    with suppress(MalformedEvent):
        for blocks in [*map(decoder.feed, pieces), decoder.close()]:
            events = join_deltas([parse_event(block) for block in blocks])
            run_events += [
                run_event for event in events for run_event in turn.feed(event)
            ]
    usage = turn.usage
    output = tuple(turn.output)
    return [*run_events, RunDone(turn.ending or CUT, usage, usage, output)]


def assert_orderly(events: Sequence[RunEvent]) -> None:
    """Every item starts once, grows after that, and ends; some end twice."""
    begun: set[int] = set()
    ended: set[int] = set()
    hidden: set[int] = set()
    for event in events:
        match event:
            case ItemAdded():
                assert event.output_index not in begun
                begun.add(event.output_index)
            case TextDelta():
                assert event.output_index in begun
                assert event.text
            case ItemDone():
                assert event.output_index in begun
                ended.add(event.output_index)
            case HiddenMessage():
                hidden.add(event.output_index)
    last = events[-1]
    assert isinstance(last, RunDone)
    assert hidden.isdisjoint(begun)
    assert len(last.output) == len(ended | hidden)


def assert_shown_and_kept(events: Sequence[RunEvent]) -> None:
    """What a run shows can be sent, and what it keeps can be read again."""
    answer = tell(events)
    view = ChunkRenderer("chatcmpl-1", 0, "gpt-5.2")
    chunks = [chunk for event in events for chunk in view.render(event)]
    ended = events[-1]
    assert isinstance(ended, RunDone)
    whole = completion(ended, "chatcmpl-1", 0, "gpt-5.2", AnswerReport())
    json.dumps([answer.chunks, chunks, whole])
    grown = [chunk["delta"] for chunk in answer.chunks if chunk.get("type") == TEXT]
    shown = "".join([*grown, *map(message_text, answer.view.output.items)])
    assert all(ulid in shown for ulid in answer.records)
    chat = {message_key("m-1"): write_records(answer.records, SIGN)}
    read = read_records(json.loads(json.dumps(chat)), SIGN)
    assert read == answer.records
    _, parts = parse_messages([{"role": "assistant", "content": shown}])
    json.dumps(build_input(parts, read, ORIGIN))


def body(events: Iterable[Json]) -> bytes:
    """The bytes of events; other than those of the builders, they may be anything."""
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


EVENTS: list[list[Json]] = [
    wire.whole_stream(wire.message("He", "llo")),
    wire.whole_stream(wire.reasoning(["a", "b"], ["c"]), wire.message("d", at=1)),
    wire.whole_stream(wire.reasoning_text("raw"), wire.refusal("No", at=1)),
    wire.whole_stream(
        wire.reasoning(["a"]),
        wire.function_call("look", '{"a":', "1}", at=1),
        wire.custom_call("note", "abc", at=2),
        wire.message("Look.", at=3, phase="commentary"),
        wire.message("Done.", at=4, phase="final_answer"),
    ),
    [*wire.message("Hel"), wire.ended("incomplete", wire.message_item("Hel"))],
    [wire.created(), *wire.message("Hel"), wire.error_flat("server_error")],
    [wire.created(), wire.error_nested("rate_limit_exceeded")],
    [wire.created(), wire.ended("failed", error={"code": "x", "message": "y"})],
    [wire.completed(wire.reasoning_item("a"), wire.message_item("b", at=1))],
]


def ending_with(item: Json) -> list[Json]:
    return [*wire.message("Hel", phase="x")[:-1], wire.done(item), wire.completed()]


BODIES = [(STREAMS / name).read_bytes() for name in TRANSCRIPTS]


@many
@given(events=mutated(EVENTS))
@example(events=ending_with({"type": "reasoning", "summary": ["a", {"text": 1}]}))
@example(events=ending_with({"type": "reasoning", "summary": True}))
@example(events=ending_with({"type": "message", "phase": "x", "content": "text"}))
@example(events=ending_with({"type": "message", "phase": "x", "content": True}))
@example(events=ending_with({"role": "assistant", "phase": "x", "content": []}))
def test_any_events_are_a_run(events: list[Json]) -> None:
    """Fields missing or of another type, items twice, in disorder, deep in others."""
    with within(ENDLESS):
        reported_events = reported([body(events)])
        assert_orderly(reported_events)
        assert_shown_and_kept(reported_events)


@given(
    text=st.binary(max_size=200) | spoiled(BODIES),
    size=st.sampled_from([1, 7, 1000, LARGE]),
)
def test_any_bytes_are_a_run(text: bytes, size: int) -> None:
    """Cut anywhere: what a broken gateway can make of a stream."""
    with within(ENDLESS):
        reported_events = reported(
            text[at : at + size] for at in range(0, len(text), size)
        )
        assert_orderly(reported_events)
        assert_shown_and_kept(reported_events)


def _hostile_bodies(large: int) -> Iterator[tuple[str, bytes]]:
    yield "a line without an end", b"data: " + b"x" * large
    for name, unit in {
        "feeds": b"\n",
        "returns": b"\r",
        "colons": b":",
        "empty fields": b"data\n",
        "lines of one event": b"data:[\n",
        "events that are no JSON": b"data: x\n\n",
        "bytes that are no text": b"data: \xff\xfe\n\n",
        "events without a name": b"data: {}\n\n",
    }.items():
        yield name, unit * (large // len(unit))
    for name, unit in {"arrays": b"[", "objects": b'{"error":', "digits": b"9"}.items():
        yield f"open {name}", b"data: " + unit * (large // len(unit)) + b"\n\n"
    depth = large // 11
    nested = b'{"error":' * depth + b"1" + b"}" * depth
    yield "error in errors", b'data: {"type":"error","error":' + nested + b"}\n\n"
    for name, events in _hostile_events(large):
        yield name, body(events)


def _hostile_events(large: int) -> Iterator[tuple[str, list[Json]]]:
    whole = "x" * large
    item = wire.message_item("Hi")
    begun = wire.added(item)
    yield "one long delta", wire.whole_stream(wire.message(whole))
    yield "short deltas", wire.whole_stream(wire.message(*"x" * (large // 120)))
    yield "a long type", [{"type": whole}]
    yield "a text that grows and ends", [
        begun,
        *(wire.text_done("x" * length) for length in range(large // 300)),
    ]
    yield "the same item again", [begun, wire.done(item)] * (large // 400)
    late = wire.text_delta("x")
    long = wire.done(wire.message_item(whole[: large // 2]))
    many = large // 1000
    yield "ends of a text that goes on", [begun, *[late, wire.text_done("")] * many]
    yield "short ends of a long text", [
        begun,
        long,
        *[late, wire.text_done("x")] * many,
    ]
    yield "short ends of a long item", [long, *[late, wire.done(item)] * many]
    yield "an item that grows and ends", [
        wire.done(wire.message_item("x" * length)) for length in range(large // 400)
    ]
    yield "a message again and again", [wire.completed(*[item] * many)]
    yield "an end for each item", [
        wire.done(wire.message_item("Hi", at=at), at=at) for at in range(large // 250)
    ]
    yield "deltas of items that never begin", [
        wire.text_delta("x", at=at) for at in range(large // 120)
    ]
    yield "calls without an answer", [
        wire.done(wire.call_item("look", "{}", at=at), at=at)
        for at in range(large // 200)
    ]
    count = large // 250
    part = {"type": "output_text", "text": "x"}
    end = {"type": "response.content_part.done", "part": part}
    yield "ends of parts of items that never begin", [
        *(wire.done(wire.call_item("look", "{}", at=at), at=at) for at in range(count)),
        *(
            {**end, "item_id": f"msg_{at}", "output_index": count + at}
            for at in range(count)
        ),
    ]
    texts = ["x"] * (large // 60)
    yield "many parts", [begun, wire.done(wire.message_item(*texts))]
    yield "many thoughts", [wire.completed(wire.reasoning_item(*texts))]


bodies = cache(lambda large: dict(_hostile_bodies(large)))
NAMES = list(bodies(1_000))


def read_in_pieces(text: bytes, size: int) -> None:
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    reported_events = reported(pieces)
    assert_shown_and_kept(reported_events)
    assert_orderly(reported_events)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_body_is_a_run(name: str) -> None:
    with within(ENDLESS):
        read_in_pieces(bodies(LARGE)[name], 2 * LARGE)


@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("name", NAMES)
def test_hostile_body_takes_linear_work(name: str, size: int) -> None:
    """Twice the body is twice the work, but for two in a hundred."""
    once, twice = (
        count_work(partial(read_in_pieces, bodies(large)[name], size), MAX_CALLS // 8)
        for large in (LARGE // 16, LARGE // 8)
    )

    assert twice <= 2.02 * once


ULIDS = ["A" * 26, "B" * 26]
STORED = [
    {
        "model": "openai_responses.gpt-5.2",
        "created_at": 1,
        "payload": payload,
        "message_id": "m-1",
        "origin": origin,
    }
    for payload, origin in [
        ([reasoning("1"), call("1"), {**message("1", "Hi"), "phase": "x"}], None),
        (reasoning("2"), ORIGIN.wire()),
    ]
]


def _kept(record: Json) -> Json:
    return {message_key("m-1"): {"items": {ULIDS[0]: record}}}


CHATS: list[Json] = [
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
            {
                "role": "assistant",
                "content": f"Yes.{format_marker('items', ULIDS[0])}Look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            {
                "role": "assistant",
                "content": f"{format_marker('reasoning', ULIDS[1])}Wet.",
            },
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:,"}}],
            },
        ],
        "openai_responses_pipe": {"__v": 3, "items": {ULIDS[1]: STORED[1]}},
        message_key("m-1"): {
            "__v": 4,
            "items": {ULIDS[0]: STORED[0]},
            "dead": [ULIDS[1]],
        },
    }
]
CHATS.append({"messages": CHATS[0]["messages"][2:4], **_kept(STORED[0])})


def input_of(chat: Json) -> list[Item]:
    messages = chat.get("messages")
    rows = messages if isinstance(messages, list) else []
    _, parts = parse_messages(rows)
    return build_input(parts, read_records(chat, SIGN), ORIGIN)


@many
@given(chat=mutated(CHATS, most=6))
@example(chat={"messages": [{"role": "user", "content": "Hi"}, "Hi"]})
@example(chat={**CHATS[1], **_kept({**STORED[0], "payload": call("1", call_id=[])})})
def test_any_chat_is_an_input_or_refused(chat: Json) -> None:
    """Whatever a person, an import or another writer did to it."""
    with within(ENDLESS), suppress(InvalidRequest):
        json.dumps(input_of(chat))
        assert write_records(read_records(chat, SIGN), SIGN)["__v"] == 7


def _hostile_chats() -> Iterator[tuple[str, Json]]:
    line = format_marker("items", ULIDS[0])
    kept = _kept(STORED[0])
    for name, text in {
        "one marker again": line * (LARGE // len(line)),
        "a long text": "x" * LARGE,
        "white space": " \n\t" * (LARGE // 3),
    }.items():
        yield name, {**kept, "messages": [{"role": "assistant", "content": text}]}
    short = {"role": "assistant", "content": "x"}
    yield "many messages", {**kept, "messages": [short] * (LARGE // 40)}
    parts = [{"type": "text", "text": "x"}] * (LARGE // 30)
    yield "many parts", {"messages": [{"role": "user", "content": parts}]}
    yield "many calls in one record", _chat_with_calls(LARGE // 200)


def _chat_with_calls(count: int) -> Json:
    calls = [call(str(number)) for number in range(count)]
    record = {**STORED[0], "payload": [reasoning("1"), *calls]}
    cards = [
        {"id": item["call_id"], "function": {"name": "f", "arguments": "{}"}}
        for item in calls
    ]
    outputs = [
        {"role": "tool", "tool_call_id": item["call_id"], "content": "x"}
        for item in calls
    ]
    text = f"{format_marker('items', ULIDS[0])}x"
    answer = {"role": "assistant", "content": text, "tool_calls": cards}
    return {**_kept(record), "messages": [answer, *outputs]}


HOSTILE_CHATS = dict(_hostile_chats())


@pytest.mark.parametrize("name", HOSTILE_CHATS)
def test_hostile_chat_takes_linear_work(name: str) -> None:
    """Whatever its 200 kB are made of."""
    with within(ENDLESS):
        count_work(partial(input_of, HOSTILE_CHATS[name]), MAX_CALLS)


_BITS = "\u200b\u200c" * 104
WRITTEN = [
    format_marker("items", ULIDS[0]),
    f"\n\n[](openai_responses:v1:function_call:{ULIDS[0]}?model=a.b)\n\n",
    f"\u2060{_BITS}\u2060",
    f"\n[openai_responses:v2:x_y:{ULIDS[1][:16]}?a=b]:\t#\n",
    "\n[openrouter:v1:a:b]: #\n",
]
pieces = st.one_of(
    st.sampled_from([*WRITTEN, *" \t\n\u2060\u200b"]),
    st.builds(
        lambda text, start, stop: text.strip()[start:-stop],
        st.sampled_from(WRITTEN),
        st.integers(0, 3),
        st.integers(1, 12),
    ),
    st.text(max_size=3),
)
damaged = st.lists(pieces, max_size=6).map("".join)


def assert_found_in_order(marked: Sequence[MarkedText], text: str) -> None:
    """The pieces are the text's own, one after the other."""
    at = 0
    for piece in marked:
        at = text.index(piece.text, at) + len(piece.text)


@many
@given(text=damaged)
def test_pieces_of_a_damaged_text_are_its_own(text: str) -> None:
    """Nothing is made up, doubled or put in another place."""
    with within(ENDLESS):
        assert_found_in_order(list(split_at_markers(text)), text)
        strip_markers(text)


@settings(phases=[Phase.explicit, Phase.generate])  # a smaller one is as slow
@given(head=damaged, unit=pieces.filter(bool))
@example(head=WRITTEN[0], unit=" ")
@example(head="", unit=WRITTEN[3].strip()[:-6])
def test_any_repeated_unit_takes_linear_work(head: str, unit: str) -> None:
    """No pattern looks at a text again for each of its characters."""
    text = head + unit * (LARGE // 10 // len(unit))

    def read() -> None:
        assert_found_in_order(list(split_at_markers(text)), text)
        strip_markers(text)

    with within(ENDLESS):
        count_work(read, MAX_CALLS // 10)
