"""Each refusal that is known says what it is, to whoever reads it."""

import pytest

from openai_responses.endings import (
    ending_of_exception,
    ending_of_failure,
    is_final,
    names_model,
    refusal_fault,
    refusal_message,
)
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    Failure,
    read_api_error,
    read_error_body,
)
from shells.valve_messages import PIPE_SHELL, advised_ending
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_refusal_has_a_message_of_its_own(name: str) -> None:
    """With the settings that can be the cause; nothing of the server's own words."""
    status, body, message = REFUSED_BODIES[name]

    error = read_error_body(body.encode())
    refused = ApiRefused(
        refusal_message(status, error),
        Failure(status, error),
        fault=refusal_fault(status, error),
    )
    ending = ending_of_exception(refused, has_begun=False)

    assert advised_ending(ending, PIPE_SHELL).message == message


@pytest.mark.parametrize("name", FAILED_EVENTS)
def test_error_in_a_stream_has_the_message_of_its_code(name: str) -> None:
    wire, message = FAILED_EVENTS[name]

    ending = ending_of_failure("failed", read_api_error({"error": wire}))

    assert advised_ending(ending, PIPE_SHELL).message == message


@pytest.mark.parametrize(
    ("name", "is_stopped"),
    [
        ("OpenRouter's moderation", True),
        ("xAI's moderation", True),
        ("LiteLLM's guardrail", True),
        ("country", False),
        ("OpenRouter's exact reason", False),
    ],
)
def test_moderation_is_final(name: str, is_stopped: bool) -> None:
    """Neither another attempt nor another server gets around it."""
    refused = REFUSED_BODIES[name]
    assert is_final(read_error_body(refused.body.encode())) == is_stopped


def test_quoted_words_of_a_filter_are_no_stop() -> None:
    quoted = ApiError(message="Invalid value: 'Content violates usage guidelines.'")
    assert not is_final(quoted)


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("project without the model", True),
        ("LiteLLM's team without the model", True),
        ("unverified organization", True),
        ("unverified organization, told by LiteLLM", True),
        ("words about a model are not enough", False),
        ("country", False),
        ("Cloudflare's page", False),
        ("403 without a body", False),
        ("unknown path", False),
    ],
)
def test_refusal_that_names_the_model(name: str, is_named: bool) -> None:
    status, body, _ = REFUSED_BODIES[name]
    assert names_model(status, read_error_body(body.encode())) == is_named


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError("model_not_found"), True),
        (ApiError("404", message="The model `x` does not exist."), True),
        (ApiError("server_error"), False),
        (ApiError("403"), False),
    ],
)
def test_model_that_a_stream_names(error: ApiError, is_named: bool) -> None:
    assert names_model(200, error) == is_named


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<head><title>Wait...</title>", ApiError(message="Wait...", is_page=True)),
        (b"\r\n <TITLE>A &amp; B</TITLE>", ApiError(message="A & B", is_page=True)),
        (b"<html></html>", ApiError(is_page=True)),
        (b"error code: 1015", ApiError(is_page=True)),
        (b"error code: 1015, and more", ApiError()),
        (b"", ApiError()),
        (b'{"error": {"message": "<html>"}}', ApiError(message="<html>")),
        (b"\xff<html>", ApiError()),
    ],
)
def test_page_is_known_by_its_beginning(body: bytes, error: ApiError) -> None:
    """JSON is the API's, whatever it says."""
    assert read_error_body(body) == error
