"""Checks the JSON Schemas of functions and of `text.format`.

OpenAI holds them against the metaschema of draft 2020-12 with Python's `jsonschema`,
the format of patterns included, as the words of its refusals show
(docs/reference/responses-api.md, "Schemas").

Source: reports, listed there; of formats and choices the guide "Structured outputs".
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from simulator.refusals import refuse

Context = tuple[str, ...]
SchemaProblem = str | None
METASCHEMA = Draft202012Validator(
    Draft202012Validator.META_SCHEMA,
    format_checker=Draft202012Validator.FORMAT_CHECKER,
)
MAX_DEPTH = 10
MAX_PROPERTIES = 5000
MAX_ENUM_VALUES = 1000
MAX_NAME_CHARACTERS = 120_000
MAX_ENUM_CHARACTERS = 15_000
LONG_ENUM = 250
"""The characters of an enum are limited if it has more values than this."""
# `default` and `minLength` are accepted: recorded, in exchanges that do not lie next to
# the project. docs/reference/responses-api.md, "Function tools".
_REFUSED = """
allOf oneOf not if then else patternProperties dependentRequired dependentSchemas
propertyNames maxLength uniqueItems contains minProperties maxProperties
unevaluatedProperties unevaluatedItems prefixItems
"""
STRICT_REFUSED = tuple(_REFUSED.split())
_FORMATS = """
date-time time date duration email hostname ipv4 ipv6 uuid
"""
STRICT_FORMATS = tuple(_FORMATS.split())
STRICT_NUMBER_FORMATS = ("double", "int64", "uint8")
"""Formats of numbers that the guide does not list: recorded, `double` only read."""
NUMBER_TYPES = {"integer", "null", "number"}
DEFINITION = re.compile(r"#/(?P<key>\$defs|definitions)/(?P<name>[^/]+)")
LOOKAROUND = re.compile(r"\(\?<?[=!]")


def check_schemas(tools: Sequence[Mapping[str, Any]], path: str = "tools") -> None:
    """Raise the refusal for the first function with an invalid schema."""
    for index, tool in enumerate(tools):
        if tool["type"] != "function" or tool.get("parameters") is None:
            continue
        if tool["parameters"] == {} and tool.get("strict") is False:
            continue  # recorded: it becomes an empty object
        message = find_problem(tool["parameters"], tool.get("strict") is True)
        if message:
            raise refuse(
                "function_schema",
                name=tool["name"],
                message=message,
                path=path,
                index=index,
            )


def check_format(format: Mapping[str, Any], path: str) -> None:
    """Raise the refusal for an invalid schema of a `json_schema`."""
    message = find_problem(format["schema"], bool(format.get("strict")))
    if message:
        raise refuse("format_schema", name=format["name"], message=message, path=path)


def find_problem(schema: Mapping[str, Any], strict: bool) -> SchemaProblem:
    return _find_problem(json.dumps(schema), strict)


@lru_cache(maxsize=4096)
def _find_problem(text: str, strict: bool) -> SchemaProblem:
    schema = json.loads(text)
    kind = schema.get("type")
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if "properties" not in schema:
        return "In context=(), object schema missing properties."
    error = next(METASCHEMA.iter_errors(schema), None)
    if error:
        return f"{error.message}."
    problem = _find_inner_problem(schema, (), strict)
    if problem:
        return problem
    for _, inner in _walk(schema, "$"):
        target = inner.get("$ref")
        if isinstance(target, str) and not _leads_somewhere(schema, target):
            return "reference can only point to definitions defined at the top level."
    return _check_size(schema) if strict else None


def find_lookaround(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the place of the first pattern that looks around; or nothing."""
    for tool in tools:
        if isinstance(tool.get("parameters"), dict):
            for schema_path, schema in _walk(tool["parameters"], "$"):
                pattern = schema.get("pattern")
                if isinstance(pattern, str) and LOOKAROUND.search(pattern):
                    return f"{schema_path}.pattern"
    return ""


