"""What OpenAI says strict mode takes, as a check that shares no line with ours."""

from collections.abc import Iterator
from typing import Any

TAKEN = {
    *["type", "description", "enum", "const", "anyOf", "$ref", "$defs", "properties"],
    *["required", "additionalProperties", "items", "minItems", "maxItems", "pattern"],
    *["format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
    "multipleOf",
}
FORMATS = {
    *["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6"],
    "uuid",
}
NUMBER_FORMATS = {"double", "int64", "uint8"}


def broken_rules(schema: dict[str, Any]) -> list[str]:
    """Every rule that a whole schema breaks, with the place."""
    root = [] if schema.get("type") == "object" else ["the root is no object"]
    return [*root, *complaints(schema, schema, "#")]


def complaints(schema: Any, root: dict[str, Any], at: str) -> Iterator[str]:
    """What is wrong at a place or below it."""
    if not isinstance(schema, dict):
        yield f"{at} is no schema"
        return
    yield from (f"{at}: {word} is not taken" for word in set(schema) - TAKEN)
    if "$ref" in schema:
        yield from reference_complaints(schema, root, at)
    elif not {"type", "anyOf"} & set(schema):
        yield f"{at}: neither a type nor a choice"
    if "object" in kinds(schema):
        yield from object_complaints(schema, at)
    if "array" in kinds(schema) and "items" not in schema:
        yield f"{at}: items are missing"
    is_number = set(kinds(schema)) <= {"integer", "number", "null"}
    formats = FORMATS | NUMBER_FORMATS if is_number else FORMATS
    if schema.get("format", "uuid") not in formats or "(?=" in str(schema):
        yield f"{at}: a format or a pattern that is not taken"
    for name, inner in inner_schemas(schema):
        yield from complaints(inner, root, f"{at}/{name}")


def reference_complaints(
    schema: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    """A reference is alone and leads somewhere."""
    if len(schema) > 1:
        yield f"{at}: keywords beside a reference"
    name = schema["$ref"].removeprefix("#/$defs/")
    if name != "#" and name not in root.get("$defs", {}):
        yield f"{at}: {name} is not defined"


def object_complaints(schema: dict[str, Any], at: str) -> Iterator[str]:
    """An object is closed and requires all."""
    if schema.get("additionalProperties") is not False:
        yield f"{at}: not closed"
    if schema.get("required") != list(schema.get("properties", [None])):
        yield f"{at}: not all properties are required"


def kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def inner_schemas(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas right below one, each with its name."""
    for word in ("properties", "$defs"):
        for name, inner in schema.get(word, {}).items():
            yield f"{word}/{name}", inner
    for index, inner in enumerate(schema.get("anyOf", [])):
        yield f"anyOf/{index}", inner
    if "items" in schema:
        yield "items", schema["items"]
