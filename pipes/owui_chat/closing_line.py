"""The last status line of an answer, of the pipe and of the agents."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from openai_responses.json_input import JsonObject
from openai_responses.models.usage import Cost, Usage, describe_cost
from owui_chat.wording import plural


class AnswerFigures(NamedTuple):
    """What an answer took.

    It is an event of the answer, too, in front of its end. Then it has what a renderer
    cannot know.
    """

    seconds: float = 0.0
    is_failure: bool = False
    rounds: int = 0
    """Of an agent."""
    tool_calls: int = 0
    """Of an agent."""
    usage: Usage | None = None
    cost: Cost | None = None
    """None if it is unknown or not shown."""
    notes: int = 0
    """Lines above this one: the page hides them until somebody opens them."""
    note_subjects: Sequence[str] = ()
    """What those are about that no one should miss."""
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""
    usage_note: str = ""
    """What explains a large number of tokens."""
    failed_attempts: int = 0
    """How often the request was sent in vain, if it was sent again; else 0."""
    metadata: JsonObject = MappingProxyType({})
    """What the host stores with the line, of an agent."""


def closing_line(figures: AnswerFigures) -> str:
    """Return the line: time, tokens and cost, then the rest, as far as it is known.

    A phone shows about 40 characters, so what no one should miss comes first.
    """
    if figures.failed_attempts:
        parts = [f"Failed after {plural(figures.failed_attempts, 'attempt')}"]
    else:
        word = "Interrupted after" if figures.is_failure else "Finished in"
        parts = [f"{word} {_duration(figures.seconds)}", *figures.note_subjects]
    if figures.usage:
        parts.append(plural(figures.usage.total, "token"))
    if figures.cost is not None:
        parts.append(describe_cost(figures.cost))
    if figures.rounds:
        parts.append(plural(figures.rounds, "round"))
    if figures.tool_calls:
        parts.append(plural(figures.tool_calls, "tool call"))
    if figures.usage and figures.usage.input:
        cached_share = 100 * figures.usage.cached // figures.usage.input
        if cached_share:
            parts.append(f"{cached_share}% of the input cached")
    if figures.window_share > _NOTABLE_SHARE:
        parts.append(f"context {figures.window_share}% full")
    if figures.notes and not figures.failed_attempts:
        parts.append(plural(figures.notes, "note"))
    if figures.usage_note:
        parts.append(figures.usage_note)
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
