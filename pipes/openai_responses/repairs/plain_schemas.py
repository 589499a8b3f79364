"""The schema of a function in the form that every server can read.

llama.cpp and vLLM make a grammar of all schemas of a request. One that they cannot read,
a pattern, a choice, a value of any type, costs the whole request, and they do not say
whose it is (ggml-org/llama.cpp 19716). The function checks its arguments itself.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    resolve_reference,
)

_PLAIN_TYPES = ("object", "array", "string", "number", "integer", "boolean")
_SCHEMA_CHOICES = ("anyOf", "oneOf", "allOf")
_MOST_LEVELS = 10
_MAX_PARTS = 1000
"""Of one schema. A schema of a hundred bytes can refer to itself without end."""
_MAX_STEPS = 5
"""From a reference or a choice to the next."""
_MAX_OPTIONS = 10
_MOST_WORDS = 200


def plain_schema(schema: object) -> dict[str, Any]:
    """Return an object's schema with types, names, descriptions and words alone."""
    root = as_mapping(schema)
    plain = _Plainer(root).plain(root, 0)
    if plain["type"] == "object":
        return plain
    return {"type": "object", "properties": {}}


class _Plainer:
    """Makes the parts of one schema plain, as long as it has few."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MAX_PARTS

    def plain(self, value: object, depth: int) -> dict[str, Any]:
        """Return a part with its type; a text stands for any."""
        self._left -= 1
        if self._left < 0:
            return {"type": "string"}
        part = as_mapping(value)
        meant = self._meant(part)
        kind = _type_of(meant)
        described = as_text(part.get("description") or meant.get("description"))
        plain: dict[str, Any] = {"type": kind}
        if described:
            plain["description"] = described
        words = as_list(meant.get("enum"))[:_MOST_WORDS] or [meant.get("const")]
        if kind == "string" and all(isinstance(word, str) for word in words):
            plain["enum"] = words
        is_last = depth >= _MOST_LEVELS
        if kind == "object":
            named = {} if is_last else as_mapping(meant.get("properties"))
            properties = {name: self.plain(named[name], depth + 1) for name in named}
            plain["properties"] = properties
            required = as_list(meant.get("required"))[:_MOST_WORDS]
            texts = {name for name in required if isinstance(name, str)}
            demanded = [name for name in properties if name in texts]
            if demanded:
                plain["required"] = demanded
        if kind == "array":
            items = {} if is_last else meant.get("items")
            plain["items"] = self.plain(items, depth + 1)
        return plain

    def _meant(self, part: JsonObject) -> JsonObject:
        """Return what a part refers to, or the first option that is a value."""
        for _ in range(_MAX_STEPS):
            is_choice = not part.keys() & {"type", "properties"}
            option = _first_value(part) if is_choice else {}
            if "$ref" in part:
                part = as_mapping(resolve_reference(self._root, part["$ref"]))
            elif option:
                part = option
            else:
                break
        return part


def _first_value(part: JsonObject) -> JsonObject:
    """Return the first of few options that is not null."""
    for key in _SCHEMA_CHOICES:
        for row in as_list(part.get(key))[:_MAX_OPTIONS]:
            option = as_mapping(row)
            if option.get("type") != "null":
                return option
    return {}


def _type_of(part: JsonObject) -> str:
    """Return the first type that a part allows, or the one that it looks like."""
    named = part.get("type")
    for kind in named if isinstance(named, list) else [named]:
        if kind in _PLAIN_TYPES:
            return str(kind)
    if isinstance(part.get("properties"), Mapping):
        return "object"
    return "array" if "items" in part else "string"
