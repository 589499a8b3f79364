"""The messages about `caller_may_set`: what callers may set besides their chat.

The words differ: in the pipe they open what is otherwise the administrator's, in the
agents any key of a request. The messages are the same.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from shells.valve_words import unknown_words

_SETTING = "caller_may_set"


def unknown_permissions(
    words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about words that have no effect; empty if there are none."""
    return unknown_words(f"EXPERT_JSON, {_SETTING},", words, known, advice)


def left_out_line(
    who: str, left_out: Mapping[str, str], is_new: Callable[[str], bool]
) -> str:
    """Return the line of the log about settings that a request may not have.

    `left_out` has the shown text of each name. Each name is logged once per caller: a
    client sends the same settings again and again.
    """
    new = [shown for name, shown in left_out.items() if is_new(f"{who}: {name}")]
    if not new:
        return ""
    return (
        f"left out of requests of {who}: {', '.join(new)} ({_SETTING} in EXPERT_JSON "
        "says what a request may set)"
    )
