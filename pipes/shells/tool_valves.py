"""The valves about approvals and time limits of tools, for pipe and agents."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from openai_responses.loop.tools import Approval, ApprovalRules
from shells.valve_messages import Shell, valve_message

_ANSWERS: Mapping[str, Approval] = {
    "": "ask",
    "auto": "auto",
    "ask": "ask",
    "deny": "deny",
}

_Parsed = TypeVar("_Parsed")

_MAX_QUOTED_ENTRY = 40
"""Characters of an entry that a message repeats."""

_PATTERN = re.compile(r"(?:[\w.*?/-]|\[[^]\s]+\])+")


@lru_cache(maxsize=8)
def read_rules(text: str, shell: Shell) -> tuple[ApprovalRules, str]:
    """Return the rules of TOOL_APPROVAL, and the message about an error in them.

    They are separated by commas or lines. A rule is `pattern=auto`, `ask` or `deny`; a
    pattern alone means `ask`. An entry that cannot be read may have been meant to deny
    any tool, so a person is asked about all calls that are not denied. `deny` alone is
    such an entry: it lacks its pattern.
    """
    rules: ApprovalRules
    rules, unread = _read_entries(
        text, "=", lambda word: _ANSWERS.get(word.lower()), _ANSWERS
    )
    if not unread:
        return rules, ""
    problem = (
        f"TOOL_APPROVAL contains {unread}, which is not a rule, so a person is asked "
        "about every call of a tool"
    )
    stricter: list[tuple[str, Approval]] = []
    for pattern, approval in rules:
        stricter.append((pattern, "deny" if approval == "deny" else "ask"))
    stricter.append(("*", "ask"))
    message = valve_message(problem, shell, "`delete_*=ask`")
    return stricter, message


_DEFAULT_ENTRY = "default"
_DEFAULT_TIMEOUT = 120.0


class ToolTimeouts(NamedTuple):
    """The limits of TOOL_TIMEOUTS, in seconds."""

    default: float
    """The limit of a tool that no pattern matches."""
    by_pattern: Sequence[tuple[str, float]]
    """Limits by patterns of names."""


@lru_cache(maxsize=8)
def read_timeouts(text: str, shell: Shell) -> tuple[ToolTimeouts, str]:
    """Return the limits of TOOL_TIMEOUTS, and the message about an error in them.

    An invalid entry is skipped.
    """
    entries, unread = _read_entries(text, ":", _read_timeout)
    default = _DEFAULT_TIMEOUT
    patterns: list[tuple[str, float]] = []
    for pattern, seconds in entries:
        if pattern.lower() == _DEFAULT_ENTRY:
            default = seconds
        else:
            patterns.append((pattern, seconds))
    timeouts = ToolTimeouts(default, patterns)
    if not unread:
        return timeouts, ""
    problem = f"TOOL_TIMEOUTS contains {unread}, which is not a time limit"
    message = valve_message(problem, shell, "`default: 120, crawl_*: 600`")
    return timeouts, message


def _read_timeout(word: str) -> float | None:
    """Return seconds, up to 999999 and with up to three decimals; None for others."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", word):
        return None
    seconds = float(word)
    return seconds if seconds > 0 else None


def _read_entries(
    text: str,
    sign: str,
    read: Callable[[str], _Parsed | None],
    no_patterns: Collection[str] = (),
) -> tuple[list[tuple[str, _Parsed]], str]:
    """Return the values by patterns of names, and the first invalid entry, quoted.

    The words of `no_patterns` lack their pattern, rather than being one.
    """
    rows: list[tuple[str, _Parsed]] = []
    unread = ""
    for part in text.replace("\n", ",").split(","):
        entry = part.strip()
        if not entry:
            continue
        left_side, _, right_side = entry.partition(sign)
        pattern = left_side.strip()
        value = read(right_side.strip())
        is_pattern = _PATTERN.fullmatch(pattern) and pattern not in no_patterns
        if value is not None and is_pattern:
            rows.append((pattern, value))
        elif not unread:
            unread = repr(entry[:_MAX_QUOTED_ENTRY])
    return rows, unread
