"""Schemas of tools and values for them, made by Hypothesis."""

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

NAMES = st.sampled_from(["a", "b", "c", "kind", "a/b", "x y"])
DEFINED = ("Leaf", "Node", "Other thing")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(-2, 2), st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
KINDS = ["string", "number", "integer", "boolean", "null"]
WORDS = st.sampled_from(
    [
        *["type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf"],
        *["allOf", "$ref", "$defs", "additionalProperties", "nullable", "default"],
        *["minimum", "exclusiveMinimum", "pattern", "format", "description", "not"],
        *["prefixItems", "minItems", "unevaluatedProperties", "definitions", "title"],
    ]
)
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/x", "other.json", "#a", ""]
)
TYPES = st.sampled_from([*KINDS, "object", "array", "file", 3, [], ["object", "null"]])


def garbage() -> st.SearchStrategy[Schema]:
    """Return anything that somebody might call a schema."""
    nonsense = st.recursive(
        VALUES | REFERENCES | TYPES,
        lambda inner: st.dictionaries(WORDS | NAMES, inner, max_size=4)
        | st.lists(inner, max_size=3),
        max_leaves=25,
    )
    special = {"$ref": REFERENCES, "type": TYPES}
    keywords = st.fixed_dictionaries(
        {}, optional={**special, "properties": st.dictionaries(NAMES, nonsense)}
    )
    return st.builds(
        lambda first, second: {**first, **second},
        st.dictionaries(WORDS, nonsense, max_size=5),
        keywords,
    )


def scalars() -> st.SearchStrategy[Schema]:
    """Return schemas of values that are no object or array."""
    kind_names = st.sampled_from(KINDS)
    return st.one_of(
        st.builds(lambda kind: {"type": kind}, kind_names),
        st.builds(
            lambda kinds: {"type": kinds}, st.lists(kind_names, min_size=1, unique=True)
        ),
        st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1)),
        st.builds(lambda value: {"const": value}, SCALARS),
        st.builds(
            lambda values, text: {
                "type": "string",
                "enum": values,
                "description": text,
            },
            st.lists(st.text(max_size=2), min_size=1),
            st.text(max_size=4),
        ),
    )


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    return st.builds(_object, properties, st.sets(NAMES, max_size=3))


def _object(properties: dict[str, Schema], wanted: set[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    required = sorted(wanted & properties.keys())
    return {**schema, "required": required} if required else schema


def variants(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Return `oneOf`s whose variants a constant tells apart."""
    named = st.dictionaries(st.sampled_from("pqr"), objects(inner), min_size=1)
    return st.builds(
        lambda them: {
            "oneOf": [_variant(name, schema) for name, schema in them.items()]
        },
        named,
    )


def _variant(name: str, schema: Schema) -> Schema:
    properties = {**schema["properties"], "kind": {"const": name}}
    required = sorted({*schema.get("required", []), "kind"})
    return {**schema, "properties": properties, "required": required}


def schemas() -> st.SearchStrategy[Schema]:
    """Return schemas of the kind that tools have, with unused definitions.

    A schema with a reference has no strict form, whatever else it says.
    """
    plain = scalars()
    inner = nesting(plain) | plain
    deep = nesting(inner) | plain
    defined = st.dictionaries(st.sampled_from(DEFINED), objects(plain), max_size=1)
    return st.builds(lambda root, defs: {**root, "$defs": defs}, objects(deep), defined)


def nesting(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Return schemas that hold others."""
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        objects(inner),
        variants(inner),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda variants: {"anyOf": variants}, several),
    )


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """Return a value that a strict schema allows, as a model would give it."""
    if "anyOf" in schema:
        return draw(values(_simpler(draw, schema["anyOf"], depth), depth + 1))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema["type"] == "object":
        members = schema["properties"].items()
        return {name: draw(values(member, depth + 1)) for name, member in members}
    if schema["type"] == "array":
        several = range(draw(st.integers(0, max(0, 2 - depth // 3))))
        return [draw(values(schema["items"], depth + 1)) for _ in several]
    return draw(_scalar(schema["type"]))


def _simpler(draw: st.DrawFn, several: list[Schema], depth: int) -> Schema:
    nothing = {"type": "null"}
    if depth > 2 and nothing in several:
        return nothing
    return draw(st.sampled_from(several))


def _scalar(kind: str | list[str]) -> st.SearchStrategy[Any]:
    kinds = kind if isinstance(kind, list) else [kind]
    return st.sampled_from(kinds).flatmap(_OF_KIND.__getitem__)


_OF_KIND: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=3),
    "number": st.floats(-9, 9) | st.integers(-9, 9),
    "integer": st.integers(-9, 9),
    "boolean": st.booleans(),
    "null": st.none(),
}
