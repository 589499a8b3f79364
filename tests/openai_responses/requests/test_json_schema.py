"""Schemas of tools become strict, or say that they cannot."""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from openai_responses.json_input import resolve_reference
from simulator.checks.schemas import check_schemas, find_lookaround
from simulator.refusals import Refusal
from strictness.forms import (
    argument_error,
    drop_optional_nulls,
    open_schema,
    strict_schema,
)
from strictness.rules import broken_rules
from strictness.strategies import VALUES, Schema, garbage, schemas, values

HERE = Path(__file__).resolve().parents[2] / "schemas"
BUILTIN = json.loads((HERE / "open_webui_builtin.json").read_text("utf-8"))
SAMPLES = json.loads((HERE / "samples.json").read_text("utf-8"))
HARD = json.loads((HERE / "hard.json").read_text("utf-8"))
NOT_STRICT = {
    # Open WebUI says of these lists that they hold objects, not which.
    "ask_user": "an open map",
    "replace_note_content": "an open map",
    "update_memory": "an open map",
} | {tool["name"]: tool["not_strict"] for tool in SAMPLES if "not_strict" in tool}
FUNCTION = {"type": "function", "name": "look", "strict": True}
CORPUS = {tool["name"]: tool["parameters"] for tool in [*BUILTIN, *SAMPLES]}


def of(schema: Schema, *required: str) -> Schema:
    """Return the parameters of a function with one property `x`."""
    return {"type": "object", "properties": {"x": schema}, "required": [*required]}


def strict(schema: Schema, *required: str) -> Any:
    """Return what becomes of the property `x`, None if nothing does."""
    made = strict_schema(of(schema, *required))
    return made and made["properties"]["x"]


def assert_strict(schema: Schema | None) -> None:
    """Everybody who knows the rules of strict mode agrees that a schema is strict."""
    assert schema is not None
    assert broken_rules(schema) == []
    check_schemas([{**FUNCTION, "parameters": schema}])


def test_schemas_of_the_corpus_become_strict() -> None:
    """All but the exceptions, each of which says why it has no strict form."""
    for name, parameters in CORPUS.items():
        made = strict_schema(parameters)
        assert (made is None) == (name in NOT_STRICT), name
        if made is not None:
            assert_strict(made)
            assert strict_schema(made) == made, name


@pytest.mark.parametrize("tool", HARD, ids=lambda tool: tool["name"])
def test_schemas_that_the_api_refuses(tool: dict[str, Any]) -> None:
    """The copy of each is accepted, and copying it again changes nothing."""
    assert _is_refused(tool["parameters"])

    copy = open_schema(tool["parameters"])

    Draft202012Validator.check_schema(copy)
    assert not _is_refused(copy)
    assert open_schema(copy) == copy
    closed = strict_schema(tool["parameters"])
    if closed:
        assert_strict(closed)


def _is_refused(parameters: Schema) -> bool:
    tool = {**FUNCTION, "strict": False, "parameters": parameters}
    try:
        check_schemas([tool])
    except Refusal:
        return True
    return bool(find_lookaround([tool]))


