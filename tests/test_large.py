"""Twice as large a body, chat or answer costs twice the work, not four times.

What is counted are the steps of the interpreter, and how often objects are compared.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from bench.large import CASES, Case

COUNTED = [case for case in CASES if not case.uses_regex]
SIZE = 10
SMALLER = {"turns_with_kept_items": 1}
"""Cases that are large already: their turns have 100 items each."""


class _Steps:
    """Counts the steps of the interpreter, those of comprehensions included."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.count += 1
        return self.trace


def steps_of(work: Callable[[], object]) -> int:
    steps = _Steps()
    before = sys.gettrace()
    sys.settrace(steps.trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps.count


@pytest.mark.parametrize("case", COUNTED, ids=[case.name for case in COUNTED])
def test_work_is_linear(case: Case) -> None:
    """Three sizes: the second growth is not larger than the first, as it should be."""
    size = SMALLER.get(case.name, SIZE)
    case.prepare(size)()  # what is cached is made now
    first, second, third = (
        steps_of(case.prepare(number * size)) for number in (1, 2, 4)
    )

    assert 0 < third - second <= 2.05 * (second - first)
