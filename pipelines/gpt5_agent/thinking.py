"""Text told apart at its `<think>` tags, as it grows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text, and whether it is a thought."""

    is_thought: bool
    text: str


class ThinkReader:
    """Takes a text in pieces; a tag may be spread over several.

    A thought that is never closed goes on to the end; a tag in backticks is a word of
    the text.
    """

    def __init__(self) -> None:
        """Begin outside of a thought."""
        self._is_thought = False
        self._waiting = ""
        self._last = ""

    def feed(self, text: str) -> list[Span]:
        """Take a piece; return what is known of it now."""
        self._waiting += text
        return _merged(self._known(at_end=False))

    def close(self) -> list[Span]:
        """Return what waited for the rest of a tag that did not come."""
        return _merged(self._known(at_end=True))

    def _known(self, *, at_end: bool) -> Iterator[Span]:
        while self._waiting:
            place, tag = _first_tag(self._waiting)
            if not tag:
                place = len(self._waiting) - (
                    0 if at_end else _tag_begun(self._waiting)
                )
                if place:
                    yield self._taken(place)
                return
            before = self._waiting[place - 1] if place else self._last
            if before == "`":
                yield self._taken(place + len(tag))
                continue
            if place:
                yield self._taken(place)
            self._waiting = self._waiting[len(tag) :]
            self._is_thought = tag == _OPEN

    def _taken(self, length: int) -> Span:
        taken, self._waiting = self._waiting[:length], self._waiting[length:]
        self._last = taken[-1]
        return Span(self._is_thought, taken)


def think_spans(text: str) -> list[Span]:
    """Return the spans of a whole text."""
    reader = ThinkReader()
    return _merged([*reader.feed(text), *reader.close()])


def _merged(spans: Iterator[Span] | list[Span]) -> list[Span]:
    """Return spans with those of one kind joined that follow each other."""
    groups = groupby(spans, attrgetter("is_thought"))
    return [Span(kind, "".join(one.text for one in group)) for kind, group in groups]


def _first_tag(text: str) -> tuple[int, str]:
    """Return the first tag with its place; an empty one where there is none."""
    lowered = text.lower()
    found = [(lowered.find(tag), tag) for tag in (_OPEN, _CLOSE)]
    return min([one for one in found if one[0] >= 0], default=(-1, ""))


def _tag_begun(text: str) -> int:
    """Return how many characters at the end of `text` may begin a tag."""
    lowered = text[-len(_CLOSE) :].lower()
    for length in range(min(len(lowered), len(_CLOSE) - 1), 0, -1):
        if any(tag.startswith(lowered[-length:]) for tag in (_OPEN, _CLOSE)):
            return length
    return 0
