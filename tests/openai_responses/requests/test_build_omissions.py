"""Nothing that a caller asked for disappears without a word."""

from typing import Any

import pytest

from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import (
    Settings,
    build_request,
    is_api_parameter,
    unsent_parameters,
)

QUESTION = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hi"}],
}


def missing(model: str, **asked: Any) -> list[str]:
    """Return what the request for a model does not hold."""
    body = {"model": f"pipe.{model}", "messages": [], "stream": True, **asked}
    request = build_request(resolve_model(model), "", [QUESTION], body, Settings())
    return unsent_parameters(body, request)[0]


def test_a_plain_chat_misses_nothing() -> None:
    """Tools are offered under other conditions."""
    told = {"tools": [], "extra_tools": [], "enable_stream": True}
    assert missing("gpt-5.2", **told, stream_options={"include_usage": True}) == []


def test_parameters_unknown_to_the_api_are_named() -> None:
    """By its name, whatever its value is; a long one is cut."""
    asked = {"logit_bias": {"1": 2}, "stop": ["."], "seed": 1, "x" * 99: "secret"}
    assert missing("gpt-5.2", **asked) == ["logit_bias", "seed", "stop", "x" * 40]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("gpt-4.1", ["reasoning.effort", "reasoning.summary", "text.verbosity"]),
        ("gpt-6.1-sol", ["temperature", "top_p"]),
        ("gpt-5.2", ["temperature", "top_p"]),
    ],
)
def test_parameters_rejected_by_the_model_are_named(
    model: str, names: list[str]
) -> None:
    """Only these are missing; all others are sent."""
    asked: dict[str, Any] = {
        "reasoning": {"effort": "high"},
        "reasoning_summary": "auto",
        "verbosity": "low",
        "temperature": 1,
        "top_p": 1,
        "max_tokens": 100,
    }
    assert missing(model, **asked) == names


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        ("temperature", True),
        ("reasoning.effort", True),
        ("reasoning.depth", False),
        ("seed", False),
        ("repairs", False),
        ("", False),
    ],
)
def test_parameters_of_the_api_are_known(name: str, is_known: bool) -> None:
    """With the fields in them."""
    assert is_api_parameter(name) is is_known
