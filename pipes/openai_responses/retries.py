"""Which failures may pass if the same request is sent again, and how long to wait.

Requests are sent again as OpenAI's Python client does it
(docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
retrying cannot restore.

    the failure                               the same request again
    passes by itself: a status, a code        as often as the policy says
    says nothing of its cause                 once
    refuses the request                       never
    says that the model is being loaded       every two seconds, for a minute
"""

import re
from typing import NamedTuple

from openai_responses.causes import REJECTED, STREAM_CUT, has_no_credit
from openai_responses.endings import MESSAGES, cause_word, failure_word
from openai_responses.errors import UNREADABLE_STREAM, ApiError, Failure

_PASSING_CODES = frozenset(
    {
        "bad_gateway",
        "gateway_timeout",
        "internal",
        "internal_server",
        "output_parse_failed",
        "overloaded",
        "rate_limit",
        "rate_limit_exceeded",
        "server",
        "server_is_overloaded",
        "service_unavailable",
        "slow_down",
        "timeout",
        "too_many_requests",
        "tool_use_failed",
        "upstream",
    }
)
"""Codes and types of trouble that passes, without the ending `_error`.

`service_unavailable_error` is OpenAI's own, as the first event of a stream (reported by
users of other clients); gateways have the others. Groq's `tool_use_failed` and
`output_parse_failed` are 400, of what the model wrote: another time it writes otherwise
(OpenHands 10187).
"""
_CAMEL_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_RETRIED_STATUS = frozenset({408, 409, 423, 424, 425, 429, 499})
"""424 is Bedrock's, of a model that failed (can1357/oh-my-pi 12449)."""
CLOUDFLARE_STATUS = range(520, 525)
"""Cloudflare's own, of a server behind it that gave no answer."""
_NOT_IMPLEMENTED = 501
"""Not passing trouble: vLLM and Dynamo refuse a parameter with it (vllm 53626)."""
_UNCLEAR_STATUS = frozenset({200, 400, 405, 422})
"""Statuses that also proxies and firewalls send, for reasons of their own."""
_UNCERTAIN_STATUS = frozenset({None, 200, 400})
"""Statuses that say less than a passing code; all others are more certain than it."""
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
    most = policy.max_retries
    if not is_transient(failure):
        most = min(most, 1) if says_no_cause(failure) else 0
    if attempt >= most:
        return None
    wait = failure.retry_after
    if wait is None:  # in a stream there is no header
        wait = failure.error.wait
    if not wait:  # none is named, or a time that is over by our clock
        # Up to a quarter less, so that many clients do not come back at once.
        wait = min(_FIRST_BACKOFF * 2**attempt, _MAX_BACKOFF) * (1 - 0.25 * jitter)
    return wait if wait <= policy.max_wait else None


_MOST_LOADING = 60.0
_LOADING_PAUSE = 2.0
_LOADING = re.compile(r"\bLoading model\b")


def loading_wait(policy: RetryPolicy, waited: float, failure: Failure) -> float | None:
    """Return the seconds to wait for a server that loads its model; None for others.

    llama.cpp says so with a status of 503. It has `waited` for so many seconds.
    """
    # Without a wait, requests would follow each other until the server is ready.
    may_wait = min(policy.max_retries, policy.max_wait) > 0
    has_time = may_wait and waited < _MOST_LOADING
    is_loading = failure.status == 503 and _LOADING.search(failure.error.beginning)
    return min(_LOADING_PAUSE, policy.max_wait) if is_loading and has_time else None


def is_passing(error: ApiError) -> bool:
    """Say whether an error names trouble of the server that passes.

    Gateways send the HTTP status as the code, or as the type.
    """
    for word in (error.code, error.type):
        if not word:
            continue
        name = _CAMEL_HUMP.sub("_", word).lower().removesuffix("_error")
        if name in _PASSING_CODES:
            return True
        if re.fullmatch("[0-9]{3}", name) and _is_retried_status(int(name)):
            return True
    return False


def _is_retried_status(status: int) -> bool:
    if status == _NOT_IMPLEMENTED:
        return False
    return status in _RETRIED_STATUS or 500 <= status < 600


_LASTING_CAUSES = ("context_length_exceeded", "model_not_found", REJECTED)
"""Causes that may be told in words alone, and that each request would fail for."""
_PASSING_CAUSES = ("server_is_overloaded", STREAM_CUT)
"""Causes that pass, whatever the type of the error says."""


def is_transient(failure: Failure) -> bool:
    """Say whether the same request may succeed later."""
    error = failure.error
    if has_no_credit(error):
        return False
    # The header `x-should-retry` decides against the status, in both directions.
    if failure.should_retry is not None:
        return failure.should_retry
    is_lasting = cause_word(error) in _LASTING_CAUSES
    is_uncertain = failure.status in _UNCERTAIN_STATUS
    if is_uncertain and is_passing(error) and not is_lasting:
        return True
    # No answer, or a stream that began with an error: only words tell what it was. One
    # without any words may pass.
    if failure.status in (None, 200):
        has_words = error.code is not None or error.type is not None
        is_told = has_words or error.names_a_place or is_lasting
        return not is_told or failure_word(error) in _PASSING_CAUSES
    # Agents' frameworks say 500 of each exception, with its words (Haystack, 1.4.0),
    # gateways 502 of each refusal behind them (farion1231/cc-switch 6982).
    if failure.status in (500, 502) and is_lasting:
        return False
    return _is_retried_status(failure.status)


def says_no_cause(failure: Failure) -> bool:
    """Say whether nothing tells if the request is the cause, or passing trouble.

    A refusal of the API names a code, its type or a parameter. The page of a proxy names
    nothing; a stream can end in an error of a type that is unknown here.
    """
    error = failure.error
    if failure.should_retry is not None:
        return False
    if error.code == UNREADABLE_STREAM:
        return True
    if failure.status not in _UNCLEAR_STATUS or error.param or error.names_a_place:
        return False
    if failure.status == 200:
        is_lasting = cause_word(error) in _LASTING_CAUSES
        return not is_lasting and not error.is_any_of(_KNOWN_REFUSALS)
    return error.code is None and error.type is None


_KNOWN_REFUSALS = (
    {"invalid_request_error", "BadRequestError", "400", "422"}  # OpenAI; vLLM; gateways
    | MESSAGES["failed"].keys()
    | MESSAGES["refused"].keys()
)
"""Codes and types after which the same request fails again, or has passed already."""
