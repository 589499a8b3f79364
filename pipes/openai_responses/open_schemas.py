"""A JSON Schema as the API takes it without strict mode.

There too the root of a function's parameters has to be an object with `properties`
that is no choice, and an array has to say what it holds. One tool that breaks this
would be an error for the whole request.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.schema_parts import referred

_NOT_AT_THE_ROOT = ("allOf", "anyOf", "oneOf", "enum", "const", "not", "$ref")
_DEEPEST_OPEN = 30


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's parameters in a form that is never refused.

    What a choice at the root offers becomes one object with all its properties.
    """
    kept = {key: schema[key] for key in schema if key not in _NOT_AT_THE_ROOT}
    properties = _properties(schema, schema, 0)
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    root = {**kept, "type": "object", "properties": properties}
    if "required" in schema:
        root["required"] = [name for name in names if isinstance(name, str)]
    return dict(_with_items(root, 0))


def _properties(node: object, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return all properties that an object may have, whatever it is made of."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_OPEN:
        return {}
    found: dict[str, Any] = {}
    parts = [referred(node, root)] if "$ref" in node else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += node[key] if isinstance(node.get(key), list) else []
    for part in parts:
        found = {**_properties(part, root, depth + 1), **found}
    own = node.get("properties")
    return {**found, **own} if isinstance(own, Mapping) else found


def _with_items(node: Any, depth: int) -> Any:
    """Return a schema whose arrays all say what they hold."""
    if depth > _DEEPEST_OPEN:
        return node
    if isinstance(node, list):
        return [_with_items(one, depth + 1) for one in node]
    if not isinstance(node, Mapping):
        return node
    whole = {key: _with_items(value, depth + 1) for key, value in node.items()}
    kind = node.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**whole, "items": {}} if is_array and "items" not in whole else whole
