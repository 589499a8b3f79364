"""The exceptions tell what may be shown, and nothing else."""

from typing import get_args

import pytest

from openai_responses import errors
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    Failure,
    ResponsesError,
    TimedOut,
    TimeoutKind,
    read_api_error,
)


def test_tree_is_as_drawn() -> None:
    """The docstring names every exception of the module."""
    drawn = (errors.__doc__ or "").split()
    causes = [c for c in vars(errors).values() if isinstance(c, type)]
    ours = [c for c in causes if issubclass(c, ResponsesError)]
    assert ApiRefused in ours
    assert all(cause.__name__ in drawn for cause in ours)


def test_refusal_of_the_api() -> None:
    """It keeps what decisions need, and shows the sentence alone."""
    failure = Failure(429, ApiError(code="c", message="sk-canary"), retry_after=2.0)
    error = ApiRefused("A sentence.", failure, "req_1")
    assert (error.status, error.error.code, error.request_id) == (429, "c", "req_1")
    assert error.failure.retry_after == 2.0
    assert str(error) == "A sentence."
    assert "sk-canary" not in repr(error)


def test_refusal_without_a_status() -> None:
    """A failure without an answer has none."""
    assert ApiRefused("A sentence.", Failure()).status == 0


@pytest.mark.parametrize("kind", get_args(TimeoutKind))
def test_time_that_ran_out(kind: TimeoutKind) -> None:
    """It says which limit passed, and has a sentence."""
    error = TimedOut(kind)
    assert error.kind == kind
    assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("rows", "param", "message"),
    [
        (
            [{"loc": ["body", "reasoning", "effort"], "msg": "Input should be 'low'"}],
            "reasoning.effort",
            "Input should be 'low'",
        ),
        (
            [
                {"loc": ["body", "input", "str"], "msg": "a string"},
                {"loc": ["body", "input", "list[a]", 3, "A", "id"], "msg": "required"},
            ],
            "input[3].id",
            "required",
        ),
        ([], None, ""),
        (["?", {"loc": "body", "msg": 7}], None, ""),
    ],
)
def test_errors_of_servers_made_with_fastapi(
    rows: list[object], param: str | None, message: str
) -> None:
    """The row that says the most has the place and the words."""
    error = read_api_error({"detail": rows})
    assert (error.param, error.message) == (param, message)


MISALIGNMENT = {
    "error_type": "potentially_unintended_data_access",
    "detailed_explanation": "It read credentials.",
    "review_target": "review_1",
    "steer": {"message": "Ask before."},
}


@pytest.mark.parametrize(
    ("wire", "notice"),
    [
        (
            MISALIGNMENT,
            (
                "It read credentials.",
                "Ask before.",
                MISALIGNMENT["error_type"],
                "review_1",
            ),
        ),
        ({"steer": None, "detailed_explanation": 7}, ("", "", "", "")),
        ("stopped", ("", "", "", "")),
    ],
)
def test_notice_of_a_safety_stop(wire: object, notice: tuple[str, ...]) -> None:
    """All of its parts may be missing; the code alone decides what is done."""
    error = {"code": "misalignment_policy_violation", "misalignment": wire}
    assert read_api_error({"error": error}).notice == notice


def test_code_beside_an_error_in_words() -> None:
    """So xAI answers."""
    error = read_api_error({"code": "invalid-argument", "error": "No."})
    assert (error.code, error.message) == ("invalid-argument", "No.")
