"""Parts of a message, as they grow."""

from typing import Self

from openai_responses.items import item_texts
from strategies.shown_parts import ShownPart, announcement


class Piece(str):
    """A text that no other is put together with, piece by piece."""

    __slots__ = ()

    def __radd__(self, before: str) -> Self:
        """Fail: `before` would be copied for each piece of a long thought."""
        raise AssertionError(f"{len(before)} characters are copied")


def test_a_long_thought_is_put_together_once() -> None:
    """One of 2 MB in small pieces kept the server busy for half a minute."""
    part = ShownPart(0, "msg_1", is_thought=True)

    for word in ("It ", "rains.", "\n"):
        part.add_text(Piece(word))

    assert list(item_texts(part.end_event().item)) == [(("summary", 0), "It rains.")]


def test_a_question_is_announced_as_one() -> None:
    """To a person it is no tool."""
    assert announcement({"name": "ask_user"}) == "I have a question."
    assert announcement({"name": "weather"}) == "I am going to use weather."
