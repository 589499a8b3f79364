"""Think tags in a text: what is in them is a thought of the model.

A tag in backticks is plain text. A thought that is never closed ends with the text.
"""

import re
from bisect import bisect
from collections.abc import Callable
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

_TAG = re.compile(r"(?<!`)<(/?)think>", re.ASCII | re.IGNORECASE)
_TAG_START = re.compile(r"</?(?:t(?:h(?:i(?:nk?)?)?)?)?\Z", re.ASCII | re.IGNORECASE)
"""The end of a text that may be the beginning of a tag."""


class TextSpan(NamedTuple):
    """A part of a text, inside or outside of think tags."""

    is_thought: bool
    text: str


class ThinkTagParser:
    """Splits a text that comes in pieces at its think tags."""

    def __init__(self) -> None:
        self._is_thought = False
        """Whether the text is inside a tag now."""
        self._held = ""
        """The end of the text so far that may be the beginning of a tag."""
        self._previous = ""
        """The one character before it."""

    def feed(self, text: str, *, at_end: bool = False) -> list[TextSpan]:
        """Return the spans that are certain now; the end of a text is certain."""
        # The character before says whether a tag is in backticks.
        start = len(self._previous)
        text = self._previous + self._held + text
        end = len(text)
        if not at_end:
            partial_tag = _TAG_START.search(text, start)
            if partial_tag:
                end = partial_tag.start()
        spans: list[TextSpan] = []
        for tag in _TAG.finditer(text, start):
            spans.append(TextSpan(self._is_thought, text[start : tag.start()]))
            start = tag.end()
            is_closing = bool(tag[1])
            self._is_thought = not is_closing
        spans.append(TextSpan(self._is_thought, text[start:end]))
        self._previous = text[max(0, end - 1) : end]  # empty at the very beginning
        self._held = text[end:]
        # None is empty, and neighbors of one kind are one.
        joined: list[TextSpan] = []
        with_text = [span for span in spans if span.text]
        for is_thought, neighbors in groupby(with_text, attrgetter("is_thought")):
            shown = "".join(span.text for span in neighbors)
            joined.append(TextSpan(is_thought, shown))
        return joined


def parse_spans(text: str) -> list[TextSpan]:
    """Return the spans of a whole text."""
    return ThinkTagParser().feed(text, at_end=True)


def answer_text(text: str) -> str:
    """Return a text without its thoughts; blank lines after one are no part of it."""
    spans = parse_spans(text)
    if not any(span.is_thought for span in spans):
        return text
    return "".join(span.text for span in spans if not span.is_thought).lstrip()


def answer_place_finder(text: str) -> Callable[[int], int]:
    """Return what finds a place of a text again in its answer, without its thoughts."""
    answer = answer_text(text)
    if answer == text:
        return lambda place: place
    starts: list[int] = []
    ends: list[int] = []
    befores: list[int] = []
    """Of each piece outside of think tags: where it begins and ends, and how many
    characters the pieces before it have."""
    start = before = 0
    is_thought = False
    for tag in chain(_TAG.finditer(text), [None]):
        end = tag.start() if tag else len(text)
        if not is_thought:
            starts.append(start)
            ends.append(end)
            befores.append(before)
            before += end - start
        if tag:
            start = tag.end()
            is_thought = not tag[1]
    blank = before - len(answer)

    def find(place: int) -> int:
        """Return the place in the answer; that of a thought is where the answer goes on."""
        piece = bisect(starts, place) - 1
        inside = min(place, ends[piece]) - starts[piece]
        return max(0, befores[piece] + inside - blank)

    return find
