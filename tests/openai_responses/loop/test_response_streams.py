"""Every transcript means the same, however the network cuts it."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from openai_responses.endings import Ending
from openai_responses.errors import MalformedEvent
from openai_responses.items import Item, item_texts
from openai_responses.loop.events import RunEvent
from openai_responses.loop.response import ResponseState
from openai_responses.models.usage import Usage
from openai_responses.transport.stream import (
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ServerSentEvent,
    TextDelta,
    parse_event,
)
from runs.joining import grown_texts, joined
from runs.transcripts import FOLDER

PATHS = sorted(FOLDER.glob("*.sse"))
TERMINAL = ("response.completed", "response.incomplete", "response.failed")

each_transcript = pytest.mark.parametrize("path", PATHS, ids=[p.stem for p in PATHS])


@dataclass(frozen=True)
class Replayed:
    """What a transcript came to."""

    events: list[RunEvent]
    ending: Ending | None
    usage: Usage | None
    output: list[Item]
    broken: bool


def replay(chunks: Iterable[bytes]) -> Replayed:
    """Feed the chunks of a body to a decoder and a turn, as a run does."""
    decoder = EventStreamDecoder(joins_deltas=True)
    turn = ResponseState()
    events: list[RunEvent] = []
    broken = False
    try:
        for chunk in chunks:
            batch = [turn.feed(parse_event(e)) for e in decoder.feed(chunk)]
            events += joined(event for group in batch for event in group)
        for rest in decoder.close():
            events += turn.feed(parse_event(rest))
    except MalformedEvent:
        broken = True
    events = joined(events)
    return Replayed(events, turn.ending, turn.usage, turn.output, broken)


def sent(path: Path) -> list[ServerSentEvent]:
    """Return the events of a transcript."""
    decoder = EventStreamDecoder()
    return [*decoder.feed(path.read_bytes()), *decoder.close()]


def last_snapshot(path: Path) -> FinalResponse | None:
    """Return the event that ends a transcript's response, if it has one."""
    for event in reversed(sent(path)):
        if event.data.startswith("{") and event.data.endswith("}"):
            wire = json.loads(event.data)
            if wire["type"] in TERMINAL:
                parsed = parse_event(event)
                assert isinstance(parsed, FinalResponse)
                return parsed
    return None


ENDED = [path for path in PATHS if last_snapshot(path) and path.stem != "late-reason"]
"""Those whose last snapshot says how they ended; Azure's filter says it behind."""


def test_there_are_transcripts() -> None:
    """An empty folder would make all other tests here pass."""
    assert len(PATHS) > 40
    assert len(ENDED) > 30


@each_transcript
def test_stream_byte_by_byte_is_the_same_response(path: Path) -> None:
    text = path.read_bytes()
    bytewise = (text[offset : offset + 1] for offset in range(len(text)))
    assert replay(bytewise) == replay([text])


@each_transcript
@pytest.mark.parametrize("seed", range(5))
def test_chunk_boundaries_do_not_change_the_response(path: Path, seed: int) -> None:
    """Nor does any other, also one that delivers nothing now and then."""
    text = path.read_bytes()
    dice = random.Random(f"{path.name} {seed}")
    cuts = [dice.randint(0, len(text)) for _ in range(dice.randint(1, 200))]
    places = sorted([0, len(text), *cuts])
    assert replay(text[a:b] for a, b in pairwise(places)) == replay([text])


@each_transcript
def test_shown_text_is_the_texts_of_the_items(path: Path) -> None:
    """What grew in front of a person is what ended, text by text."""
    replayed = replay([path.read_bytes()])
    grown = grown_texts(replayed.events)
    for event in replayed.events:
        if isinstance(event, ItemDone):
            for (kind, part), text in item_texts(event.item):
                assert grown.get((event.output_index, kind, part), "") == text


@each_transcript
def test_items_start_before_they_grow_and_end(path: Path) -> None:
    """Each item starts once, grows only while it is open, ends at most once."""
    open_items: set[int] = set()
    seen: set[int] = set()
    for event in replay([path.read_bytes()]).events:
        match event:
            case ItemAdded(index, _):
                assert index not in seen
                seen.add(index)
                open_items.add(index)
            case TextDelta(index, _, _, text):
                assert index in open_items
                assert text
            case ItemDone(index, _):
                open_items.remove(index)


