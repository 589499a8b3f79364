"""Every transcript means the same, however the network cuts it."""

from openai_responses.loop.response import ResponseState
from openai_responses.transport.stream import (
    EventStreamDecoder,
    parse_event,
)
from runs.transcripts import FOLDER


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
