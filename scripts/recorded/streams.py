"""Recorded streams through the decoder and the state of a response."""

from collections.abc import Iterable, Iterator

from openai_responses.errors import ResponsesError
from openai_responses.loop.response import ResponseState
from openai_responses.transport.stream import (
    EventStreamDecoder,
    StreamEvent,
    join_deltas,
    parse_event,
)
from recorded.answers import (
    AnswerFacts,
    differing_facts,
    facts_of_items,
    facts_of_response,
)
from recorded.rows import EDITED_SOURCES, Difference, Recording

CHUNK_SIZES = (0, 1, 7, 4096)
"""In bytes; 0 stands for the whole stream."""


def compare_streams(recordings: Iterable[Recording]) -> list[Difference]:
    """Return where the decoder reads something else than the final object contains."""
    differences: list[Difference] = []
    compared = 0
    for recording in recordings:
        if not recording.is_stream or not recording.final or recording.status >= 400:
            continue
        compared += 1
        differences += _compare(recording)
    print(f"streams: {compared} compared, each in {len(CHUNK_SIZES)} ways")
    return differences


def _compare(recording: Recording) -> Iterator[Difference]:
    assert recording.final
    theirs = facts_of_response(recording.final)
    edited = recording.repository.startswith(EDITED_SOURCES)
    note = " (edited by hand?)" if edited else ""
    seen = set[AnswerFacts]()
    for size in CHUNK_SIZES:
        try:
            ours = read_stream(recording.body.encode(), size)
        except ResponsesError as error:
            group = f"decoder: {type(error).__name__}"
            yield Difference(group, recording, f"pieces of {size}: {error}")
            continue
        if ours in seen:
            continue
        if seen:
            yield Difference("decoder: pieces matter", recording, f"of {size} bytes")
        seen.add(ours)
        for name, detail in differing_facts(ours, theirs):
            yield Difference(f"decoder: {name}{note}", recording, detail)
    if read_texts(recording.body, joins=True) != read_texts(
        recording.body, joins=False
    ):
        yield Difference("decoder: joined runs of deltas differ", recording, "")


def read_texts(body: str, *, joins: bool) -> list[StreamEvent]:
    """Return the known events of a stream, with neighboring deltas joined.

    `joins` says whether runs of deltas are joined before they are parsed, too.
    """
    decoder = EventStreamDecoder(joins_deltas=joins)
    events = [*decoder.feed(body.encode()), *decoder.close()]
    known = [event for event in map(parse_event, events) if event is not None]
    return join_deltas(known)


def read_stream(body: bytes, size: int) -> AnswerFacts:
    """Return the facts of a stream that arrives in chunks of `size` bytes."""
    decoder = EventStreamDecoder(joins_deltas=True)
    state = ResponseState()
    step = size or len(body) or 1
    for start in range(0, len(body), step):
        for event in decoder.feed(body[start : start + step]):
            state.feed(parse_event(event))
    for event in decoder.close():
        state.feed(parse_event(event))
    tokens = (state.usage.input, state.usage.output) if state.usage else None
    status = state.ending.kind if state.ending else "none"
    return facts_of_items(state.output, tokens, status)
