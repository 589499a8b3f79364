"""JSON Schemas of tools in the API's two forms, strict and open.

In strict mode every object is closed and every property required (optional ones become
nullable, see `drop_optional_nulls`). A function whose schema cannot be expressed so is
sent with `strict: false`. The limits on size are those of OpenAI's guide to structured
outputs, "Supported schemas".

Without strict mode, too, the root must be an object with `properties` and no choice,
and an array must have `items`, or the whole request fails.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from openai_responses.json_input import JsonBudget, as_list, as_mapping, json_size

_DEFINITIONS = ("$defs", "definitions")


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named parts of a schema, from both places where they can be."""
    found: dict[str, Any] = {}
    for key in _DEFINITIONS:
        for name, part in as_mapping(schema.get(key)).items():
            # Two parts with one name and different content: neither can be used.
            found[name] = part if found.get(name, part) == part else None
    return found


class SchemaReferences:
    """What the references of a schema name; `#` is the schema itself."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        """Read the named parts once."""
        self.root = root
        self.named = _definitions(root)

    def target(self, node: Any) -> Any:
        """Return the part that a `$ref` names, or None."""
        if node.get("$ref") == "#":
            return self.root
        return self.named.get(_reference_name(node))


def joined_schemas(
    node: Any, parts_of: Callable[[Mapping[str, Any]], list[Any]]
) -> list[Mapping[str, Any]]:
    """Return a schema and all that `parts_of` joins to it, in their order.

    Each comes once, because references may lead to the same part many times.
    """
    found: dict[int, Mapping[str, Any]] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in found:
            found[id(part)] = part
            ahead += reversed(parts_of(part))
    return list(found.values())


def _reference_name(node: Any) -> str:
    steps = str(node.get("$ref")).split("/")
    if len(steps) == 3 and steps[0] == "#" and steps[1] in _DEFINITIONS:
        return steps[2].replace("~1", "/").replace("~0", "~")
    return ""


_MOST_PROPERTIES, _MOST_VALUES, _MOST_TEXT = 5000, 1000, 120_000
_LONG_ENUM, _LONG_ENUM_CHARACTERS = 250, 15_000


def _is_within_limits(schema: Mapping[str, Any]) -> bool:
    nodes = list(_nodes(schema))
    properties = [name for node in nodes for name in node.get("properties", ())]
    enums = [list(map(str, node.get("enum", ()))) for node in nodes]
    values = [value for enum in enums for value in enum]
    texts = [*properties, *schema.get("$defs", ()), *values]
    longest = [sum(map(len, enum)) for enum in enums if len(enum) > _LONG_ENUM]
    return (
        len(properties) <= _MOST_PROPERTIES
        and len(values) <= _MOST_VALUES
        and sum(map(len, texts)) <= _MOST_TEXT
        and max(longest, default=0) <= _LONG_ENUM_CHARACTERS
    )


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    items = [node["items"]] if "items" in node else []
    named = [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]
    for inner in (*node.get("anyOf", ()), *items, *named):
        yield from _nodes(inner)


_Schema = dict[str, Any]

_KEPT = {
    *("description", "enum", "multipleOf", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "pattern"),
}
"""Keywords that are kept unchanged."""

_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))

_STRICT_FORMATS = (
    *("date-time", "time", "date", "duration", "email"),
    *("hostname", "ipv4", "ipv6", "uuid"),
)

_NARROWING = {
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
    *("dependencies", "patternProperties", "propertyNames", "prefixItems", "contains"),
    *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
}
"""Keywords that restrict values and have no strict form."""

_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_ALL_TYPES = {*_JSON_TYPES.values(), "object", "array"}

_DEEPEST_STRICT = 10

LARGEST_SCHEMA = 300_000
"""The size of the largest schema that is read; one in strict mode has to be smaller."""
MOST_STRICT_WORK = 300_000
"""Of one request; what `allOf` brings in counts each time."""


class _NotStrict(Exception):
    """The schema has no strict form."""


def strict_schema(
    schema: Mapping[str, Any], budget: JsonBudget | None = None
) -> _Schema | None:
    """Return a function's parameters for strict mode; None if that is impossible.

    The result allows only what `schema` allows, except nulls of optional properties and
    what violates keywords that strict mode does not have (`minLength`).
    """
    try:
        return _StrictRewrite(schema, budget or JsonBudget(MOST_STRICT_WORK)).result()
    except (_NotStrict, RecursionError, TypeError, AttributeError, ValueError):
        return None  # what a server sends need not be a schema


class _StrictRewrite:
    def __init__(self, root: Mapping[str, Any], budget: JsonBudget) -> None:
        self._budget = budget
        self._pay_for(root)
        self._references = SchemaReferences(root)

    def _pay_for(self, part: object) -> None:
        self._budget.spend(json_size(part, LARGEST_SCHEMA))

    def result(self) -> _Schema:
        whole = self._references.root
        root = {k: v for k, v in whole.items() if k not in _DEFINITIONS}
        if root.keys() & {"anyOf", "oneOf", "$ref", "enum", "const"}:
            raise _NotStrict
        empty = {"type": "object", "properties": {}, "additionalProperties": False}
        strict = self._strict(empty | root, 1)
        if strict["type"] != "object":
            raise _NotStrict
        named = self._references.named
        parts = {_plain_name(name): self._strict(named[name], 1) for name in named}
        strict |= {"$defs": parts} if parts else {}
        if len(parts) < len(named) or not _is_within_limits(strict):
            raise _NotStrict
        return strict

    def _strict(self, node: Any, depth: int) -> _Schema:
        if (
            not isinstance(node, Mapping)
            or depth > _DEEPEST_STRICT
            or node.keys() & _NARROWING
        ):
            raise _NotStrict
        if node.get("nullable") is True:
            rest = {key: value for key, value in node.items() if key != "nullable"}
            return _make_nullable(self._strict(rest, depth))
        if "allOf" in node:
            return self._strict(self._merged(node), depth)
        if "$ref" in node:
            return self._reference(node)
        if "anyOf" in node or "oneOf" in node:
            return self._choice(node, depth)
        return self._plain(node, depth)

    def _reference(self, node: Mapping[str, Any]) -> _Schema:
        found = self._references.target(node)
        if found is None:
            raise _NotStrict
        if found is self._references.root:
            return {"$ref": "#"}
        return {"$ref": f"#/$defs/{_plain_name(_reference_name(node))}"}

    def _choice(self, node: Mapping[str, Any], depth: int) -> _Schema:
        """Return a choice; strict mode has only `anyOf`, with nothing beside it."""
        options = node.get("anyOf") or node.get("oneOf")
        beside = node.keys() & {"properties", "items", "enum", "const", "required"}
        beside |= {"oneOf"} if {"anyOf", "oneOf"} <= node.keys() else set()
        if not isinstance(options, list) or not options or beside:
            raise _NotStrict
        strict = [self._strict(one, depth + 1) for one in options]
        return {**_description(node), "anyOf": strict}

    def _merged(self, node: Mapping[str, Any]) -> _Schema:
        own: _Schema = {
            "properties": dict(node.get("properties") or {}),
            "required": dict.fromkeys(node.get("required") or ()),
        }
        merged = {key: own.get(key, node[key]) for key in node if key != "allOf"}
        for part in node["allOf"] if isinstance(node["allOf"], list) else [None]:
            found = self._references.target(part) if _is_reference(part) else part
            if not isinstance(found, Mapping) or "allOf" in found:
                raise _NotStrict
            self._pay_for(found)
            _combine(merged, found)
        return merged

    def _plain(self, node: Mapping[str, Any], depth: int) -> _Schema:
        strict = {key: node[key] for key in node if key in _KEPT}
        for bound, limit in _BOUNDS:
            if strict.get(bound) is True and limit in strict:  # OpenAPI 3.0
                strict[bound] = strict.pop(limit)
            elif isinstance(strict.get(bound), bool):
                del strict[bound]
        if node.get("format") in _STRICT_FORMATS:
            strict["format"] = node["format"]
        if "const" in node:
            strict["enum"] = [node["const"]]
        kinds = _types_of(node, strict.get("enum"))
        strict["type"] = kinds[0] if len(kinds) == 1 else kinds
        if "object" in kinds:
            strict |= self._object(node, depth)
        if "array" in kinds:
            strict["items"] = self._strict(node.get("items"), depth + 1)
        return strict

    def _object(self, node: Mapping[str, Any], depth: int) -> _Schema:
        properties, required = node.get("properties") or {}, node.get("required") or ()
        is_open = node.get("additionalProperties", not properties) is not False
        if is_open or not isinstance(properties, Mapping):
            raise _NotStrict
        required = set(required)
        if not required <= properties.keys():
            raise _NotStrict
        strict = {}
        for name, part in properties.items():
            made = self._strict(part, depth + 1)
            strict[name] = made if name in required else _make_nullable(made)
        return {
            "properties": strict,
            "required": list(strict),
            "additionalProperties": False,
        }


def _make_nullable(schema: _Schema) -> _Schema:
    kinds = schema.get("type")
    if kinds is None or kinds in ("object", "array"):
        rest = {key: value for key, value in schema.items() if key != "description"}
        options = rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]
        none = [] if {"type": "null"} in options else [{"type": "null"}]
        return {**_description(schema), "anyOf": [*options, *none]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    made = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        made["enum"] = [*schema["enum"], None]
    return made


def _description(node: Mapping[str, Any]) -> _Schema:
    return {key: node[key] for key in ("description",) if key in node}


def _plain_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _types_of(node: Mapping[str, Any], enum: object) -> list[str]:
    stated = node.get("type") or ("object" if "properties" in node else None)
    if stated is None and isinstance(enum, list):
        stated = list(dict.fromkeys(_JSON_TYPES.get(type(one), "") for one in enum))
    kinds = [stated] if isinstance(stated, str) else stated
    if not isinstance(kinds, list) or not kinds or not set(kinds) <= _ALL_TYPES:
        raise _NotStrict
    return kinds


_NOTES = ("description", "title")


def _is_reference(part: object) -> bool:
    return isinstance(part, Mapping) and part.keys() == {"$ref"}


def _combine(merged: _Schema, part: Mapping[str, Any]) -> None:
    """Add a part to what is merged, whose `properties` and `required` are its own."""
    for key, value in part.items():
        if key == "properties" and isinstance(value, Mapping):
            mine = merged.setdefault(key, {})
            if any(name in mine and mine[name] != value[name] for name in value):
                raise _NotStrict
            mine.update(value)
        elif key == "required":
            merged.setdefault(key, {}).update(dict.fromkeys(value))
        elif key in merged and merged[key] != value and key not in _NOTES:
            raise _NotStrict
        else:
            merged.setdefault(key, value)


_NOT_AT_THE_ROOT = ("allOf", "anyOf", "oneOf", "enum", "const", "not", "$ref")


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's parameters in a form that the API never refuses.

    A choice at the root becomes one object with all properties of its options.
    """
    root = {key: schema[key] for key in schema if key not in _NOT_AT_THE_ROOT}
    root |= {"type": "object", "properties": _all_properties(schema)}
    if "required" in schema:
        names = as_list(schema["required"])
        root["required"] = [name for name in names if isinstance(name, str)]
    return dict(_with_items(root))


def _all_properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of all options; those of the first one count."""
    parts = joined_schemas(schema, partial(_all_parts, SchemaReferences(schema)))
    found: dict[str, Any] = {}
    for part in reversed(parts):
        found.update(as_mapping(part.get("properties")))
    return found


def _all_parts(references: SchemaReferences, node: Mapping[str, Any]) -> list[Any]:
    parts = [references.target(node)] if "$ref" in node else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += as_list(node.get(key))
    return parts


def _with_items(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_items(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    whole = {key: _with_items(value) for key, value in node.items()}
    kind = node.get("type")
    if kind == "array" or "array" in as_list(kind):
        whole.setdefault("items", {})
    return whole
