"""How much work a function does, as a number that is the same on every machine."""

import sys
from collections.abc import Callable


class TooMuchWork(BaseException):
    """The function was stopped; not an Exception, so that nothing catches it."""


def count_work(work: Callable[[], object], most: int = 3_000_000) -> int:
    """Return how many functions are called; raises TooMuchWork for more than `most`.

    Comparisons of `Word`s count too.
    """
    calls = 0

    def watch(_frame: object, event: str, _called: object) -> None:
        nonlocal calls
        if event not in ("call", "c_call"):
            return
        calls += 1
        if calls > most:
            raise TooMuchWork(f"more than {most} calls")

    _run_watched(work, watch)
    return calls


def count_joins(work: Callable[[], object]) -> int:
    """Return how often `join` is called: each copies all that it joins."""
    joins = 0

    def watch(_frame: object, event: str, called: object) -> None:
        nonlocal joins
        if event == "c_call" and getattr(called, "__name__", "") == "join":
            joins += 1

    _run_watched(work, watch)
    return joins


def _run_watched(
    work: Callable[[], object], watch: Callable[[object, str, object], None]
) -> None:
    """Do the work while `watch` is told of each call (`sys.setprofile`)."""
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(before)


class Word(str):
    """A text whose comparisons are calls of functions."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)
