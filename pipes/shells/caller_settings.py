"""The messages about `caller_may_set`: what callers may set in addition to their chat.

The words differ: in the pipe they open what is otherwise the administrator's, in the
agents any key of a request. The messages are the same.
"""

from collections.abc import Callable, Mapping

MAY_SET_KEY = "EXPERT_JSON, caller_may_set,"
"""How a message about unknown words of it begins."""
_LONGEST_LEFT_OUT = 60
_MAX_LEFT_OUT = 50
"""Callers choose names, and how many they send."""


PERMISSION_ADVICE = " (caller_may_set in EXPERT_JSON says what a request may set)"


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
