"""JSON Schemas of tools in the API's two forms, open and strict.

Servers send schemas of every draft and of OpenAPI, and some that are none. One that the
API refuses makes every message of a chat fail, so they are mended: the result is a
schema of draft 2020-12 whose root is an object with `properties`. What the API
does not know is left out; the description says what that was if it helps the model.

In strict mode every object is closed and every property required (optional ones become
nullable, see `check_arguments`). The limits on size are those of OpenAI's guide to
structured outputs, "Supported schemas".
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    JsonTooLarge,
    as_list,
    as_mapping,
    json_size,
)

_Schema = dict[str, Any]

_LONGEST_REFERENCE = 300
_DEFINED = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
_FORBIDDEN_IN_REFERENCE = re.compile(r"[^\w-]")


def referred_schema(root: JsonObject, node: JsonObject) -> Any:
    """Return the part of `root` that the `$ref` of `node` names, or None.

    It is a pointer; `#` is the root itself.
    """
    pointer = str(node.get("$ref"))
    first, *steps = pointer.split("/")
    found: Any = root
    if first != "#" or len(pointer) > _LONGEST_REFERENCE:
        return None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            is_there = name.isdecimal() and int(name) < len(found)
            found = found[int(name)] if is_there else None
        else:
            found = as_mapping(found).get(name)
    return found


def joined_schemas(
    node: Any, parts_of: Callable[[JsonObject], list[Any]]
) -> list[JsonObject]:
    """Return a schema and all that `parts_of` joins to it, in their order.

    Each comes once, because references may lead to the same part many times.
    """
    found: dict[int, JsonObject] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in found:
            found[id(part)] = part
            ahead += reversed(parts_of(part))
    return list(found.values())


_OTHER_TYPES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **{"bool": "boolean", "dict": "object", "list": "array", "none": "null"},
}
"""Words of other languages; Gemini's are those of JSON Schema in capitals."""

_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_ALL_TYPES = {*_JSON_TYPES.values(), "object", "array"}


def known_types(stated: object) -> list[str]:
    """Return the types of JSON that a `type` means."""
    words = [word for word in (stated, *as_list(stated)) if isinstance(word, str)]
    kinds = [_OTHER_TYPES.get(word.lower(), word.lower()) for word in words]
    return [kind for kind in dict.fromkeys(kinds) if kind in _ALL_TYPES]


_NOT_PLAIN = re.compile(r"\(\?(?!:)|\\[1-9AZ]|\[\^?\[|--|&&|~~|\|\||[*+?}]\+")
"""Lookaround, flags, back references, sets in sets and the like: readers differ."""
_LONGEST_PATTERN = 500


def _is_plain_pattern(pattern: object) -> bool:
    """Say whether a pattern can be sent: Python and others read it alike."""
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        return False
    with suppress(re.error, OverflowError, RecursionError):
        return not _NOT_PLAIN.search(pattern) and bool(re.compile(pattern))
    return False


def _is_json(value: object) -> bool:
    with suppress(TypeError, ValueError):
        return bool(json.dumps(value, allow_nan=False))
    return False


