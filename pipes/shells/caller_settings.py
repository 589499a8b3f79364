"""The messages about `caller_may_set`: what callers may set in addition to their chat.

The words differ: in the pipe they open what is otherwise the administrator's, in the
agents any key of a request. The messages are the same.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from shells.valve_words import unknown_words

_SETTING = "caller_may_set"
_LONGEST_LEFT_OUT = 60
_MAX_LEFT_OUT = 50
"""Callers choose names, and how many they send."""


def unknown_permissions(
    words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about words that have no effect; empty if there are none."""
    return unknown_words(f"EXPERT_JSON, {_SETTING},", words, known, advice)


PERMISSION_ADVICE = f" ({_SETTING} in EXPERT_JSON says what a request may set)"


def left_out_line(
    who: str,
    left_out: Mapping[str, str],
    is_new: Callable[[str], bool],
    advice: str = PERMISSION_ADVICE,
) -> str:
    """Return the line of the log about what a request lost.

    `left_out` has the reason of each name, if the advice does not say it. Each name is
    logged once per caller: a client sends the same settings again and again.
    """
    new: list[str] = []
    for name, reason in left_out.items():
        shown = name[:_LONGEST_LEFT_OUT]
        if is_new(f"{who}: {shown}"):
            new.append(f"{shown} ({reason})" if reason else shown)
    if not new:
        return ""
    return f"left out of requests of {who}: {', '.join(new[:_MAX_LEFT_OUT])}{advice}"
