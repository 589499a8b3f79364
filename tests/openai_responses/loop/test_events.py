"""Neighboring growth of one text is one event."""

from hypothesis import given
from hypothesis import strategies as st

from openai_responses.endings import COMPLETED
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from runs.joining import grown_texts, joined

START = ItemAdded(0, {"type": "message"})
END = ItemDone(0, {"type": "message"})


def grew(text: str, index: int = 0, kind: str = "text", part: int = 0) -> TextDelta:
    """Return growth."""
    return TextDelta(index, kind, part, text)


def test_only_neighbors_of_one_text_are_joined() -> None:
    """Another item, kind or part is another text; an event between parts two."""
    events: list[RunEvent] = [
        grew("a"),
        grew("b", index=1),
        grew("c", kind="refusal"),
        grew("d", part=1),
        START,
        grew("e", part=1),
    ]
    assert joined(events) == events
    assert joined([*events, grew("f", part=1), END]) == [
        *events[:-1],
        grew("ef", part=1),
        END,
    ]


def test_other_events_stay() -> None:
    """Equal events that are no growth are not joined."""
    events: list[RunEvent] = [
        START,
        START,
        ResponseDone("completed"),
        ResponseDone("completed"),
        RunDone(COMPLETED),
    ]
    assert joined(events) == events
    assert joined(iter(())) == []


_EVENTS = st.lists(
    st.builds(
        TextDelta,
        st.integers(0, 1),
        st.sampled_from(["text", "summary"]),
        st.integers(0, 1),
        st.text(max_size=3),
    )
    | st.sampled_from([START, END])
)


@given(events=_EVENTS)
def test_joining_loses_nothing(events: list[RunEvent]) -> None:
    """The same text is at each place, and joining again changes nothing."""
    once = joined(events)
    assert joined(once) == once
    assert grown_texts(once) == grown_texts(events)
    assert [e for e in once if not isinstance(e, TextDelta)] == [
        e for e in events if not isinstance(e, TextDelta)
    ]
