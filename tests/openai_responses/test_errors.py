"""The exceptions tell what may be shown, and nothing else."""

import pytest

from openai_responses import errors
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    MalformedEvent,
    ResponsesError,
    UnreadableAnswer,
)


def test_tree_is_as_drawn() -> None:
    """The docstring names every exception of the module."""
    drawn = (errors.__doc__ or "").split()
    assert all(cause.__name__ in drawn for cause in ResponsesError.__subclasses__())


@pytest.mark.parametrize(
    "cause", [InvalidRequest, ConnectionFailed, UnreadableAnswer, MalformedEvent]
)
def test_text_of_an_error(cause: type[ResponsesError]) -> None:
    """It is the sentence it was made with."""
    assert str(cause("A sentence.")) == "A sentence."


def test_refusal_of_the_api() -> None:
    """It keeps what decisions need, and shows the sentence alone."""
    error = ApiRefused("A sentence.", 429, ApiError(code="c", message="sk-canary"))
    assert (error.status, error.error.code) == (429, "c")
    assert str(error) == "A sentence."
    assert "sk-canary" not in repr(error)
