"""When a request is sent again, and after how long."""

import pytest

from openai_responses.errors import ApiError, Failure, MalformedEvent, read_api_error
from openai_responses.retries import (
    RetryPolicy,
    is_passing,
    loading_wait,
    retry_wait,
)
from upstream.refusals import QUOTA_CODES

THREE = RetryPolicy(max_retries=3, max_wait=60)


def wait(failure: Failure, attempt: int = 0, policy: RetryPolicy = THREE) -> object:
    return retry_wait(policy, attempt, failure, 0.0)


def test_error_in_a_stream_says_how_long_to_wait() -> None:
    """A limit of hours is not waited for; without a field the pause is short."""
    error = ApiError("rate_limit_exceeded", reset=42)
    assert wait(Failure(200, error)) == 42
    assert wait(Failure(200, error._replace(reset=12_000))) is None
    assert wait(Failure(200, error._replace(reset=None))) == AGAIN


AGAIN = 0.5
"""Seconds to the first retry."""


def test_a_passing_trouble_is_waited_for() -> None:
    """The server may be better in half a second."""
    for status in (408, 409, 423, 424, 425, 429, 499, 500, 502, 503, 504, 520, 524):
        assert wait(Failure(status)) == AGAIN, status


LOADING = ApiError("503", "unavailable_error", message="Loading model")


@pytest.mark.parametrize(
    ("failure", "policy", "waited", "expected"),
    [
        (Failure(503, LOADING), THREE, 0.0, 2.0),
        (Failure(503, LOADING), THREE, 58.0, 2.0),
        (Failure(503, LOADING), THREE, 60.0, None),
        (Failure(503, LOADING), RetryPolicy(0), 0.0, None),
        (Failure(503, LOADING), RetryPolicy(3, 0), 0.0, None),
        (Failure(500, LOADING), THREE, 0.0, None),
        (Failure(503, ApiError("503", message="Busy")), THREE, 0.0, None),
        (Failure(503, ApiError(message="litellm: Loading model")), THREE, 0.0, 2.0),
    ],
)
def test_a_model_that_is_loaded_is_waited_for(
    failure: Failure, policy: RetryPolicy, waited: float, expected: float | None
) -> None:
    assert loading_wait(policy, waited, failure) == expected


def test_permanent_refusal_is_not_retried() -> None:
    """The same request gets the same refusal, whatever words come with it."""
    for status in (307, 401, 402, 403, 404, 413, 421, 451):
        assert wait(Failure(status)) is None, status
        assert wait(Failure(status, ApiError("timeout"))) is None, status


@pytest.mark.parametrize(
    "error",
    [
        ApiError("server_is_overloaded"),
        ApiError("service_unavailable_error"),
        ApiError(type="overloaded_error"),
        ApiError(type="upstream_error"),
        ApiError(type="too_many_requests"),
        ApiError("429"),
        ApiError("503"),
        ApiError("504"),
        ApiError(type="503"),
        ApiError("server_error", param="input[0]"),
        ApiError("tool_use_failed", "invalid_request_error"),
        ApiError("output_parse_failed", "invalid_request_error"),
        ApiError("bad_gateway"),
        ApiError("gateway_timeout"),
        ApiError("internal_error"),
        ApiError("internal_server_error"),
        ApiError("rate_limit_error"),
        ApiError("rate_limit_exceeded"),
        ApiError("slow_down"),
        ApiError("timeout"),
    ],
    ids=lambda error: error.code or error.type,
)
def test_passing_trouble_has_many_names(error: ApiError) -> None:
    """In an event, in a failed response and in a body, as its HTTP status is retried."""
    assert is_passing(error)
    for status in (None, 200, 400):
        assert wait(Failure(status, error), 2) == 4 * AGAIN


def test_other_words_name_no_passing_trouble() -> None:
    codes = ("404", "600", "5" * 5000, "error", "servers", None)
    assert [code for code in codes if is_passing(ApiError(code))] == []


ONCE = [AGAIN, None]
NEVER = [None, None]
"""The waits of two attempts."""


