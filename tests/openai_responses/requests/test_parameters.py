"""A caller's words, turned into the API's."""

import hashlib
import json
from typing import Any

import pytest

from openai_responses.errors import InvalidParameter, InvalidRequest
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings, build_request
from openai_responses.requests.parameters import hash_ids, read_bool, read_parameters

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
UNNAMED = {"name": "response", "strict": False}
JSON = {"type": "json_object"}


@pytest.mark.parametrize("value", ["True", " true", "", 2, 1.0, None, []])
def test_only_few_words_are_true_or_false(value: object) -> None:
    """A guess would turn a typing error into a setting."""
    assert [read_bool("x", word) for word in (True, "true", 1)] == [True] * 3
    assert [read_bool("x", word) for word in (False, "false", 0)] == [False] * 3
    with pytest.raises(InvalidRequest, match=r"The setting x .* true or false"):
        read_bool("x", value)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ({"response_format": {"type": "text"}}, {"type": "text"}),
        ({"response_format": "text", "json_schema": "not looked at"}, {"type": "text"}),
        # `text.format` is the API's own word for it.
        ({"text": {"format": JSON}, "response_format": "text"}, JSON),
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
            {"type": "json_schema", **UNNAMED, "schema": SCHEMA},
        ),
        (
            {
                "response_format": "json_schema",
                "json_schema": '{"schema": {}, "description": "d", "strict": false}',
            },
            {"type": "json_schema", **UNNAMED, "schema": {}, "description": "d"},
        ),
        (
            {"response_format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": False},
        ),
    ],
)
def test_formats_become_the_form_of_the_api(
    body: dict[str, Any], form: dict[str, Any] | None
) -> None:
    """Chat Completions' form, and the two keys next to it, become the API's form.

    What does not say that it is strict says that it is not: the API would make it so.
    """
    assert read_parameters(body)[0]["text"].get("format") == form


@pytest.mark.parametrize(
    "schema", [None, "no JSON", "[]", [], {"name": "n"}, {"schema": "text"}, "[" * 9]
)
def test_format_without_a_schema(schema: object) -> None:
    """It is refused: free text in the place of JSON would tell its reader nothing."""
    body = {"response_format": "json_schema", "json_schema": schema}
    with pytest.raises(InvalidParameter, match="has to be a JSON object") as refused:
        read_parameters(body)
    assert refused.value.param == "response_format"


MAYBE = {"schema": SCHEMA, "strict": "maybe"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"response_format": "yaml"}, "response_format"),
        ({"response_format": 7}, "response_format"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": MAYBE}},
            "json_schema.strict",
        ),
    ],
)
def test_format_that_does_not_exist_is_refused(
    body: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidParameter, match=f"The setting {param} ") as refused:
        read_parameters(body)
    assert refused.value.param == param


@pytest.mark.parametrize("nothing", ["", {}, None])
def test_no_format_is_free_text(nothing: object) -> None:
    """A parameter of a model may be left empty."""
    given, errors = read_parameters({"response_format": nothing, "json_schema": "x"})
    assert given["text"] == {}
    assert not errors


LARGE = {"schema": {"description": "x" * 300_000}}


@pytest.mark.parametrize("schema", [LARGE, json.dumps(LARGE)], ids=["object", "text"])
def test_oversized_text_format_is_refused(schema: object) -> None:
    """A user stores it once, with a model or a chat, and each question would send it."""
    body = {"response_format": "json_schema", "json_schema": schema}
    with pytest.raises(InvalidParameter, match="cannot be sent: it is too large"):
        read_parameters(body)


@pytest.mark.parametrize(
    ("name", "sent"),
    [("my größe!", "my_gr__e_"), ("n" * 99, "n" * 64), (7, "7"), ("", "response")],
)
def test_name_of_a_format(name: object, sent: str) -> None:
    """The API takes 64 letters, digits, underscores and dashes."""
    form = {"type": "json_schema", "name": name, "schema": SCHEMA}
    given, errors = read_parameters({"text": {"format": form}})
    assert given["text"]["format"]["name"] == sent
    assert not errors


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"reasoning_effort": "ultra"}, "reasoning.effort"),
        ({"reasoning": {"effort": {"a": 1}}}, "reasoning.effort"),
        ({"reasoning": "high"}, "reasoning"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
        ({"text": []}, "text"),
        ({"verbosity": "huge"}, "text.verbosity"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
    ],
)
def test_invalid_setting_is_left_out_and_named(
    body: dict[str, Any], named: str
) -> None:
    given, errors = read_parameters({**body, "seed": 1})
    assert given == {"reasoning": {}, "text": {}, "seed": 1}
    (error,) = errors
    assert error.startswith(f"The setting {named} cannot be sent: ")


@pytest.mark.parametrize(
    ("setting", "asked", "streams"),
    [(True, None, True), (True, "false", False), (False, True, False)],
)
def test_both_have_to_want_a_stream(
    setting: bool, asked: object, streams: bool
) -> None:
    items = [{"role": "user", "content": "Hi"}]
    body = {"enable_stream": asked}
    model = resolve_model("gpt-5")
    built = build_request(model, "", items, body, Settings(stream=setting))
    assert built.stream is streams


@pytest.mark.parametrize(
    ("kind", "chat_id", "named"),
    [
        ("chat", "c-1", b"chat:c-1"),
        ("chat", "", b"cache:u-1"),
        ("user", "c-1", b"cache:u-1"),
        ("off", "c-1", b""),
    ],
)
def test_cache_is_that_of_the_chat_or_of_its_user(
    kind: str, chat_id: str, named: bytes
) -> None:
    """Another name would lose every cache after an update.

    docs/privacy.md gives administrators the computation of the user's as a command.
    """
    key = hashlib.sha256(b"openai_responses:" + named).hexdigest()[:48]
    user = hashlib.sha256(b"openai_responses:user:u-1").hexdigest()[:48]

    ids = hash_ids(kind, "u-1", chat_id)

    assert ids["prompt_cache_key"] == (key if named else None)
    assert ids["safety_identifier"] == user
