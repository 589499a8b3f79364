"""Schemas of functions."""

from typing import Any

from live_cases.case import ASSUMED, Body, Case, format_text, make_function


def with_property(schema: Any, *, strict: bool = False) -> Body:
    """Return a body with a function whose one argument has a schema."""
    root = {"type": "object", "properties": {"a": schema}}
    closed = {"required": ["a"], "additionalProperties": False} if strict else {}
    tool = make_function(parameters={**root, **closed}, strict=strict)
    return {"tools": [tool]}


def nest(levels: int) -> Body:
    """Return closed objects within each other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        closed = {"required": ["a"], "additionalProperties": False}
        schema = {"type": "object", "properties": {"a": schema}, **closed}
    return schema


LOOKAROUND = {"type": "string", "pattern": "^(?!x)[a-z]+$"}
SCHEMA_CODE = "invalid_function_parameters"
SCHEMA_PARAM = "tools[0].parameters"
ARRAY: dict[str, Any] = {"type": "array"}
BARE: dict[str, Any] = {"tools": [make_function(parameters={"type": "object"})]}
SOURCE = "Chat Completions: forgecode 1359; assumed for Responses"


def _refused(name: str, body: Body, source: str, message: str) -> Case:
    """Return the case of a refusal."""
    return Case(
        name,
        body,
        source,
        param=SCHEMA_PARAM,
        code=SCHEMA_CODE,
        message=message,
    )


SCHEMA_CASES = (
    _refused(
        "a schema that is no object",
        {"tools": [make_function(parameters=ARRAY)]},
        "reports of OpenAI's users",
        "must be a JSON Schema of 'type: \"object\"'",
    ),
    _refused("an object without properties", BARE, SOURCE, "missing properties"),
    Case(
        "an inner object without properties",
        with_property({"type": "object"}),
        ASSUMED,
        200,
    ),
    _refused(
        "an array without items",
        with_property(ARRAY),
        "reports of OpenAI's users",
        "array schema missing items",
    ),
    _refused(
        "a type that does not exist",
        with_property({"type": "date"}),
        "the words of Python's jsonschema",
        "not valid under any of the given schemas",
    ),
    _refused(
        "a duplicate in required",
        {
            "tools": [
                make_function(
                    parameters={
                        "type": "object",
                        "properties": {},
                        "required": ["a", "a"],
                    }
                )
            ]
        },
        "the words of Python's jsonschema",
        "non-unique",
    ),
    _refused(
        "a boolean in required",
        with_property({"type": "string", "required": True}),
        "FoundationAgents/OpenManus 1162",
        "not of type 'array'",
    ),
    _refused(
        "a pattern that Python does not compile",
        with_property({"type": "string", "pattern": "^\\p{L}+$"}),
        "free-claude-code 1730, pleaseai/shunt 488",
        "is not a 'regex'",
    ),
    _refused(
        "a reference that leads nowhere",
        with_property({"$ref": "#/$defs/lost"}),
        "known of strict mode, assumed without it",
        "(?i)reference",
    ),
    _refused(
        "a strict object that is open",
        {"tools": [make_function(strict=True)]},
        "guide Structured outputs",
        "'additionalProperties' is required",
    ),
    _refused(
        "a strict schema with oneOf",
        with_property({"oneOf": [{"type": "string"}]}, strict=True),
        "guide Structured outputs",
        "'oneOf' is not permitted",
    ),
    _refused(
        "a strict schema of eleven levels",
        with_property(nest(10), strict=True),
        "guide Structured outputs; the words of its earlier limit",
        "levels of nesting exceeds limit",
    ),
    Case(
        "a strict schema of ten levels",
        with_property(nest(9), strict=True),
        "guide Structured outputs",
        200,
    ),
    _refused(
        "a strict schema with 1,001 values of enums",
        with_property(
            {"type": "string", "enum": [str(n) for n in range(1001)]}, strict=True
        ),
        "guide Structured outputs",
        "1000 enum values",
    ),
    Case(
        "a pattern that looks around, on gpt-5.6",
        with_property(LOOKAROUND),
        "opencode 32073, vercel/ai 20021",
        message="regex lookaround is not supported. Found at \\$\\.properties\\.a\\.pattern",
        model="gpt-5.6-luna",
    ),
    Case(
        "a pattern that looks around, on gpt-5.4",
        {**with_property(LOOKAROUND), "stream": True},
        "vercel/ai 16021",
        status=200,
        code="server_error",
        message="error occurred while processing",
        model="gpt-5.4-mini",
    ),
    Case(
        "a pattern that looks around, on gpt-6", with_property(LOOKAROUND), ASSUMED, 200
    ),
    Case(
        "a schema of the answer that is none",
        format_text(schema={"type": "object", "properties": {"a": {"type": "date"}}}),
        "reports of OpenAI's users",
        param="text.format.schema",
        code="invalid_json_schema",
    ),
)
