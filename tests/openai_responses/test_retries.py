"""When a request is sent again, and after how long."""

import pytest

from openai_responses.errors import ApiError, Failure
from openai_responses.retries import RetryPolicy, retry_wait
from upstream.quota_codes import QUOTA_CODES

THREE = RetryPolicy(max_retries=3, max_wait=60)


def wait(failure: Failure, attempt: int = 0, policy: RetryPolicy = THREE) -> object:
    """The wait without jitter."""
    return retry_wait(policy, attempt, failure, 0.0)


AGAIN = 0.5
"""Seconds to the first retry."""


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 524])
def test_a_passing_trouble_is_waited_for(status: int) -> None:
    """The server may be better in half a second."""
    assert wait(Failure(status)) == AGAIN


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 413, 422])
def test_permanent_refusal_is_not_retried(status: int) -> None:
    """The same request gets the same refusal."""
    assert wait(Failure(status)) is None


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        pytest.param(Failure(), AGAIN, id="no answer"),
        pytest.param(Failure(400, should_retry=True), AGAIN, id="the server wants it"),
        pytest.param(Failure(503, should_retry=False), None, id="the server does not"),
        pytest.param(Failure(200, ApiError("server_error")), AGAIN, id="server_error"),
        pytest.param(
            Failure(200, ApiError("rate_limit_exceeded")), AGAIN, id="rate limit"
        ),
        pytest.param(
            Failure(200, ApiError("server_is_overloaded")), AGAIN, id="overloaded"
        ),
        pytest.param(
            Failure(200, ApiError("invalid_prompt")), None, id="invalid_prompt"
        ),
        pytest.param(Failure(429, retry_after=60.0), 60.0, id="the longest wait"),
        pytest.param(Failure(429, retry_after=60.1), None, id="a longer wait"),
    ],
)
def test_wish_of_the_server_and_code_decide(
    failure: Failure, seconds: float | None
) -> None:
    """`x-should-retry` counts more than the status, and an error in a stream by its code."""
    assert wait(failure) == seconds


@pytest.mark.parametrize(
    "error",
    [
        *(ApiError(code) for code in QUOTA_CODES),
        ApiError("team_spend_limit_exceeded"),
        *(ApiError(type=kind) for kind in QUOTA_CODES),
    ],
)
def test_a_used_up_quota_is_never_tried_again(error: ApiError) -> None:
    """Not even when the server says so; some servers name it by the type."""
    assert wait(Failure(429, error, retry_after=1, should_retry=True)) is None


def test_the_waits_grow_to_eight_seconds() -> None:
    """Doubling from half a second, less up to a quarter."""
    many = RetryPolicy(max_retries=10, max_wait=60)
    waits = [wait(Failure(500), attempt, many) for attempt in range(6)]
    assert waits == [0.5, 1, 2, 4, 8, 8]
    assert retry_wait(many, 1, Failure(500), 1.0) == 0.75


def test_the_number_of_retries_is_limited() -> None:
    """None means none."""
    assert wait(Failure(500), 3) is None
    assert wait(Failure(500), 0, RetryPolicy(0)) is None
