"""Every ending has a sentence of ours, and none of the server's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.endings import (
    COMPLETED,
    CUT,
    Ending,
    ending_of_failure,
    ending_of_incomplete,
    failure_sentence,
    refusal_sentence,
)
from openai_responses.errors import ApiError

CANARY = "sk-proj-CANARY123"
MODEL = "gpt-5.6-sol"


def test_completed_needs_no_words() -> None:
    """All other endings have some, and are failures."""
    assert (COMPLETED.sentence, COMPLETED.is_failure) == ("", False)
    assert CUT.sentence
    assert CUT.is_failure


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_output_tokens", "length limit"),
        ("content_filter", "content filter"),
        ("steered", "not complete (steered)"),
        (None, "not complete. Ask"),
        (CANARY, "not complete. Ask"),
    ],
)
def test_incomplete(reason: str | None, words: str) -> None:
    """The reason is told where it is a word of the API."""
    ending = ending_of_incomplete(reason)
    assert words in ending.sentence
    assert ending.kind == "incomplete"
    assert ending.code == (None if reason == CANARY else reason)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError("server_error"), "error of its own"),
        (ApiError("rate_limit_exceeded"), "rate limit"),
        (ApiError("insufficient_quota"), "credit"),
        (ApiError("context_length_exceeded"), "longer than the model can read"),
        (ApiError("invalid_prompt"), "usage policies"),
        (ApiError("server_is_overloaded"), "overloaded"),
        (ApiError(None, "server_error"), "error of its own"),
        (ApiError("odd", "server_error"), "error of its own"),
        (ApiError("odd_code"), "reported an error (odd_code)"),
        (ApiError(None, "odd_type"), "reported an error (odd_type)"),
        (ApiError(), "reported an error. Try again"),
        (ApiError(CANARY, CANARY, CANARY, CANARY), "reported an error. Try again"),
    ],
)
@pytest.mark.parametrize("kind", ["failed", "error"])
def test_failure(kind: str, error: ApiError, words: str) -> None:
    """A code that we know has words of its own, another one is told."""
    ending = ending_of_failure(kind, error)
    assert ending.kind == kind
    assert words in ending.sentence == failure_sentence(error)
    assert CANARY not in repr(ending)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ApiError("server_error", "x"), "server_error"),
        (ApiError(None, "x"), "x"),
        (ApiError(), None),
        (ApiError(CANARY), None),
    ],
)
def test_code_of_a_failure(error: ApiError, code: str | None) -> None:
    """It is the code, else the type, and only if it is a word."""
    assert ending_of_failure("failed", error).code == code


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, ApiError("invalid_api_key"), "does not accept the API key"),
        (401, ApiError("insufficient_quota"), "does not accept the API key"),
        (403, ApiError(), f"may not use {MODEL}"),
        (403, ApiError("model_not_found"), f"The model {MODEL} does not exist"),
        (404, ApiError("model_not_found"), f"The model {MODEL} does not exist"),
        (404, ApiError(), "no Responses API at BASE_URL"),
        (413, ApiError(), "too large"),
        (429, ApiError(), "rate limit"),
        (429, ApiError("insufficient_quota"), "credit"),
        (429, ApiError("project_spend_limit_exceeded"), "credit"),
        (429, ApiError("rate_limit_exceeded", "tokens"), "rate limit"),
        (400, ApiError("invalid_encrypted_content"), "reasoning of an earlier"),
        (400, ApiError("context_length_exceeded"), "longer than the model"),
        (500, ApiError(), "(HTTP 500)"),
        (500, ApiError("server_error"), "error of its own."),
        (502, ApiError(), "(HTTP 502)"),
        (503, ApiError(), "overloaded"),
        (
            400,
            ApiError("unsupported_value", None, "reasoning.summary"),
            "HTTP 400 (unsupported_value) at reasoning.summary",
        ),
        (400, ApiError(None, None, "input[3].content[0].type"), "at input[3].content"),
        (418, ApiError(), "HTTP 418. An administrator"),
    ],
)
def test_refusal(status: int, error: ApiError, words: str) -> None:
    """The code decides before the status; the key is wrong whatever the code says."""
    assert words in refusal_sentence(status, error, MODEL)


@given(
    status=st.integers(400, 599),
    code=st.none() | st.just(CANARY) | st.just("a b"),
    param=st.none() | st.just(f"metadata.{CANARY}") | st.just("x\n<script>"),
)
def test_refusal_quotes_no_secret(
    status: int, code: str | None, param: str | None
) -> None:
    """A sentence in one line, without anything that is not a word of the API."""
    sentence = refusal_sentence(status, ApiError(code, code, param, CANARY), MODEL)
    assert sentence.endswith((".", "shortly."))
    for quoted in ("CANARY", "a b", "\n", "<", "{"):
        assert quoted not in sentence


def test_name_of_a_model_is_not_a_format() -> None:
    """Braces in a model's name stay braces."""
    sentence = refusal_sentence(404, ApiError("model_not_found"), "{0}{model}")
    assert "The model {0}{model} does" in sentence


def test_endings_compare_by_value() -> None:
    """Two runs that ended alike have equal endings."""
    assert Ending("cut") == Ending("cut")
    assert ending_of_incomplete("steered") == ending_of_incomplete("steered")
