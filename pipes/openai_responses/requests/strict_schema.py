"""The strict form of a function's parameters.

In strict mode the API makes a model keep to the schema. Every object is closed and
every property required; optional ones become nullable, and `check_arguments` takes the
nulls away again. The limits are those of OpenAI's guide "Structured outputs",
"Supported schemas".
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_JSON_TYPES = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)


def json_types(stated: object) -> list[str]:
    """Return the types that a `type` names; none if it names anything else, too."""
    words = stated if isinstance(stated, list) else [stated]
    for word in words:
        if not isinstance(word, str) or word not in _JSON_TYPES:
            return []
    return list(dict.fromkeys(words))


class NoStrictForm(ValueError):
    """Strict mode cannot express a schema, or only with more work."""


_KEPT_IN_STRICT_MODE = frozenset(
    {
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
    }
)
"""Keywords that strict mode takes as they are."""

_SIMPLE_KEYWORDS = _KEPT_IN_STRICT_MODE | {
    # These get another form.
    "additionalProperties",
    "anyOf",
    "const",
    "format",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
    # These go: the guide does not list them, and they only describe values or limit
    # them. `default` and `minLength` are accepted all the same (recorded); of the others
    # nobody says it. A schema that refers to a definition has no strict form.
    "$comment",
    "$defs",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "examples",
    "maxLength",
    "maxProperties",
    "minLength",
    "minProperties",
    "readOnly",
    "title",
    "uniqueItems",
    "writeOnly",
}

_STRICT_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uuid",
    }
)
_STRICT_NUMBER_FORMATS = frozenset({"double", "int64", "uint8"})
"""Formats that the guide does not list, but OpenAI took with numbers (recorded)."""
_MAX_STRICT_DEPTH = 10
"""Levels of nesting (guide "Structured outputs")."""
_ROOT_DEPTH = 1


def strict_schema_form(root: Schema) -> Schema:
    """Return the strict form of a valid schema; raises NoStrictForm if it has none.

    Simple are single values, enums, arrays, objects whose properties are all listed,
    and choices of these. Whatever else narrows values down (references, `allOf`, `not`,
    conditions) is not simple, and neither is an open object. The strict form allows
    only what the schema allows, except nulls of optional properties and what violates
    keywords that strict mode does not have (`minLength`).
    """
    return _strict_form(root, _ROOT_DEPTH)


def _strict_form(node: Any, depth: int) -> Schema:
    if not isinstance(node, dict) or depth > _MAX_STRICT_DEPTH:
        raise NoStrictForm
    if not node.keys() <= _SIMPLE_KEYWORDS:
        raise NoStrictForm
    # Of choices strict mode has only `anyOf`, with nothing next to it.
    if "anyOf" in node or "oneOf" in node:
        if node.keys() & {"properties", "items", "enum", "const", "required"}:
            raise NoStrictForm
        if "anyOf" in node and "oneOf" in node:
            raise NoStrictForm
        options = node["anyOf"] if "anyOf" in node else node["oneOf"]
        return _choice_of([_strict_form(option, depth + 1) for option in options], node)
    strict = {key: node[key] for key in node if key in _KEPT_IN_STRICT_MODE}
    # The guide has no `const`; an enum of one value is the same.
    if "const" in node:
        strict["enum"] = [node["const"]]
    types = _types_of(node, strict.get("enum"))
    strict["type"] = types[0] if len(types) == 1 else types
    # Some other formats, `uri` for one, make the API refuse the whole request.
    known = _STRICT_FORMATS
    if set(types) <= {"integer", "null", "number"}:
        known = _STRICT_NUMBER_FORMATS
    if node.get("format") in known:
        strict["format"] = node["format"]
    if "object" in types:
        strict |= _strict_object(node, depth)
    if "array" in types:
        strict["items"] = _strict_form(node.get("items"), depth + 1)
    return strict


def _strict_object(node: Schema, depth: int) -> Schema:
    properties = node.get("properties", {})
    required = set(node.get("required", ()))
    # It may have only the properties that it lists. Servers seldom say so; an object that
    # lists none, except a function's own parameters, is meant as a map.
    is_closed = depth == _ROOT_DEPTH or bool(properties)
    if "additionalProperties" in node:
        is_closed = node["additionalProperties"] is False
    if not is_closed or not required <= properties.keys():
        raise NoStrictForm
    # Strict mode knows no optional property: left to itself, the API would make each a
    # required one (recorded, 219 of 219), and the model would invent values.
    forms: Schema = {}
    for name, part in properties.items():
        form = _strict_form(part, depth + 1)
        forms[name] = form if name in required else _make_nullable(form)
    return {
        "properties": forms,
        "required": list(forms),
        "additionalProperties": False,
    }


def _make_nullable(form: Schema) -> Schema:
    """Return a form that also allows null, which stands for a value left out."""
    types = form.get("type")
    if types is None or types in ("object", "array"):
        undescribed = {key: form[key] for key in form if key != "description"}
        options = [undescribed]
        if undescribed.keys() == {"anyOf"}:
            options = undescribed["anyOf"]
        null = {"type": "null"}
        return _choice_of(options if null in options else [*options, null], form)
    names = types if isinstance(types, list) else [types]
    nullable = {**form, "type": names}
    if "null" not in names:
        nullable["type"] = [*names, "null"]
    # A type allows only what its enum lists, too.
    if "enum" in form and None not in form["enum"]:
        nullable["enum"] = [*form["enum"], None]
    return nullable


def _choice_of(options: list[Any], node: Schema) -> Schema:
    """Return a choice with the description of `node`."""
    choice: Schema = {"anyOf": options}
    if "description" in node:
        choice["description"] = node["description"]
    return choice


def _types_of(node: Schema, enum: list[Any] | None) -> list[str]:
    """Return the types that a node states, or those of the values that it lists."""
    if "type" in node:
        return json_types(node["type"])
    if "properties" in node:
        return ["object"]
    if enum is None:
        raise NoStrictForm
    types = [_TYPES_OF_SCALARS.get(type(value), "") for value in enum]
    if "" in types:
        raise NoStrictForm
    return list(dict.fromkeys(types))


_TYPES_OF_SCALARS: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
}
