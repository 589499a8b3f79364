"""Which failures may pass if the same request is sent again, and how long to wait.

Requests are sent again as OpenAI's Python client does it
(docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
retrying cannot restore.
"""

from typing import NamedTuple

from openai_responses.endings import NO_CREDIT_CODES
from openai_responses.errors import Failure

RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "server_error", "server_is_overloaded", "slow_down"}
)
_RETRIED_STATUS = frozenset({408, 409, 429})
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of the codes of a 429 that no wait removes, also of those that nobody listed."""
_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 8.0
"""Seconds, like those of OpenAI's client (`_constants.py`)."""


class RetryPolicy(NamedTuple):
    """How often to retry, and the longest wait in seconds."""

    max_retries: int = 2
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    """Return the seconds before the next attempt; None if there is none.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not is_transient(failure):
        return None
    wait = failure.retry_after
    if wait is None:
        # Up to a quarter less, so that many clients do not come back at once.
        wait = min(_FIRST_BACKOFF * 2**attempt, _MAX_BACKOFF) * (1 - 0.25 * jitter)
    return wait if wait <= policy.max_wait else None


def is_transient(failure: Failure) -> bool:
    """Say whether the same request may succeed later."""
    error = failure.error
    is_out_of_credit = (error.code or "").endswith(_NO_CREDIT_SUFFIXES)
    if is_out_of_credit or error.is_any_of(NO_CREDIT_CODES):
        return False
    # The header `x-should-retry` decides against the status, in both directions.
    if failure.should_retry is not None:
        return failure.should_retry
    # No answer, or a stream that began with an error: only words tell what it was. One
    # without any words, or of the server's own trouble, may pass.
    if failure.status in (None, 200):
        has_words = error.code is not None or error.type is not None
        is_nameless = not has_words and not error.names_a_place
        return is_nameless or error.is_any_of(RETRIED_CODES)
    return failure.status in _RETRIED_STATUS or failure.status >= 500
