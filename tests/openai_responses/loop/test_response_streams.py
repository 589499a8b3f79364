"""Every transcript means the same, however the network cuts it."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from openai_responses.endings import Ending
from openai_responses.errors import MalformedEvent
from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.loop.response import ResponseState
from openai_responses.models.usage import Usage
from openai_responses.transport.stream import (
    EventStreamDecoder,
    parse_event,
)
from runs.joining import grown_texts, joined
from runs.transcripts import FOLDER


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


ENDINGS = {
    "annotations": ("completed", None),
    "chat": ("completed", None),
    "incomplete": ("incomplete", "max_output_tokens"),
    "incomplete-thoughts": ("incomplete", "max_output_tokens"),
    "incomplete-messages": ("incomplete", "max_messages"),
    "filtered": ("incomplete", "content_filter"),
    "failed": ("failed", "server_error"),
    "failed-policy": ("failed", "invalid_prompt"),
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
