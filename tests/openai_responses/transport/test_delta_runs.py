"""Deltas that come together are one event, and mean what they mean one by one."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openai_responses.errors import MalformedEvent
from openai_responses.transport.delta_runs import join_delta_runs
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ServerSentEvent,
    StreamEvent,
    join_deltas,
    parse_event,
)

TEXT = "response.output_text.delta"
SUMMARY = "response.reasoning_summary_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"

OPENAI = (
    '{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_1",'
    '"output_index":0,"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"%s"}'
)
SORTED = (
    '{"type":"response.output_text.delta","content_index":0,"delta":"%s",'
    '"item_id":"msg_1","logprobs":[],"obfuscation":"%s","output_index":1,'
    '"sequence_number":%d}'
)
VLLM = (
    '{"content_index":0,"delta":"%s","item_id":"msg_1","logprobs":[],'
    '"output_index":1,"sequence_number":%d,"type":"response.output_text.delta"}'
)
BARE = '{"type":"response.output_text.delta","output_index":0,"delta":"%s"}'


def event(data: str, name: str = TEXT) -> str:
    """Return an event as most servers write it."""
    return f"event: {name}\ndata: {data}\n\n"


def delta(text: str, **fields: Any) -> str:
    wire = {"type": TEXT, "output_index": 0, **fields, "delta": text}
    return event(json.dumps(wire, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.parametrize(
    ("form", "fields", "joined"),
    [
        (OPENAI, [(9, "One ", "x"), (10, "two.", "yz")], (9, "One two.", "x")),
        (SORTED, [("One ", "x", 9), ("two.", "", 10)], ("One two.", "x", 9)),
        (VLLM, [("One ", 0), ("two", 1), (".", 2)], ("One two.", 0)),
        (BARE, [("One ",), ("two.",)], ("One two.",)),
        (BARE, [(r"a\"\n",), ("東 ",), ("",), (r"\\u0041",)], (r"a\"\n東 \\u0041",)),
    ],
    ids=["OpenAI", "sorted names", "no obfuscation", "no number", "escapes"],
)
def test_run_becomes_one_event(
    form: str, fields: list[tuple[Any, ...]], joined: tuple[Any, ...]
) -> None:
    before = event('{"type":"response.in_progress"}', "response.in_progress")
    after = event('{"type":"response.completed","response":{}}', "response.completed")
    run = "".join(event(form % row) for row in fields)

    text = join_delta_runs(before + run + after)

    assert text == before + event(form % joined) + after


def test_other_text_begins_another_run() -> None:
    events = [delta("a"), delta("b"), delta("c", content_index=1), delta("d")]

    text = join_delta_runs("".join([*events, delta("e")]))

    assert text == "".join([delta("ab"), delta("c", content_index=1), delta("de")])


TWICE = '{"type":"response.output_text.delta","delta":"a","delta":"%s"}'
TWO_TYPES = '{"type":"response.output_text.delta","delta":"%s","type":"error"}'
INSIDE = '{"type":"response.output_text.delta","output_index":0,"x":{"delta":"%s"}}'
ESCAPED = '{"type":"response.output_text.delta","\\u0064elta":"a","delta":"%s"}'


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([delta("a")], id="one event"),
        pytest.param([event(TWICE % "b"), event(TWICE % "c")], id="two deltas"),
        pytest.param([event(TWO_TYPES % "b"), event(TWO_TYPES % "c")], id="two types"),
        pytest.param([event(INSIDE % "b"), event(INSIDE % "c")], id="in an object"),
        pytest.param([event(ESCAPED % "b"), event(ESCAPED % "c")], id="escaped name"),
        pytest.param(
            [event(BARE % "a", SUMMARY), event(BARE % "b", SUMMARY)], id="other name"
        ),
        pytest.param(
            [event(BARE % r"\ud83d"), event(BARE % r"\ude80")], id="half a character"
        ),
        pytest.param([event(BARE % "a\t"), event(BARE % "b\t")], id="control sign"),
        pytest.param([event(BARE % r"\x"), event(BARE % r"\x")], id="no escape"),
        pytest.param(
            [delta("a", n=0), event(OPENAI % (1, "b", ""))], id="other fields"
        ),
        pytest.param([event(BARE.replace('"%s"', "1"))] * 2, id="a number"),
        pytest.param([delta("a", logprobs=[{}]), delta("b", logprobs=[{}])], id="logs"),
        pytest.param([f"data: {delta('a')}", delta("b")], id="inside of a line"),
        pytest.param([": a comment\n", delta("a"), ": a comment\n"], id="comments"),
    ],
)
def test_unusual_events_stay_for_the_parser(events: list[str]) -> None:
    text = "".join(events)

    assert join_delta_runs(text) == text


def test_only_a_reader_of_texts_gets_joined_events() -> None:
    """Others count on each event, as the resumption of a background response."""
    text = (delta("a") + delta("b")).encode()

    assert len(EventStreamDecoder().feed(text)) == 2
    assert len(EventStreamDecoder(joins_deltas=True).feed(text)) == 1


_JSON_TEXTS = st.sampled_from(
    ['""', '" word"', '"東🚀"', r'"a\"b"', r'"\n\n"', r'"\\"', '"{"', '"[1]"']
)
_ODD_JSON = st.sampled_from(
    [
        *(r'"\ud83d"', r'"\ude80"', r'"\x"', '"\t"', '"'),
        *("1", "null", '["a"]', '{"a":1}', "01"),
    ]
)
_DELTA_VALUES = st.one_of(_JSON_TEXTS, _JSON_TEXTS, _JSON_TEXTS, _ODD_JSON)
_SHARED_FIELDS = [
    *('"item_id":"msg_1"', '"output_index":0', '"logprobs":[]', '"delta":"x"'),
    *('"delta":1', r'"\u0064elta":"x"', '"x":{"delta":"y"}', '"x":{"y":0}'),
    *('"x":["delta"]', f'"type":"{SUMMARY}"', '"type":"error"', '"output_index":"0"'),
    "x",
]
"""What some servers send, and then what none should."""
_NAMES = st.sampled_from([TEXT, TEXT, SUMMARY, ARGUMENTS, "response.other.delta"])
_FRAMES = st.sampled_from(["%s"] * 6 + [" %s", "data: %s", ": %s", "\n%s"])


@st.composite
def _runs(draw: st.DrawFn) -> list[str]:
    """Return events of one form, which may be odd, with values that may be."""
    name = draw(_NAMES)
    shared = draw(st.lists(st.sampled_from(_SHARED_FIELDS), max_size=3))
    form = [f'"type":"{name}"', *shared, '"delta":%(delta)s']
    if draw(st.booleans()):
        form.append('"sequence_number":%(number)s')
    if draw(st.booleans()):
        form.append('"obfuscation":%(noise)s')
    fields = ",".join(draw(st.permutations(form)))
    events = []
    for _ in range(draw(st.integers(2, 4))):
        values = {
            "delta": draw(_DELTA_VALUES),
            "number": draw(st.sampled_from(["0", "7", "10", "10"])),
            "noise": draw(_JSON_TEXTS),
        }
        events.append(draw(_FRAMES) % event(f"{{{fields % values}}}", name))
    return events


_OTHERS = st.sampled_from(
    [
        delta("x"),
        event('{"type":"response.in_progress"}', "response.in_progress"),
        *(event("[DONE]"), event("{"), event(BARE % "x", "")),
        *("data: 1\n", ": a comment\n\n", "\n"),
    ]
)


def read(events: Iterable[ServerSentEvent]) -> list[StreamEvent | str]:
    """Return what the parser reads, up to what is malformed; neighbors are joined."""
    parsed: list[StreamEvent] = []
    try:
        for wire_event in events:
            parsed.append(parse_event(wire_event))
    except MalformedEvent:
        return [*join_deltas(parsed), "malformed"]
    return list(join_deltas(parsed))


def known_once(events: list[StreamEvent | str]) -> list[StreamEvent | str]:
    """Return the events, with unknown ones in a row as one: they say the same."""
    return [
        row
        for row, before in zip(events, ["", *events], strict=False)
        if row is not None or before is not None
    ]


@given(runs=st.lists(_runs() | st.lists(_OTHERS, max_size=2), max_size=4))
@example(runs=[[delta("a"), delta("b")], [delta("c", output_index=1)]])
def test_joined_runs_mean_what_their_events_mean(runs: list[list[str]]) -> None:
    """Whatever a server sends, the parser reads the same texts of the same items."""
    text = "".join(row for run in runs for row in run).encode(errors="surrogatepass")
    plain = EventStreamDecoder()
    joining = EventStreamDecoder(joins_deltas=True)

    expected = read([*plain.feed(text), *plain.close()])
    joined = read([*joining.feed(text), *joining.close()])

    assert known_once(joined) == known_once(expected)
