"""Schemas of tools become strict, or say that they cannot."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from openai_responses.arguments import argument_complaint, without_nulls
from openai_responses.schemas import strict_schema
from schema_strategies import VALUES, Schema, garbage, schemas, values
from simulator.schema_check import check_schemas
from strict_rules import broken_rules

HERE = Path(__file__).resolve().parents[1] / "schemas"
BUILTIN = json.loads((HERE / "open_webui_builtin.json").read_text("utf-8"))
SAMPLES = json.loads((HERE / "samples.json").read_text("utf-8"))
NOT_STRICT = {
    # Open WebUI says of these lists that they hold objects, not which.
    "ask_user": "an open map",
    "replace_note_content": "an open map",
    "update_memory": "an open map",
} | {tool["name"]: tool["not_strict"] for tool in SAMPLES if "not_strict" in tool}
CORPUS = {tool["name"]: tool["parameters"] for tool in [*BUILTIN, *SAMPLES]}


def of(schema: Schema, *required: str) -> Schema:
    """Return the parameters of a function with one property `x`."""
    return {"type": "object", "properties": {"x": schema}, "required": [*required]}


def strict(schema: Schema, *required: str) -> Any:
    """Return what becomes of the property `x`, None if nothing does."""
    made = strict_schema(of(schema, *required))
    return made and made["properties"]["x"]


@pytest.mark.parametrize("name", CORPUS.keys() - NOT_STRICT.keys())
def test_corpus(name: str) -> None:
    """It comes out strict, and everybody who knows the mode's rules agrees."""
    made = strict_schema(CORPUS[name])

    assert made is not None
    assert broken_rules(made) == []
    tool = {"type": "function", "name": name, "strict": True, "parameters": made}
    check_schemas([tool])
    assert strict_schema(made) == made


@pytest.mark.parametrize("name", NOT_STRICT)
def test_corpus_exceptions(name: str) -> None:
    """What the list excepts, with its reason, has no strict form."""
    assert strict_schema(CORPUS[name]) is None


def test_corpus_is_whole() -> None:
    """No two tools hide behind one name; hardly any builtin tool is excepted."""
    assert len(CORPUS) == len(BUILTIN) + len(SAMPLES)
    assert len(BUILTIN) >= 60
    assert NOT_STRICT.keys() <= CORPUS.keys()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": 1}, {"type": ["integer", "null"], "enum": [1, None]}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ),
        (
            {"type": "string", "nullable": True, "title": "X", "default": "a"},
            {"type": ["string", "null"]},
        ),
    ],
)
def test_an_optional_property_becomes_nullable(
    schema: Schema, expected: Schema
) -> None:
    """Null stands for what is not given."""
    assert strict(schema) == expected


def test_a_required_property_is_left_alone() -> None:
    """It cannot be left out, so it need not be null."""
    assert strict({"type": "string"}, "x") == {"type": "string"}


def test_nested_objects_are_closed_and_whole() -> None:
    """Every property of every object is required; optional ones are nullable."""
    inner = {"type": "object", "properties": {"y": {"type": "integer"}}}
    assert strict(inner, "x") == {
        "type": "object",
        "properties": {"y": {"type": ["integer", "null"]}},
        "required": ["y"],
        "additionalProperties": False,
    }


def test_references_stay_and_their_parts_are_strict() -> None:
    """`definitions` become `$defs`; a part may refer to itself."""
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/definitions/Node"}},
    }
    made = strict_schema(
        {**of({"$ref": "#/definitions/Node"}), "definitions": {"Node": node}}
    )

    assert made is not None
    reference = {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    assert made["properties"]["x"] == reference
    assert made["$defs"]["Node"]["properties"]["next"] == reference


def test_all_of_is_merged() -> None:
    """Parts that agree are one object."""
    parts = [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
    ]
    assert strict({"allOf": parts}, "x")["required"] == ["a", "b"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "array"},
        {},
        {"not": {"type": "string"}},
        {"type": "string", "if": {}},
        {"$ref": "#/$defs/Nowhere"},
        {"$ref": "https://example.com/schema"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "strung"},
        True,
    ],
)
def test_what_has_no_strict_form(schema: Any) -> None:
    """It is sent as it is, without strict mode."""
    assert strict(schema) is None


def test_a_root_that_is_no_object() -> None:
    """The arguments of a function are an object."""
    assert strict_schema({"type": "string"}) is None
    assert strict_schema({"anyOf": [of({"type": "string"})]}) is None
    empty = strict_schema({})
    assert empty is not None
    assert empty["properties"] == {}


@given(garbage(), VALUES)
def test_any_schema(schema: Schema, value: Any) -> None:
    """Whatever is called a schema gives an answer; a strict one is strict."""
    before = copy.deepcopy(schema)
    made = strict_schema(schema)
    argument_complaint(value, schema)

    assert schema == before
    assert made is None or broken_rules(made) == []
    assert made is None or strict_schema(made) == made


@given(st.data())
def test_arguments_of_strict_schemas(data: st.DataObject) -> None:
    """What a strict schema allows, the given one allows without the nulls."""
    schema = data.draw(schemas())
    made = strict_schema(schema)
    assume(made is not None)
    assert made is not None
    assert broken_rules(made) == []
    arguments = data.draw(values(made, made))
    assume(Draft202012Validator(made).is_valid(arguments))

    cleaned = without_nulls(arguments, schema)

    assert [
        error.message for error in Draft202012Validator(schema).iter_errors(cleaned)
    ] == []
