"""The valves that say which tools may run, and for how long, for pipe and agents."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from openai_responses.loop.tools import Approval, ApprovalRules
from shells.shell import Shell
from shells.valve_messages import valve_message

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


class ReadRules(NamedTuple):
    """What TOOL_APPROVAL says, and the message about what is wrong with it."""

    rules: ApprovalRules
    problem: str = ""


def read_rules(text: str, shell: Shell) -> ReadRules:
    """Return the rules of TOOL_APPROVAL, one a line or comma.

    `pattern=auto|ask|deny`, a pattern alone means `ask`. An entry that cannot be read
    may be meant to deny any tool: a person is asked about what is not denied. An answer
    alone is a rule that lost its pattern.
    """
    rules: ApprovalRules
    rules, unread = _read_entries(text, "=", _read_approval)
    if not unread:
        return ReadRules(rules)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = (
        f"TOOL_APPROVAL contains {quoted}, which is not a rule, so a person is asked "
        "about every call of a tool"
    )
    asked = [(pattern, "ask" if rule == "auto" else rule) for pattern, rule in rules]
    message = valve_message(problem, shell, "`delete_*=ask`")
    return ReadRules([*asked, ("*", "ask")], message)


def _read_approval(word: str) -> Approval | None:
    """Return what a rule says; a pattern alone asks."""
    return _ANSWERS.get(word.lower())


_DEFAULT_ENTRY = "default"
_DEFAULT_TIMEOUT = 120.0


class ReadTimeouts(NamedTuple):
    """What TOOL_TIMEOUTS says in seconds, and the message about what is wrong with it."""

    default: float
    """The limit of a tool that no pattern fits."""
    by_pattern: Sequence[tuple[str, float]]
    """Limits by patterns of names."""
    problem: str = ""


def read_timeouts(text: str, shell: Shell) -> ReadTimeouts:
    """Return the limits of TOOL_TIMEOUTS; an entry that is none is skipped."""
    entries, unread = _read_entries(text, ":", _read_timeout)
    limits = dict(entries)
    default = limits.get(_DEFAULT_ENTRY, _DEFAULT_TIMEOUT)
    patterns = [entry for entry in entries if entry[0] != _DEFAULT_ENTRY]
    if not unread:
        return ReadTimeouts(default, patterns)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = f"TOOL_TIMEOUTS contains {quoted}, which is not a time limit"
    message = valve_message(problem, shell, "`default: 120, crawl_*: 600`")
    return ReadTimeouts(default, patterns, message)


def _read_timeout(word: str) -> float | None:
    """Return seconds, up to 999999 and with up to three decimals; None for others."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", word):
        return None
    seconds = float(word)
    return seconds if seconds > 0 else None


def _read_entries(
    text: str, sign: str, read: Callable[[str], _Parsed | None]
) -> tuple[list[tuple[str, _Parsed]], str]:
    """Return the values by patterns of names, and the first entry that is none."""
    rows: list[tuple[str, _Parsed]] = []
    unread = ""
    for part in text.replace("\n", ",").split(","):
        entry = part.strip()
        if not entry:
            continue
        left_side, _, right_side = entry.partition(sign)
        pattern = left_side.strip()
        value = read(right_side.strip())
        is_pattern = _PATTERN.fullmatch(pattern) and pattern not in _ANSWERS
        if value is not None and is_pattern:
            rows.append((pattern, value))
        else:
            unread = unread or entry
    return rows, unread
