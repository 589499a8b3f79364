"""Parts of a text take work in proportion to the stream, whatever a server numbers."""

import pytest

from measures.work_count import Word, count_work
from openai_responses.loop.growing_parts import GrowingParts


def end_of_many_parts(count: int, begun: str, ended: str) -> int:
    """The work of as many parts that grow, and then end with a text, last first."""
    parts = [(Word("text"), number) for number in range(count)]

    def work() -> None:
        growing = GrowingParts()
        for part in parts:
            growing.grow(part, begun)
        for part in reversed(parts):
            growing.end_part(part, ended)

    return count_work(work)


ONE, OTHER = ("text", 0), ("text", 1)


def test_text_that_contradicts_what_came_is_not_shown_again() -> None:
    """Whether it came under another number, ended before, or after an empty end."""
    under_another = GrowingParts()
    under_another.grow(OTHER, "Wrong.")
    assert under_another.end_part(ONE, "Right.") == []

    ended = GrowingParts([(ONE, "Wrong.")])
    assert ended.end_part(ONE, "Right.") == []

    after_nothing = GrowingParts([(ONE, "")])
    after_nothing.grow(OTHER, "Wrong.")
    assert after_nothing.end_item([(ONE, "Right.")]) == ([], {ONE: "Right."})


@pytest.mark.parametrize("ended", ["y", "x", "xy"])
def test_many_ends_take_linear_work(ended: str) -> None:
    """A text that contradicts its delta, repeats it, and goes on after it."""
    once, twice = (end_of_many_parts(count, "x", ended) for count in (300, 600))

    assert twice < 2.5 * once