KEPT: list[Schema] = [
    {"type": "string", "pattern": r"^[^\s@]+@[\w.-]+$", "minLength": 1, "maxLength": 9},
    {"type": "string", "pattern": r"^[\u0041-\u005a\u4e00-\u9fff]+[à-ÿ]\é$"},
    {"type": "number", "exclusiveMinimum": -1_000, "multipleOf": 0.5, "default": None},
    {"type": ["integer", "null"], "minimum": 0, "maximum": 1, "title": "A"},
    {"type": "array", "items": {}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
    {"type": "array", "items": False, "prefixItems": [{"const": [1]}]},
    {"type": "object", "properties": {}, "additionalProperties": {"enum": ["a", 1]}},
    {"type": "object", "properties": {"a": True}, "required": ["a"]},
    {"type": "object", "properties": {}, "minProperties": 1, "maxProperties": 9},
    {"patternProperties": {"^x-": {}}, "propertyNames": {"format": "uri"}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": False},
    {"anyOf": [{"type": "string"}, {"not": {"type": "null"}}], "examples": ["a"]},
    {"$ref": "#/$defs/Known", "description": "One.", "deprecated": True},
    {"allOf": [{"$ref": "#/definitions/a~1b"}], "readOnly": True, "$comment": "!"},
    {"$ref": "#"},
    {"type": "array", "items": {}, "minContains": 1, "maxContains": 2},
    {"type": "string", "contentEncoding": "base64", "contentMediaType": "text/csv"},
    {"type": "number", "exclusiveMaximum": 9, "writeOnly": True},
]
"""Schemas that are valid; the API takes them as they are."""


@pytest.mark.parametrize("schema", KEPT, ids=repr)
def test_a_valid_schema_is_kept(schema: Schema) -> None:
    inner = {"type": "array", "items": {"type": "array", "items": schema}}
    whole = {
        **of(inner),
        "$defs": {"Known": {"type": "string"}},
        "definitions": {"a/b": {}},
    }

    assert open_schema(whole) == whole


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "Float", "format": "double"}, {"format": "double"}),
        ({"type": ["string", "file"]}, {}),
        ({"type": ["string", "string"]}, {"type": ["string"]}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": [{}]}, {"type": "array", "items": {}}),
        ({"properties": {"a": "string"}}, {"properties": {"a": {}}}),
        ({"properties": {1: {}, None: {}}}, {"properties": {}}),
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"required": True, "nullable": True}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"minimum": 1}),
        ({"minLength": -1, "maxLength": True, "minItems": "1", "multipleOf": 0}, {}),
        ({"multipleOf": True}, {}),
        ({"multipleOf": "2"}, {}),
        ({"multipleOf": math.inf}, {}),
        ({"multipleOf": math.nan, "default": math.inf, "enum": [math.nan]}, {}),
        ({"enum": [], "anyOf": [], "oneOf": {}, "not": "string"}, {}),
        ({"const": {1, 2}, "default": {(1, 2): 3}, "examples": [b""]}, {}),
        ({"anyOf": ["string", {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        ({"pattern": r"(a)\1", "description": "A."}, {"description": "A."}),
        ({"pattern": "(" * 300}, {}),
        ({"pattern": "[\u00e9-a]"}, {}),
        ({"pattern": r"\N{DIGIT ONE}"}, {}),
        ({"pattern": "a" * 501}, {}),
        (
            {"patternProperties": {"(?!a)": {}, "a": {}}},
            {"patternProperties": {"a": {}}},
        ),
        ({"$ref": "#/properties/x", "title": "Here"}, {"title": "Here"}),
        ({"$ref": "#/$defs/Known/properties/a"}, {}),
        ({"$ref": "#/$defs/Unknown"}, {}),
        ({"$ref": "#/properties/x/anyOf/7", "anyOf": [{}]}, {"anyOf": [{}]}),
        ({"$ref": "#/$defs/" + "x" * 1_000}, {}),
        ({"$ref": "https://example.com/#/$defs/Known"}, {}),
        ({"$ref": ["#"]}, {}),
        (True, True),
        ("string", {}),
    ],
)
def test_keyword_with_a_refused_value_is_left_out(schema: Any, expected: Any) -> None:
    whole = {**of(schema), "$defs": {"Known": {"properties": {"a": {}}}}}

    assert open_schema(whole)["properties"]["x"] == expected


@pytest.mark.parametrize(
    ("keywords", "hold"),
    [
        (
            "additionalProperties contains else if items not propertyNames then "
            "unevaluatedItems unevaluatedProperties",
            lambda part: part,
        ),
        ("allOf anyOf oneOf prefixItems", lambda part: [part]),
        (
            "$defs definitions dependentSchemas patternProperties properties",
            lambda part: {"a": part},
        ),
    ],
    ids=["a schema", "a list", "a map"],
)
def test_schemas_in_a_schema_are_copied_too(keywords: str, hold: Any) -> None:
    for keyword in keywords.split():
        broken = of({keyword: hold({"type": "strung", "title": "A"})})
        copied = open_schema(broken)["properties"]["x"]
        assert copied == {keyword: hold({"title": "A"})}, keyword
        assert open_schema(of({keyword: 7}))["properties"]["x"] == {}, keyword


@given(garbage())
def test_any_value_becomes_a_valid_schema(schema: Schema) -> None:
    """Whatever is called a schema becomes one, in the validator's words and the API's."""
    made = open_schema(schema)

    Draft202012Validator.check_schema(made)
    assert not _is_refused(made)
    json.dumps(made, allow_nan=False)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": 1}, {"type": ["integer", "null"], "enum": [1, None]}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}], "description": "A."},
            {
                "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
                "description": "A.",
            },
        ),
        (
            {"type": "string", "minLength": 1, "title": "X", "default": "a"},
            {"type": ["string", "null"]},
        ),
    ],
)
def test_an_optional_property_becomes_nullable(
    schema: Schema, expected: Schema
) -> None:
    assert strict(schema) == expected


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        *(("$comment", "!"), ("$defs", {}), ("contentEncoding", "base64")),
        *(("contentMediaType", "text/csv"), ("default", "a"), ("definitions", {})),
        *(("deprecated", True), ("examples", ["a"]), ("maxLength", 9)),
        *(("maxProperties", 9), ("minLength", 1), ("minProperties", 1)),
        *(("readOnly", True), ("title", "X"), ("uniqueItems", True)),
        ("writeOnly", True),
    ],
)
def test_keyword_that_only_describes_is_left_out(keyword: str, value: object) -> None:
    assert strict({"type": "string", keyword: value}, "x") == {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "exclusiveMaximum": 9, "exclusiveMinimum": 1},
        {"type": "number", "maximum": 9, "minimum": 1, "multipleOf": 0.5},
        {"type": "string", "pattern": "^a", "enum": ["a"], "description": "A."},
        {"type": "array", "items": {"type": "null"}, "maxItems": 9, "minItems": 1},
    ],
)
def test_limits_that_strict_mode_has_are_kept(schema: Schema) -> None:
    assert strict(schema, "x") == schema