@pytest.mark.parametrize(
    ("failure", "waits"),
    [
        # A page; a code, a type, a parameter, a place.
        (Failure(400, ApiError()), ONCE),
        (Failure(422, ApiError()), ONCE),
        (Failure(400, ApiError("x")), NEVER),
        (Failure(400, ApiError(type="x")), NEVER),
        (Failure(400, ApiError(param="x")), NEVER),
        (Failure(400, ApiError(message="Bad input[3].")), NEVER),
        # In a stream: an unknown code, a refusal, its parameter, its place.
        (Failure(200, ApiError("odd")), ONCE),
        (Failure(200, ApiError(None, "invalid_request_error")), NEVER),
        (Failure(200, ApiError("odd", param="x")), NEVER),
        (Failure(200, ApiError(message="Bad input[3].")), NEVER),
        # Nothing to read; not wanted.
        (MalformedEvent.failure, ONCE),
        (Failure(400, should_retry=False), NEVER),
        # A full context, also behind a gateway; a missing model; a template.
        (Failure(500, ApiError(message="Broke: context length is 9")), NEVER),
        (Failure(502, ApiError(message="cause: Prompt exceeds max length")), NEVER),
        (Failure(500, ApiError("404", message="The model `x` does not exist.")), NEVER),
        (
            Failure(
                500, ApiError("500", "server_error", message="Jinja Exception: No user")
            ),
            NEVER,
        ),
    ],
)
def test_trouble_without_a_cause_is_tried_once_more(
    failure: Failure, waits: list[float | None]
) -> None:
    """It may be passing; the second time it is taken for a refusal."""
    assert [wait(failure, attempt) for attempt in range(2)] == waits
    assert wait(failure, 0, RetryPolicy(0)) is None


def test_wait_in_words_counts_where_no_header_says_it() -> None:
    busy = ApiError("rate_limit_exceeded", message="Please try again in 11s.")
    assert wait(Failure(200, busy)) == 11
    assert wait(Failure(429, busy, retry_after=2)) == 2
    later = busy._replace(message="Please try again in 61s.")
    assert wait(Failure(200, later)) is None


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        pytest.param(Failure(), AGAIN, id="no answer"),
        pytest.param(Failure(400, should_retry=True), AGAIN, id="the server wants it"),
        pytest.param(Failure(503, should_retry=False), None, id="the server does not"),
        pytest.param(Failure(200, ApiError("invalid_prompt")), None, id="its code"),
        pytest.param(Failure(429, retry_after=0.0), AGAIN, id="a reset that is over"),
        pytest.param(Failure(200, ApiError("429", reset=0)), AGAIN, id="in the error"),
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
        ApiError(
            "Some resource has been exhausted",
            message="Your team t-1 has either used all available credits or reached its "
            "monthly spending limit.",
        ),
        ApiError(type="AI_APICallError", message="Insufficient balance. Recharge."),
    ],
)
def test_a_used_up_quota_is_never_tried_again(error: ApiError) -> None:
    """Not even when the server says so; some servers name it by the type."""
    assert wait(Failure(429, error, retry_after=1, should_retry=True)) is None


def test_the_waits_grow_to_eight_seconds() -> None:
    """Doubling from half a second, less up to a quarter, as often as is allowed."""
    many = RetryPolicy(max_retries=10, max_wait=60)
    waits = [wait(Failure(500), attempt, many) for attempt in range(6)]
    assert waits == [0.5, 1, 2, 4, 8, 8]
    assert retry_wait(many, 1, Failure(500), 1.0) == 0.75
    assert wait(Failure(500), 10, many) is None
    assert wait(Failure(500), 0, RetryPolicy(0)) is None


@pytest.mark.parametrize(
    ("message", "is_retried"),
    [
        ("maximum context length exceeded", False),
        ("The model `x` does not exist.", False),
        ("Selected model is at capacity. Please try a different model.", True),
        ("proxy failed late", True),
        ("Invalid arguments passed to the model.", False),
    ],
)
def test_stream_that_fails_with_words_alone(message: str, is_retried: bool) -> None:
    """What each request would meet is not asked for again."""
    # Codex's own server calls an overload an invalid request (Wei-Shaw/sub2api 5111).
    kinds = (None, "invalid_request_error") if "capacity" in message else (None,)
    for kind in kinds:
        failure = Failure(200, ApiError(type=kind, message=message))
        assert (wait(failure) is not None) is is_retried


def test_a_stream_that_broke_behind_a_gateway_is_asked_for_again() -> None:
    """CLIProxyAPI says it with the type of a wrong request (its issue 5931)."""
    words = "stream error: stream disconnected before completion: stream closed"
    error = ApiError("request_timeout", "invalid_request_error", message=words)
    for status in (None, 200, 408, 500):
        assert wait(Failure(status, error)) == AGAIN, status


@pytest.mark.parametrize("before", [0, 2_000])
def test_wait_far_inside_of_a_message_is_nobodys_wish(before: int) -> None:
    """A server may quote a chat; so with a model that is loaded."""
    quoted = "x" * before
    waited = ApiError(message=f"{quoted} Please try again in 20 s.").wait
    loading = Failure(503, ApiError(message=f"{quoted} Loading model"))

    assert (waited is None) is bool(before)
    assert (loading_wait(THREE, 0.0, loading) is None) is bool(before)


def test_status_in_the_words_is_more_certain_than_a_type_for_anything() -> None:
    """A gateway calls what another server refused its own error."""
    words = "Upstream request failed: [400] Invalid request parameters"
    error = read_api_error({"error": {"type": "server_error", "message": words}})
    for status in (200, 400):
        assert wait(Failure(status, error), 0) is None
