"""A caller's words, turned into the API's."""

from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings, build_request
from openai_responses.requests.parameters import read_bool, read_parameters

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize("value", [True, "true", 1, "1"])
def test_words_for_true(value: object) -> None:
    """A bool, a number or a text."""
    assert read_bool("x", value) is True


@pytest.mark.parametrize("value", [False, "false", 0, "0"])
def test_words_for_false(value: object) -> None:
    """A bool, a number or a text."""
    assert read_bool("x", value) is False


@pytest.mark.parametrize(
    "value", ["True", "yes", " true", "", 2, -1, 1.0, None, [], {}]
)
def test_no_other_word_is_bool_like(value: object) -> None:
    """A guess would turn a typing error into a setting."""
    with pytest.raises(InvalidRequest, match=r"The setting x .* true or false"):
        read_bool("x", value)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": "text", "json_schema": "not looked at"}, None),
        ({"response_format": {"type": "json_object"}}, {"type": "json_object"}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": "1"},
                }
            },
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True},
        ),
        (
            {"response_format": "json_schema", "json_schema": {"schema": SCHEMA}},
            {"type": "json_schema", "name": "response", "schema": SCHEMA},
        ),
        (
            {
                "response_format": "json_schema",
                "json_schema": '{"schema": {}, "description": "d", "strict": false}',
            },
            {
                **{"type": "json_schema", "name": "response", "schema": {}},
                **{"description": "d", "strict": False},
            },
        ),
        (
            {"response_format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "name": "n", "schema": SCHEMA},
        ),
    ],
)
def test_format(body: dict[str, Any], form: dict[str, Any] | None) -> None:
    """Chat Completions' form, and the two keys beside it, become the API's form."""
    assert read_parameters(body)["text"].get("format") == form


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "",
        "no JSON",
        "[]",
        "7",
        [],
        {},
        {"name": "n"},
        {"schema": "text"},
        "[" * 9,
    ],
)
def test_format_without_a_schema(schema: object) -> None:
    """It is refused with a sentence; the API would say less."""
    body = {"response_format": "json_schema", "json_schema": schema}
    with pytest.raises(InvalidRequest, match="json_schema has to be a JSON object"):
        read_parameters(body)


def test_the_apis_own_format_wins() -> None:
    """`text.format` is the API's own word for it."""
    own = {"type": "json_object"}
    body = {"text": {"format": own}, "response_format": "text"}
    assert read_parameters(body)["text"] == {"format": own}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"reasoning_effort": "hgih"}, "reasoning_effort"),
        ({"reasoning_effort": 7}, "reasoning_effort"),
        ({"reasoning": {"effort": {"a": 1}}}, "reasoning_effort"),
        ({"reasoning": "high"}, "reasoning"),
        ({"reasoning": {"summary": "long"}}, "reasoning_summary"),
        ({"text": []}, "text"),
        ({"verbosity": "loud"}, "verbosity"),
        ({"response_format": "yaml"}, "response_format"),
        ({"parallel_tool_calls": "maybe"}, "parallel_tool_calls"),
        ({"enable_stream": "off"}, "enable_stream"),
    ],
)
def test_what_cannot_be_meant(body: dict[str, Any], named: str) -> None:
    """One sentence names the setting and, where there is a list, its words."""
    with pytest.raises(InvalidRequest) as refused:
        read_parameters(body)
    assert str(refused.value).startswith(f"The setting {named} cannot be sent: it ")


@pytest.mark.parametrize(
    ("setting", "asked", "streams"),
    [
        (True, None, True),
        (True, "1", True),
        (True, "false", False),
        (False, True, False),
        (False, None, False),
    ],
)
def test_both_have_to_want_a_stream(
    setting: bool, asked: object, streams: bool
) -> None:
    """`enable_stream` and the caller's `stream`."""
    items = [{"role": "user", "content": "Hi"}]
    body = {"enable_stream": asked}
    model = resolve_model("gpt-5")
    built = build_request(model, "", items, body, Settings(stream=setting))
    assert built.stream is streams
