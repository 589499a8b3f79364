"""Whether a request is sent once more, how long to wait before.

The rules are those of OpenAI's own client (responses-api.md §4, "SDK retry policy"),
with one difference: a quota that is used up is never tried again, because waiting
does not fill it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from openai_responses.errors import ApiError, Setback

QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
    }
)
"""Codes and types of a 429 that says: no more, not: not now."""

_RETRIED_STATUS = frozenset({408, 409, 429})
_RETRIED_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "server_error",
        "server_is_overloaded",
        "slow_down",
    }
)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long to wait at the most, in seconds."""

    max_retries: int = 1
    max_wait: float = 60.0


def read_setback(
    status: int, error: ApiError, headers: Mapping[str, str], now: float
) -> Setback:
    """Return the setback of an HTTP answer; `now` in seconds since 1970."""
    wish = headers.get("x-should-retry", "").lower()
    wanted = {"true": True, "false": False}.get(wish)
    return Setback(status, error, _asked_wait(headers, now), wanted)


def retry_wait(
    policy: RetryPolicy, attempt: int, setback: Setback, jitter: float
) -> float | None:
    """Return the seconds to wait before the next attempt; None for no more.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not _is_retried(setback):
        return None
    backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (1 - 0.25 * jitter)
    wait = backoff if setback.after is None else setback.after
    return wait if wait <= policy.max_wait else None


def _is_retried(setback: Setback) -> bool:
    words = {setback.error.code, setback.error.type}
    if words & QUOTA_CODES or _is_limit_of_spending(setback.error.code):
        return False
    if setback.wanted is not None:
        return setback.wanted
    if setback.status in (None, 200):
        return words == {None} or bool(words & _RETRIED_CODES)
    return setback.status in _RETRIED_STATUS or setback.status >= 500


def _is_limit_of_spending(code: str | None) -> bool:
    suffixes = ("_spend_limit_exceeded", "_usage_limit_exceeded")
    return bool(code) and str(code).endswith(suffixes)


def _asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return what `retry-after-ms` or `retry-after` asks for, or None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    """Return a wait as a number: finite, not negative."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
