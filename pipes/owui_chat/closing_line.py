"""The last status line of an answer, of the pipe and of the agents."""

from collections.abc import Sequence
from typing import NamedTuple

from openai_responses.models.usage import Usage, describe_cost
from owui_chat.events import AnswerReport
from owui_chat.wording import plural


class AnswerFigures(NamedTuple):
    """What an answer took."""

    seconds: float
    is_failure: bool = False
    usage: Usage | None = None
    report: AnswerReport = AnswerReport()
    notes: int = 0
    """Lines above this one: the page hides them until somebody opens them."""
    note_subjects: Sequence[str] = ()
    """What those are about that no one should miss."""
    failed_attempts: int = 0
    """How often the request was sent in vain, if it was sent again; else 0."""
    is_stopped: bool = False
    """By a person, which is no failure."""


def closing_line(figures: AnswerFigures) -> str:
    """Return the line: time, cost and tokens, then the rest, as far as it is known.

    A phone shows about 40 characters, so what no one should miss comes first.
    """
    report = figures.report
    if figures.failed_attempts:
        parts = [f"Failed after {plural(figures.failed_attempts, 'attempt')}"]
    else:
        word = "Failed after" if figures.is_failure else "Finished in"
        if figures.is_stopped:
            word = "Stopped after"
        parts = [f"{word} {_duration(figures.seconds)}", *figures.note_subjects]
    if report.cost is not None:
        parts.append(describe_cost(report.cost))
    if figures.usage and figures.usage.total:
        parts.append(plural(figures.usage.total, "token"))
    if report.rounds > 1:  # one round is every answer
        parts.append(plural(report.rounds, "round"))
    if report.tool_calls:
        parts.append(plural(report.tool_calls, "tool call"))
    if figures.usage and figures.usage.input:
        cached_share = 100 * figures.usage.cached // figures.usage.input
        if cached_share:
            parts.append(f"{cached_share}% of the input cached")
    if report.window_share > _NOTABLE_SHARE:
        parts.append(f"context {report.window_share}% full")
    if figures.notes and not figures.failed_attempts:
        parts.append(plural(figures.notes, "note"))
    if report.usage_note:
        parts.append(report.usage_note)
    return " · ".join(parts)


_NOTABLE_SHARE = 50
"""Until then a chat can go on for long, and no one needs to know."""


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole == 0:
        return "under a second"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s"
