"""Thoughts in a text: told apart at their tags."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt5_agent.agent.thoughts import ThinkSpan, ThinkTagParser, parse_think_spans


def said(text: str) -> ThinkSpan:
    """A piece of the answer."""
    return ThinkSpan(False, text)


def thought(text: str) -> ThinkSpan:
    """A piece of a thought."""
    return ThinkSpan(True, text)


CASES = {
    "Answer.": [said("Answer.")],
    "<think>Plan.</think>Answer.": [thought("Plan."), said("Answer.")],
    "One <think>two</think> three": [said("One "), thought("two"), said(" three")],
    "<think>a</think><think>b</think>c": [thought("ab"), said("c")],
    "<THINK>a</Think>b": [thought("a"), said("b")],
    "<think>never closed": [thought("never closed")],
    "a</think>b": [said("ab")],
    "<think>a<think>b</think>c": [thought("ab"), said("c")],
    "<think></think>": [],
    "1 < 2 <thi": [said("1 < 2 <thi")],
    "<thinker> and </thin>": [said("<thinker> and </thin>")],
    "Write `<think>` and `</think>`.": [said("Write `<think>` and `</think>`.")],
    "": [],
}


@pytest.mark.parametrize(("text", "spans"), CASES.items())
def test_thoughts_are_told_apart(text: str, spans: list[ThinkSpan]) -> None:
    """Tags are in no span."""
    assert parse_think_spans(text) == spans


@pytest.mark.parametrize(("text", "spans"), CASES.items())
def test_pieces_of_any_length_mean_the_same(text: str, spans: list[ThinkSpan]) -> None:
    """A tag may come letter by letter."""
    for length in (1, 2, 3, 5):
        reader = ThinkTagParser()
        pieces = [text[at : at + length] for at in range(0, len(text), length)]
        found = [span for piece in pieces for span in reader.feed(piece)]
        found += reader.close()
        shown = {kind: "" for kind in (True, False)}
        for span in found:
            assert span.text
            shown[span.is_thought] += span.text
        assert shown == {
            kind: "".join(one.text for one in spans if one.is_thought is kind)
            for kind in (True, False)
        }


def test_text_is_not_held_back_longer_than_a_tag_could_begin() -> None:
    """What waits is shorter than a tag."""
    reader = ThinkTagParser()

    assert reader.feed("Fine <") == [said("Fine ")]
    assert reader.feed("b> <thin") == [said("<b> ")]
    assert reader.feed("g>") == [said("<thing>")]
    assert reader.close() == []


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "a ", "th", "`"])))
def test_nothing_but_tags_is_lost(pieces: list[str]) -> None:
    """Whatever comes, the spans hold the text without its tags."""
    text = "".join(pieces)

    bare = "".join(span.text for span in parse_think_spans(text))

    assert bare == re.sub("(?<!`)</?think>", "", text)
