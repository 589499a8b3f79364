"""How two runs differ, in a form that a person reads."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SHOWN_DIFFERENCES = 25
SHOWN_LINES = 30
_SHOWN_CASES = 8
_CONTEXT_LINES = 3
_LINE_CHARACTERS = 200
_NUMBER = re.compile(r"\d+")

Outcomes = Mapping[str, str]


@dataclass
class Difference:
    """Lines that changed in the same way in some cases.

    `lines` are those of the first case, with what is around them.
    """

    lines: list[str]
    cases: list[str] = field(default_factory=list)

    def text(self, shown_lines: int) -> str:
        """Return the names of the cases, then the lines."""
        noun = "case" if len(self.cases) == 1 else "cases"
        names = ", ".join(self.cases[:_SHOWN_CASES])
        if len(self.cases) > _SHOWN_CASES:
            names += ", ..."
        shown = [
            line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}..."
            for line in self.lines[:shown_lines]
        ]
        hidden = len(self.lines) - len(shown)
        if hidden > 0:
            shown.append(f"... and {hidden} lines more")
        return "\n".join([f"{len(self.cases)} {noun}: {names}", *shown])


def find_differences(golden: Outcomes, current: Outcomes) -> list[Difference]:
    """Return what changed, the change of the most cases first."""
    by_kind: dict[tuple[str, ...], Difference] = {}
    for name in sorted({*golden, *current}):
        for lines in _changes(golden.get(name), current.get(name)):
            difference = by_kind.setdefault(_kind(lines), Difference(lines))
            if name not in difference.cases:
                difference.cases.append(name)
    return sorted(by_kind.values(), key=lambda each: -len(each.cases))


def _changes(golden: str | None, current: str | None) -> Iterator[list[str]]:
    """Yield the places where two texts differ, as lines of a unified diff."""
    if golden is None:
        yield ["+ The case is new."]
    elif current is None:
        yield ["- The case is gone."]
    elif golden != current:
        yield from _hunks(golden.splitlines(), current.splitlines())


def _hunks(before: list[str], after: list[str]) -> Iterator[list[str]]:
    hunk: list[str] = []
    diff = difflib.unified_diff(before, after, n=_CONTEXT_LINES, lineterm="")
    for line in list(diff)[2:]:  # after the names of the files
        if line.startswith("@@"):
            if hunk:
                yield hunk
            hunk = []
        else:
            hunk.append(line)
    yield hunk


def _kind(lines: list[str]) -> tuple[str, ...]:
    """Return what equal changes have in common: neither numbers nor indentation."""
    changed = [line for line in lines if line[0] in "+-"]
    return tuple(line[0] + _NUMBER.sub("#", line[1:].strip()) for line in changed)
