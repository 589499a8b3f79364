"""Neighboring deltas of one text are one delta."""

from hypothesis import given
from hypothesis import strategies as st

from openai_responses.loop.response import ResponseState
from openai_responses.transport.stream import (
    ItemAdded,
    StreamEvent,
    TextDelta,
    TextDone,
    join_deltas,
)
from runs.joining import joined

ADDED = [ItemAdded(index, {"type": "message", "id": f"m{index}"}) for index in (0, 1)]


def delta(text: str, index: int = 0, kind: str = "text", part: int = 0) -> TextDelta:
    """More of a text."""
    return TextDelta(index, kind, part, text)


def test_neighboring_deltas_are_joined() -> None:
    """Deltas of the same text are joined in order, up to any other event."""
    events: list[StreamEvent] = [ADDED[0], delta("a"), delta("b"), None, delta("c")]

    assert join_deltas(events) == [ADDED[0], delta("ab"), None, delta("c")]


_EVENTS = st.lists(
    st.builds(
        delta,
        st.text(max_size=3),
        st.integers(0, 1),
        st.sampled_from(["text", "refusal"]),
        st.integers(0, 1),
    )
    | st.sampled_from([*ADDED, None, TextDone(0, "text", 0, "abc")])
)


@given(events=_EVENTS)
def test_joined_deltas_report_the_same_events(events: list[StreamEvent]) -> None:
    """A turn means the same whether its deltas were joined before it or after it."""
    before = ResponseState()
    after = ResponseState()

    early = [
        run_event for event in join_deltas(events) for run_event in before.feed(event)
    ]
    late = [run_event for event in events for run_event in after.feed(event)]

    assert joined(early) == joined(late)
