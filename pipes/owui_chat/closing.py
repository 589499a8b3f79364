"""The last status line of an answer: how long it took, what it used, what it cost."""

from openai_responses.run_events import RunEnded
from openai_responses.usage import Usage


def closing_line(seconds: float, ended: RunEnded) -> str:
    """Return the line, without what nobody told."""
    parts = [f"Finished in {_duration(seconds)}"]
    if ended.usage:
        parts.append(_tokens(ended.usage))
    if ended.cost is not None:
        parts.append(_money(ended.cost))
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "under a second"
    return f"{whole // 60} min {whole % 60} s"


def _tokens(usage: Usage) -> str:
    told = f"{usage.total:,} tokens"
    share = 100 * usage.cached // usage.input if usage.input else 0
    return f"{told}, {share} % of the input cached" if share else told


def _money(dollars: float) -> str:
    """Return an amount with its first two digits, also of a tiny one."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.2g}"