@pytest.mark.parametrize("path", ENDED, ids=[path.stem for path in ENDED])
def test_last_snapshot_equals_the_streamed_response(path: Path) -> None:
    """The last snapshot alone, which is what a JSON answer is, comes to the same."""
    streamed = replay([path.read_bytes()])
    snapshot = last_snapshot(path)
    assert snapshot
    turn = ResponseState()
    events = turn.feed(snapshot)
    assert without_moment(turn.output) == without_moment(streamed.output)
    assert (turn.ending, turn.usage) == (streamed.ending, streamed.usage)
    ended = {
        position
        for position in grown_texts(streamed.events)
        if position[0] in indexes(events)
    }
    assert grown_texts(events) == {p: grown_texts(streamed.events)[p] for p in ended}
    assert events[-1] == streamed.events[-1]


def indexes(events: list[RunEvent]) -> set[int]:
    """Return the places of the items that ended."""
    return {event.output_index for event in events if isinstance(event, ItemDone)}


def without_moment(items: list[Item]) -> list[Item]:
    """Return `items` without what differs from the finished item to the last snapshot.

    That is the state, and how the encrypted content is written (recorded: 15 of 15).
    """
    moment = ("status", "encrypted_content")
    return [{k: v for k, v in item.items() if k not in moment} for item in items]


ENDINGS = {
    "annotations": ("completed", None),
    "chat": ("completed", None),
    "incomplete": ("incomplete", "max_output_tokens"),
    "incomplete-thoughts": ("incomplete", "max_output_tokens"),
    "filtered": ("incomplete", "content_filter"),
    "failed": ("failed", "server_error"),
    "failed-limit": ("failed", "rate_limit_exceeded"),
    "misaligned": ("failed", "misalignment_policy_violation"),
    "cyber-failed": ("failed", "cyber_policy"),
    "too-large": ("failed", "request_too_large"),
    "late-reason": ("failed", "content_policy_violation"),
    "error-flat": ("error", "server_error"),
    "error-nested": ("error", "server_error"),
    "error-first": ("error", "server_is_overloaded"),
    "cut": None,
    "drop": None,
    "stall": None,
}


@pytest.mark.parametrize("name", ENDINGS)
def test_transcript_has_its_expected_ending(name: str) -> None:
    replayed = replay([(FOLDER / f"{name}.sse").read_bytes()])
    ending = replayed.ending
    assert (ending and (ending.kind, ending.code)) == ENDINGS[name]
    assert replayed.broken == (name == "drop")


def test_a_resumed_stream() -> None:
    """A stream that broke, and the rest of it, come to what a whole one comes to."""
    name = "background-drop.sse"
    turn = ResponseState()
    events = list[RunEvent]()
    for path in (FOLDER / name, FOLDER / "resumed" / name):
        for event in EventStreamDecoder().feed(path.read_bytes()):
            events += turn.feed(parse_event(event))
    whole = replay([(FOLDER / "background.sse").read_bytes()])
    assert joined(events) == whole.events
    assert turn.output == whole.output
    assert whole.ending


DRESSED = ("chat-cr", "chat-crlf-comments", "chat-multiline", "chat-nameless-done")


@pytest.mark.parametrize("name", DRESSED)
def test_dress_of_a_stream(name: str) -> None:
    """Line ends, comments and split lines change nothing but the looks."""
    plain = replay([(FOLDER / "chat.sse").read_bytes()])
    dressed = replay([(FOLDER / f"{name}.sse").read_bytes()])
    assert grown_texts(dressed.events) == grown_texts(plain.events)
    assert grown_texts(plain.events)


def test_removed_items_and_cache_misses_are_in_the_trace() -> None:
    """gpt-6.2-sol, whose effort at request level changed in the middle of a chat."""
    decoder = EventStreamDecoder()
    state = ResponseState()
    for event in decoder.feed((FOLDER / "cache-miss.sse").read_bytes()):
        state.feed(parse_event(event))
    assert state.trace.removed == {"prefix_mismatch": 1}
    assert state.trace.cache["reason"] == "reasoning_effort_changed"
    assert state.trace.cache["cache_missed_tokens"] > 1024
    assert state.trace.response_id.startswith("resp_")