STRING_FORMATS = "date date-time duration email hostname ipv4 ipv6 time uuid"


@pytest.mark.parametrize(
    ("kind", "format", "kept"),
    [
        *(("string", format, True) for format in STRING_FORMATS.split()),
        ("string", "uri", False),
        ("string", "int64", False),
        ("integer", "int64", True),
        (["integer", "null", "number"], "uint8", True),
        ("number", "double", True),
        ("integer", "int32", False),
        (["integer", "string"], "int64", False),
    ],
)
def test_formats_that_strict_mode_takes_are_kept(
    kind: Any, format: str, kept: bool
) -> None:
    """Those of the guide, and those of numbers that recordings show."""
    schema = {"type": kind, "format": format}
    expected = schema if kept else {"type": kind}

    assert strict(schema, "x") == expected


def test_required_property_is_not_nullable() -> None:
    assert strict({"type": "string"}, "x") == {"type": "string"}
    inner = {"type": "object", "properties": {"y": {"type": "integer"}}}
    assert strict(inner, "x") == {
        "type": "object",
        "properties": {"y": {"type": ["integer", "null"]}},
        "required": ["y"],
        "additionalProperties": False,
    }


def test_a_choice_at_the_root() -> None:
    named = {"properties": {"name": {"type": "string"}, "id": {"type": "null"}}}
    schema = {
        "anyOf": [{"$ref": "#/$defs/Named"}, {"oneOf": [of({"type": "integer"})]}],
        "properties": {"id": {"type": "integer"}},
        "$defs": {"Named": named},
        "type": "OBJECT",
    }

    assert open_schema(schema) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "name": {"type": "string"},
            "id": {"type": "integer"},
        },
        "$defs": {"Named": named},
    }


@pytest.mark.parametrize(
    "part",
    [
        *({"$ref": "#/$defs/A"}, {"allOf": [{"type": "null"}]}),
        *({"anyOf": [{"type": "null"}]}, {"const": 1}, {"enum": [1]}),
        *({"not": {"type": "null"}}, {"oneOf": [{"type": "null"}]}),
    ],
)
def test_keywords_that_the_api_refuses_at_the_root(part: Schema) -> None:
    schema = {**of(part), "$defs": {"A": {}}}

    assert open_schema({**schema, **part}) == schema


def test_arguments_are_checked_through_references() -> None:
    """By `#` and by the names of definitions, which a stroke does not end."""
    definitions = {"a/b": {"type": "string"}}
    items = {"type": "array", "items": {"$ref": "#"}}
    tree = {**of({"$ref": "#/definitions/a~1b"}, "x"), "definitions": definitions}
    tree["properties"]["more"] = items

    arguments = {"x": "1", "more": [{"x": "2", "more": None}]}
    assert argument_error(arguments, tree) is None
    assert drop_optional_nulls(arguments, tree) == {"x": "1", "more": [{"x": "2"}]}
    deep = {"x": "1", "more": [{"x": 2}]}
    assert argument_error(deep, tree) == "The argument more[0].x must be string."


def properties(count: int, length: int) -> Schema:
    """Return an object of many properties, all required, with names of one length."""
    names = [f"{number:0{length}}" for number in range(count)]
    parts = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": parts, "required": names}