def _find_inner_problem(schema: Any, context: Context, strict: bool) -> SchemaProblem:
    """Return the problem of a schema or of one inside, None without one."""
    if not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and not {"items", "prefixItems"} & set(schema):
        return f"In context={context}, array schema missing items."
    message = _check_strictness(schema, context) if strict else None
    if message is not None:
        return message
    for name, inner in _inner_schemas(schema):
        message = _find_inner_problem(inner, (*context, *name), strict)
        if message is not None:
            return message
    return None


def _leads_somewhere(schema: Mapping[str, Any], target: str) -> bool:
    match = DEFINITION.fullmatch(target)
    if match is None:
        return target == "#"
    name = match["name"].replace("~1", "/").replace("~0", "~")
    return name in schema.get(match["key"], {})


def _walk(schema: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(schema, dict):
        yield path, schema
        for name, inner in _inner_schemas(schema):
            yield from _walk(inner, ".".join((path, *name)))


def _inner_schemas(schema: Mapping[str, Any]) -> Iterator[tuple[Context, Any]]:
    for word in ("properties", "$defs", "definitions", "patternProperties"):
        for name, inner in schema.get(word, {}).items():
            yield (word, name), inner
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for index, inner in enumerate(schema.get(word, [])):
            yield (word, str(index)), inner
    for word in ("items", "additionalProperties", "not", "if", "then", "else"):
        if word in schema:
            yield (word,), schema[word]


def _check_strictness(schema: Mapping[str, Any], context: Context) -> SchemaProblem:
    for word in schema:
        if word in STRICT_REFUSED:
            return f"In context={context}, '{word}' is not permitted."
    if "format" in schema and not _may_have_format(schema):
        return f"In context={context}, 'format' is not permitted."
    if schema.get("type") != "object":
        return None
    if schema.get("additionalProperties") is not False:
        return (
            f"In context={context}, 'additionalProperties' is required to be supplied "
            "and to be false."
        )
    named = schema.get("required", [])
    missing = [name for name in schema.get("properties", {}) if name not in named]
    if missing:
        return (
            f"In context={context}, 'required' is required to be supplied and to be an "
            f"array including every key in properties. Missing '{missing[0]}'."
        )
    return None


def _may_have_format(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    kinds = set(kind) if isinstance(kind, list) else {kind}
    if schema["format"] in STRICT_NUMBER_FORMATS:
        return kinds <= NUMBER_TYPES
    return schema["format"] in STRICT_FORMATS


def _check_size(schema: Mapping[str, Any]) -> SchemaProblem:
    """Hold a strict schema against the limits that the guide states."""
    schemas = [inner for _, inner in _walk(schema, "$")]
    depth = _measure_depth(schema)
    if depth > MAX_DEPTH:
        return f"{depth} levels of nesting exceeds limit of {MAX_DEPTH}."
    enums = [inner["enum"] for inner in schemas if "enum" in inner]
    long_enums = [
        sum(len(value) for value in values if isinstance(value, str))
        for values in enums
        if len(values) > LONG_ENUM
    ]
    names = [name for inner in schemas for name in inner.get("properties", {})]
    texts = [value for values in enums for value in values if isinstance(value, str)]
    counts = {
        "object properties": (MAX_PROPERTIES, len(names)),
        "enum values": (MAX_ENUM_VALUES, sum(map(len, enums))),
        "characters": (MAX_NAME_CHARACTERS, sum(map(len, names + texts))),
        "enum characters": (MAX_ENUM_CHARACTERS, max(long_enums, default=0)),
    }
    for what, (limit, count) in counts.items():
        if count > limit:
            return (
                f"Expected at most {limit} {what} in total within a single schema when "
                f"using structured outputs, but received {count}. Consider reducing the "
                f"number of {what.split()[0]}s, or use 'strict: false' to opt out of "
                "structured outputs."
            )
    return None


def _measure_depth(schema: Any) -> int:
    """Return how many objects and arrays are within each other."""
    if not isinstance(schema, dict):
        return 0
    inner_depths = [_measure_depth(inner) for _, inner in _inner_schemas(schema)]
    depth = max(inner_depths, default=0)
    if "properties" in schema or "items" in schema:
        depth += 1
    return depth
