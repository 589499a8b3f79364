"""What came out of a sandbox, read with distrust.

Code that broke out of its own process may have written it. Its numbers are checked, its
names are never used as paths of the host, and the archive goes only into sandboxes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolbox.sandbox_limits import MEBIBYTE, SandboxLimits

_JSON_CHARACTER = 12
"""The bytes of JSON that one character may take, as a pair of surrogates."""


class SandboxSilent(Exception):
    """The sandbox ended without an answer that can be read."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file that belongs to a run: a file that the code wrote."""

    name: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class SandboxReply:
    """An answer; `archive` is where in the file the workspace begins, if it is there."""

    answer: Mapping[str, Any]
    archive: int | None
    changed: tuple[FilePart, ...] = ()


def longest_reply(limits: SandboxLimits) -> int:
    """Return how many bytes an honest answer has at most, with the workspace."""
    return _longest_line(limits) + limits.disk + 16 * MEBIBYTE


def _longest_line(limits: SandboxLimits) -> int:
    return 3 * _JSON_CHARACTER * limits.output + 4 * MEBIBYTE


def read_reply(path: Path, limits: SandboxLimits) -> SandboxReply:
    """Return the answer that a file holds; raises SandboxSilent."""
    with path.open("rb") as file:
        try:
            answer = json.loads(file.readline(_longest_line(limits)))
        except (ValueError, RecursionError):
            raise SandboxSilent from None
        if not isinstance(answer, dict):
            raise SandboxSilent
        archive = file.tell()
        has_archive = bool(file.readline())
        begin, end = file.tell(), path.stat().st_size
    changed = tuple(_slices(answer.get("changed"), begin, end))
    return SandboxReply(answer, archive if has_archive else None, changed)


def _slices(changed: object, begin: int, end: int) -> Iterator[FilePart]:
    """Yield the files that lie between `begin` and `end`."""
    for entry in changed if isinstance(changed, list) else ():
        match entry:
            case [str(name), int(offset), int(size)]:
                if offset >= 0 and size >= 0 and begin + offset + size <= end:
                    yield FilePart(name, begin + offset, size)
