"""Thoughts in a text: told apart at their tags."""

import re
from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.loop.events import RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from strategies.thoughts import RunTexts

Shown = tuple[str, str]


def text_part(text: str) -> Shown:
    """A part of the answer."""
    return "text", text


def thought(text: str) -> Shown:
    """A part that is a thought."""
    return "summary", text


class Reading:
    """One message, as it is shown piece by piece."""

    def __init__(self) -> None:
        self._thoughts = RunTexts(are_shown=True)
        self._item = {"type": "message", "id": "msg_1", "role": "assistant"}
        self._text = ""
        assert self._shown(ItemAdded(0, self._item)) == []

    def feed(self, text: str) -> list[Shown]:
        """Show what a delta adds."""
        self._text += text
        return self._shown(TextDelta(0, "text", 0, text))

    def end(self) -> list[Shown]:
        """Show what was held back."""
        part = {"type": "output_text", "text": self._text}
        return self._shown(ItemDone(0, {**self._item, "content": [part]}))

    def _shown(self, event: RunEvent) -> list[Shown]:
        events = self._thoughts.feed(event)
        return [
            (delta.kind, delta.text) for delta in events if isinstance(delta, TextDelta)
        ]


def parts_of(pieces: Sequence[str]) -> list[Shown]:
    """The parts of a whole message, each in one."""
    reading = Reading()
    shown = [part for piece in pieces for part in reading.feed(piece)]
    shown += reading.end()
    assert all(text for _, text in shown)
    groups = groupby(shown, lambda part: part[0])
    return [(kind, "".join(text for _, text in group)) for kind, group in groups]


CASES: dict[str, list[Shown]] = {
    "Answer.": [text_part("Answer.")],
    "<think>Plan.</think>Answer.": [thought("Plan."), text_part("Answer.")],
    "a<think>b</think>c": [text_part("a"), thought("b"), text_part("c")],
    "<think>a</think><think>b</think>c": [thought("ab"), text_part("c")],
    "<THINK>a</Think>b": [thought("a"), text_part("b")],
    "<think>never closed": [thought("never closed")],
    "a</think>b": [text_part("ab")],
    "<think>a<think>b</think>c": [thought("ab"), text_part("c")],
    "<think></think>": [],
    "1 < 2 <thi": [text_part("1 < 2 <thi")],
    "<thinker> and </thin>": [text_part("<thinker> and </thin>")],
    "Write `<think>` and `</think>`.": [text_part("Write `<think>` and `</think>`.")],
    "": [],
}


@pytest.mark.parametrize(("text", "parts"), CASES.items())
def test_thoughts_are_told_apart(text: str, parts: list[Shown]) -> None:
    for length in (1, 2, 3, 5, len(text) or 1):
        pieces = [text[at : at + length] for at in range(0, len(text), length)]
        assert parts_of(pieces) == parts


def test_text_is_not_held_back_longer_than_a_tag_could_begin() -> None:
    reading = Reading()

    assert reading.feed("Fine <") == [text_part("Fine ")]
    assert reading.feed("b> <thin") == [text_part("<b> ")]
    assert reading.feed("g>") == [text_part("<thing>")]
    assert reading.end() == []


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "a ", "th", "`"])))
def test_nothing_but_tags_is_lost(pieces: list[str]) -> None:
    shown = "".join(text for _, text in parts_of(pieces))

    bare = re.sub("(?<!`)</?think>", "", "".join(pieces))
    assert shown.replace(" ", "") == bare.replace(" ", "")
