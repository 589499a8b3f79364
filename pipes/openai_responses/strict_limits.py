"""How large a schema strict mode takes."""

from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses.subschemas import Schema

MOST_PROPERTIES = 5_000
MOST_VALUES = 1_000
MOST_CHARACTERS = 120_000  # of names, values and constants together
LONG_LIST, MOST_CHARACTERS_OF_A_LONG_LIST = 250, 15_000
DEEPEST = 10
"""Levels of objects and arrays. Whether arrays count is not said: a schema refused is
an error for the whole request, one sent without the strict mode costs little."""


def is_within_limits(schema: Schema) -> bool:
    """Say whether OpenAI takes a schema in strict mode, as far as size goes."""
    places = list(_places(schema))
    names = [name for place in places for name in place.get("properties", ())]
    names += schema.get("$defs", ())
    lists = [place["enum"] for place in places if "enum" in place]
    values = [value for one in lists for value in one]
    constants = [place["const"] for place in places if "const" in place]
    return (
        len(names) <= MOST_PROPERTIES
        and len(values) <= MOST_VALUES
        and _characters([*names, *values, *constants]) <= MOST_CHARACTERS
        and all(_is_short(one) for one in lists)
        and _depth(schema, schema, {}) <= DEEPEST
    )


def _is_short(values: list[Any]) -> bool:
    return (
        len(values) <= LONG_LIST
        or _characters(values) <= MOST_CHARACTERS_OF_A_LONG_LIST
    )


def _characters(values: list[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _places(schema: Schema) -> Iterator[Schema]:
    yield schema
    for inner in (*_inner(schema), *schema.get("$defs", {}).values()):
        yield from _places(inner)


def _inner(schema: Schema) -> list[Schema]:
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", ())]


def _depth(schema: Schema, root: Schema, known: dict[str, int]) -> int:
    """Return the levels in a schema; `known` are those of references met."""
    reference = schema.get("$ref")
    if reference == "#":
        return 0
    if isinstance(reference, str):
        if reference not in known:
            known[reference] = 0  # a circle adds no level of its own
            target: Mapping[str, Any] = root["$defs"][reference.rpartition("/")[2]]
            known[reference] = _depth(target, root, known)
        return known[reference]
    inner = max((_depth(one, root, known) for one in _inner(schema)), default=0)
    return inner + ("properties" in schema or "items" in schema)