def words(count: int, length: int) -> Schema:
    return {"type": "string", "enum": [f"{n:0{length}}" for n in range(count)]}


@pytest.mark.parametrize("count", [20, 1_000, 5_001])
@pytest.mark.parametrize(
    ("form", "length"), [(properties, 4), (properties, 120), (words, 4), (words, 400)]
)
def test_schema_above_the_limits_is_not_strict(
    form: Callable[[int, int], Schema], length: int, count: int
) -> None:
    """What is larger is sent without strict mode; it would be refused."""
    made = strict_schema(of(form(count, length), "x"))

    assert made is not None or count > 20
    if made is not None:
        assert_strict(made)


@pytest.mark.parametrize("key", ["items", "properties", "anyOf"])
def test_ten_levels_are_strict_and_eleven_are_not(key: str) -> None:
    nested: Schema = {"type": "string"}
    for _ in range(7):
        nested = {"type": "array", "items": nested}
    for inner, is_strict in (
        (nested, True),
        ({"type": "array", "items": nested}, False),
    ):
        array = {"type": "array", "items": inner}
        levels = {
            "items": array,
            "properties": of(inner, "x"),
            "anyOf": {"anyOf": [inner]},
        }
        made = strict_schema(of(levels[key], "x"))
        assert (made is not None) is is_strict
        assert made is None or broken_rules(made) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        *({"type": "array"}, {}, {"not": {"type": "string"}}),
        *({"type": "string", "if": {}}, {"$ref": "#/$defs/Nowhere"}),
        *({"$ref": "https://example.com/schema"}, {"allOf": [{"type": "string"}]}),
        *({"$ref": "#/$defs/Known"}, {"type": "file"}),
        {"type": "object", "properties": ["a"]},
        *({"type": "array", "prefixItems": [{"type": "string"}]}, {"type": "strung"}),
        *({"type": "strung", "enum": ["a"]}, {"type": "string", "nullable": True}),
        *({"enum": [["a"]]}, True),
        {"type": "object", "properties": {}, "additionalProperties": {}},
    ],
)
def test_schema_without_strict_form_is_sent_open(schema: Any) -> None:
    """It is sent without strict mode, if only because that would need more work."""
    whole = {**of(schema), "$defs": {"Known": {"type": "string"}}}
    assert strict_schema(whole) is None
    check_schemas([{**FUNCTION, "strict": False, "parameters": open_schema(whole)}])


def test_root_has_to_be_an_object() -> None:
    assert strict_schema({"type": "string"}) is None
    assert strict_schema({"anyOf": [of({"type": "string"})]}) is None
    empty = strict_schema({})
    assert empty is not None
    assert empty["properties"] == {}


@given(garbage(), VALUES)
def test_any_schema_has_an_answer_and_strict_ones_are_strict(
    schema: Schema, value: Any
) -> None:
    before = copy.deepcopy(schema)
    made = strict_schema(schema)
    argument_error(value, schema)
    if isinstance(value, dict):
        drop_optional_nulls(value, schema)

    assert schema == before
    assert made is None or broken_rules(made) == []
    assert made is None or strict_schema(made) == made


@settings(max_examples=30)
@given(st.data())
def test_arguments_of_strict_schemas(data: st.DataObject) -> None:
    """What a strict schema allows, the given one allows without the nulls."""
    schema = data.draw(schemas())
    made = strict_schema(schema)
    assert made is not None
    assert broken_rules(made) == []
    arguments = data.draw(values(made))
    assume(Draft202012Validator(made).is_valid(arguments))

    cleaned = drop_optional_nulls(arguments, schema)

    Draft202012Validator(schema).validate(cleaned)


REFERRED = {"$defs": {"a/b~c": 1, "x" * 292: 2, "x" * 293: 2, "~1": 4}, "list": [3]}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", REFERRED),
        ("#/$defs/a~1b~0c", 1),
        (f"#/$defs/{'x' * 292}", 2),
        (f"#/$defs/{'x' * 293}", None),
        ("#/$defs/~01", 4),
        ("#/$defs/missing", None),
        ("other.json#/$defs/a", None),
        (7, None),
        ("#/list/0", 3),
        ("#/list/1", None),
        ("#/list/x", None),
    ],
)
def test_reference_leads_to_its_part(reference: object, found: object) -> None:
    assert resolve_reference(REFERRED, reference) == found