def is_json_number(value: Any) -> bool:
    """Say whether a value is a number that JSON has."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and _is_json(value)


_SCHEMAS = ("items", "additionalProperties", "not", "propertyNames", "contains")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties")

_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_SCHEMAS, lambda _: True),
    **dict.fromkeys(
        (*_SCHEMA_LISTS, "enum"), lambda v: isinstance(v, list) and v != []
    ),
    **dict.fromkeys(_SCHEMA_MAPS, lambda value: isinstance(value, Mapping)),
    **dict.fromkeys(
        ("description", "title", "format"), lambda value: isinstance(value, str)
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_json_number
    ),
    "multipleOf": lambda value: is_json_number(value) and value > 0,
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "maxProperties"),
        lambda value: type(value) is int and value >= 0,
    ),
    "uniqueItems": lambda value: isinstance(value, bool),
    "pattern": _is_plain_pattern,
    **dict.fromkeys(("const", "default"), _is_json),
    "required": lambda value: isinstance(value, list),
    "type": lambda value: bool(known_types(value)),
}
"""The keywords that are sent, with what their values must be."""

_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))

_NOT_SIMPLE = {
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
    *("dependencies", "patternProperties", "propertyNames", "prefixItems", "contains"),
    *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
    *("$ref", "allOf"),
}
"""Keywords that strict mode does not have, or that would need more work there."""
_SHAPING = {"type", "properties", "items", "required", "enum"}
"""Keywords without which a schema is a guess."""
_NOT_AT_THE_ROOT = ("allOf", "anyOf", "oneOf", "enum", "const", "not", "$ref")

_LONGEST_NOTE = 200


def function_parameters(
    schema: JsonObject, strict_left: JsonBudget | None = None
) -> tuple[_Schema, bool]:
    """Return a function's parameters as the API takes them, and whether for strict mode.

    A choice at the root becomes one object with all properties of its options. With
    `strict_left`, the work that may be done, simple ones get their strict form.

    Simple are single values, enums, arrays, objects whose properties are all listed,
    and choices of these. Whatever else narrows values down (references, `allOf`, `not`,
    conditions) is not simple; nor is an open object, a choice at the root, or anything
    that had to be guessed. The strict form allows only what `schema` allows, except
    nulls of optional properties and what violates keywords that strict mode does not
    have (`minLength`).
    """
    mended = _MendedSchema(schema)
    if strict_left and mended.is_simple:
        with suppress(*ODD_SCHEMA):
            strict_left.spend(json_size(mended.root, _LARGEST_STRICT))
            return _strict(mended.root, 1), True
    return mended.root, False


class _MendedSchema:
    """A schema of others as the API takes it; `is_simple`: see `function_parameters`."""

    def __init__(self, schema: JsonObject) -> None:
        whole = {key: schema[key] for key in schema if key not in _NOT_AT_THE_ROOT}
        whole |= {"type": "object", "properties": _all_properties(schema)}
        self.is_simple = not schema.keys() & {*_NOT_AT_THE_ROOT}
        self.is_simple = self.is_simple and schema.get("type", "object") == "object"
        self._referring: list[_Schema] = []
        self.root = self._object({**whole, "nullable": False})
        self._mend_references()

    def _mend_references(self) -> None:
        """Let each reference name a definition at the root, as the API demands it."""
        left, defined = JsonBudget(LARGEST_SCHEMA), _Schema()
        for node in self._referring:
            target, pointer = referred_schema(self.root, node), node.pop("$ref")
            if _DEFINED.fullmatch(pointer) and isinstance(target, dict | bool):
                node["$ref"] = pointer
            elif isinstance(target, dict):
                name = _FORBIDDEN_IN_REFERENCE.sub(".", pointer[2:])
                with suppress(JsonTooLarge):
                    left.spend(json_size(target, left.left))
                    defined[name] = target
                    node["$ref"] = f"#/$defs/{name}"
        if defined:
            self.root["$defs"] = {**self.root.get("$defs", {}), **defined}

    def _mend(self, node: Any) -> Any:
        if isinstance(node, list) and node:  # until draft 2019-09, of `items`
            return {"anyOf": list(map(self._mend, node))}
        if isinstance(node, Mapping):
            return self._object(node)
        return node if isinstance(node, bool) else {}

    def _object(self, node: JsonObject) -> _Schema:
        self.is_simple = self.is_simple and not node.keys() & _NOT_SIMPLE
        made = {
            key: self._value(key, value)
            for key, value in node.items()
            if key in _VALUES and _VALUES[key](value)
        }
        self.is_simple = self.is_simple and not (node.keys() & _SHAPING) - made.keys()
        _mend_types(made, node)
        _mend_required(made, node)
        for bound, limit in _BOUNDS:
            if node.get(bound) is True and limit in made:  # draft 4
                made[bound] = made.pop(limit)
        if isinstance(node.get("$ref"), str):
            made["$ref"] = node["$ref"]
            self._referring.append(made)
        elif node.get("nullable") is True:  # OpenAPI 3.0
            return _make_nullable(made)
        return made

    def _value(self, key: str, value: Any) -> Any:
        if key in _SCHEMAS:
            return self._mend(value)
        if key in _SCHEMA_LISTS:
            return list(map(self._mend, value))
        if key not in _SCHEMA_MAPS:
            return value
        is_pattern = key == "patternProperties"
        names = filter(_is_plain_pattern, value) if is_pattern else value
        return {name: self._mend(value[name]) for name in names}


def _mend_types(made: _Schema, node: JsonObject) -> None:
    """Add the types and what they need; describe what had to be left out."""
    if kinds := known_types(node.get("type")):
        made["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "object" in kinds:
        made.setdefault("properties", {})
    if "array" in kinds:
        made.setdefault("items", {})
    for key in ("type", "pattern"):
        if key not in made and isinstance(lost := node.get(key), str):
            said = made.get("description", "")
            made["description"] = f"{said} ({key}: {lost[:_LONGEST_NOTE]})".lstrip()


def _mend_required(made: _Schema, node: JsonObject) -> None:
    """Name each required property once; in draft 3 a property says it itself."""
    names = [name for name in made.get("required", ()) if isinstance(name, str)]
    for name, part in as_mapping(node.get("properties")).items():
        if as_mapping(part).get("required") is True:
            names.append(name)
    if names or "required" in made:
        made["required"] = list(dict.fromkeys(names))


def _all_properties(schema: JsonObject) -> _Schema:
    """Return the properties of all options; those of the first one count."""
    parts = joined_schemas(schema, partial(schema_parts, schema, choose=list))
    found: _Schema = {}
    for part in reversed(parts):
        found.update(as_mapping(part.get("properties")))
    return found


def schema_parts(
    root: JsonObject, node: JsonObject, choose: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """Return what a part of a schema joins to itself; of a choice, what is chosen."""
    parts = [referred_schema(root, node)] if "$ref" in node else []
    for key, take in (("allOf", list), ("anyOf", choose), ("oneOf", choose)):
        parts += take(as_list(node.get(key)))
    return parts


_KEPT = {
    *("description", "enum", "multipleOf", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "pattern"),
}
"""Keywords that strict mode takes as they are."""

_STRICT_FORMATS = (
    *("date-time", "time", "date", "duration", "email"),
    *("hostname", "ipv4", "ipv6", "uuid"),
)

_DEEPEST_STRICT = 10
_LARGEST_STRICT = 10_000
"""As `json_size` counts, ten for each value. Strict mode takes 5,000 properties, 1,000
values of enums, 120,000 characters of both, and 15,000 of one long enum."""

ODD_SCHEMA = (TypeError, AttributeError, ValueError)
"""Errors of a schema that is not valid; servers send such schemas."""

LARGEST_SCHEMA = 300_000
"""The size of the largest schema that is read."""
MOST_STRICT_WORK = 300_000
"""Of one request."""


def _strict(node: Any, depth: int) -> _Schema:
    """Return the strict form; raises ValueError if there is none, or no simple one."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_STRICT:
        raise ValueError
    if "anyOf" in node or "oneOf" in node:
        return _strict_choice(node, depth)
    strict = {key: node[key] for key in node if key in _KEPT}
    if node.get("format") in _STRICT_FORMATS:
        strict["format"] = node["format"]
    if "const" in node:
        strict["enum"] = [node["const"]]
    kinds = _types_of(node, strict.get("enum"))
    strict["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "object" in kinds:
        strict |= _strict_object(node, depth)
    if "array" in kinds:
        strict["items"] = _strict(node.get("items"), depth + 1)
    return strict


def _strict_choice(node: JsonObject, depth: int) -> _Schema:
    """Return a choice; strict mode has only `anyOf`, with nothing beside it."""
    if node.keys() & {"properties", "items", "enum", "const", "required"} or (
        {"anyOf", "oneOf"} <= node.keys()
    ):
        raise ValueError
    options = node.get("anyOf") or node["oneOf"]
    return _choice_of([_strict(one, depth + 1) for one in options], node)


def _strict_object(node: JsonObject, depth: int) -> _Schema:
    properties, required = node.get("properties", {}), set(node.get("required", ()))
    closed = node.get("additionalProperties", not properties and depth > 1) is False
    if not closed or not required <= properties.keys():
        raise ValueError
    strict = {}
    for name, part in properties.items():
        made = _strict(part, depth + 1)
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
        return _choice_of([*options, *none], schema)
    listed = kinds if isinstance(kinds, list) else [kinds]
    made = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        made["enum"] = [*schema["enum"], None]
    return made


def _choice_of(options: list[Any], node: JsonObject) -> _Schema:
    """Return a choice with the description of `node`."""
    kept = node.keys() & {"description"}
    return {"anyOf": options, **{key: node[key] for key in kept}}


def _types_of(node: JsonObject, enum: object) -> list[str]:
    stated = node.get("type") or ("object" if "properties" in node else None)
    if stated is None and isinstance(enum, list):
        stated = list(dict.fromkeys(_JSON_TYPES.get(type(one), "") for one in enum))
    if not (kinds := known_types(stated)):
        raise ValueError
    return kinds
