"""When a request is sent again, and after how long."""

import pytest

from openai_responses.errors import ApiError, Failure
from openai_responses.retries import RetryPolicy, retry_wait
from upstream.quota_codes import QUOTA_CODES

THREE = RetryPolicy(max_retries=3, max_wait=60)


def wait(failure: Failure, attempt: int = 0, policy: RetryPolicy = THREE) -> object:
    """The wait without jitter."""
    return retry_wait(policy, attempt, failure, 0.0)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 524])
def test_a_passing_trouble_is_waited_for(status: int) -> None:
    """The server may be better in half a second."""
    assert wait(Failure(status)) == 0.5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_change_is_not_tried_again(status: int) -> None:
    """The same request gets the same refusal."""
    assert wait(Failure(status)) is None


def test_no_answer_at_all_is_tried_again() -> None:
    """A refused connection or a timeout carries no status."""
    assert wait(Failure()) == 0.5


@pytest.mark.parametrize("code", [*QUOTA_CODES, "team_spend_limit_exceeded"])
@pytest.mark.parametrize("as_type", [False, True])
def test_a_used_up_quota_is_never_tried_again(code: str, as_type: bool) -> None:
    """Not even when the server says so."""
    error = ApiError(type=code) if as_type and code in QUOTA_CODES else ApiError(code)
    assert wait(Failure(429, error, retry_after=1, should_retry=True)) is None


def test_the_servers_wish_overrides_the_status() -> None:
    """`x-should-retry` counts both ways."""
    assert wait(Failure(400, should_retry=True)) == 0.5
    assert wait(Failure(503, should_retry=False)) is None


@pytest.mark.parametrize(
    ("code", "again"),
    [
        ("server_error", True),
        ("rate_limit_exceeded", True),
        ("server_is_overloaded", True),
        ("invalid_prompt", False),
    ],
)
def test_an_error_as_the_only_event(code: str, again: bool) -> None:
    """A stream that begins with an error is judged by its code."""
    assert (wait(Failure(200, ApiError(code))) is not None) is again


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


def test_a_wait_above_the_limit_means_no_retry() -> None:
    """Nobody looks at a chat for ten minutes."""
    assert wait(Failure(429, retry_after=60.0)) == 60.0
    assert wait(Failure(429, retry_after=60.1)) is None
