"""A value held against a JSON Schema.

The check knows the keywords that models get wrong: types, required properties, enums,
items and choices. Others are the tool's business.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai_responses.schema_parts import referred

DEEPEST_ARGUMENT = 40
"""How deep values and what schemas refer to are followed."""


def _is_number(value: Any) -> bool:
    """Say whether a value is a number; true is none, nor is what JSON cannot say."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
}


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """Holds values against the parts of one schema.

    Where it is `lenient`, the null of a property that may be left out is always fine.
    What was found is remembered by the objects themselves, so a check must not outlive
    them.
    """

    root: Mapping[str, Any]
    lenient: bool = False
    _found: dict[tuple[str, int, int], str] = field(default_factory=dict)

    def misfit(self, value: Any, node: Any, path: str = "", depth: int = 0) -> str:
        """Return the path and what is wrong there; nothing if `value` fits `node`."""
        if not isinstance(node, Mapping) or depth > DEEPEST_ARGUMENT:
            return ""
        # A schema can lead to the same part by many ways, and back to where it began.
        place = (path, id(value), id(node))
        if place not in self._found:
            self._found[place] = ""
            self._found[place] = self._misfit(value, node, path, depth)
        return self._found[place]

    def _misfit(
        self, value: Any, node: Mapping[str, Any], path: str, depth: int
    ) -> str:
        if value is None and node.get("nullable") is True:
            return ""
        if "$ref" in node:
            return self.misfit(value, referred(node, self.root), path, depth + 1)
        found = _own_misfit(value, node, path)
        if isinstance(value, Mapping):
            found = found or self._in_object(value, node, path, depth)
        if isinstance(value, list):
            found = found or self._in_list(value, node, path, depth)
        return found or self._in_parts(value, node, path, depth)

    def _in_object(
        self, value: Mapping[str, Any], node: Mapping[str, Any], path: str, depth: int
    ) -> str:
        required = node.get("required") or ()
        missing = [name for name in required if name not in value]
        if missing:
            return f"{_joined(path, str(missing[0]))} is missing"
        properties = node.get("properties") or {}
        found = (
            self.misfit(value[name], properties[name], _joined(path, name), depth + 1)
            for name in properties
            if name in value
            and (value[name] is not None or name in required or not self.lenient)
        )
        return next(filter(None, found), "")

    def _in_list(
        self, value: Sequence[Any], node: Mapping[str, Any], path: str, depth: int
    ) -> str:
        found = (
            self.misfit(one, node.get("items"), f"{path}[{place}]", depth + 1)
            for place, one in enumerate(value)
        )
        return next(filter(None, found), "")

    def _in_parts(
        self, value: Any, node: Mapping[str, Any], path: str, depth: int
    ) -> str:
        """Hold a value against `allOf`, and against one at least of a choice."""
        for part in node.get("allOf") or ():
            found = self.misfit(value, part, path, depth + 1)
            if found:
                return found
        options = node.get("anyOf") or node.get("oneOf") or ()
        if options and all(self.misfit(value, o, path, depth + 1) for o in options):
            return f"{path or 'object'} fits none of its forms"
        return ""


def _own_misfit(value: Any, node: Mapping[str, Any], path: str) -> str:
    """Hold a value against the type of a schema, then against what it may be."""
    place = path or "object"
    kinds = _known_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{place} must be {_listed(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not any(_same(value, one) for one in allowed):
        return f"{place} must be one of {_listed(list(map(repr, allowed)))}"
    return ""


def _known_types(said: Any) -> list[str]:
    kinds = [said] if isinstance(said, str) else said or []
    return [kind for kind in kinds if kind in _TYPES]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(words: Sequence[str]) -> str:
    """Return a few words as a list; long ones are no help to a model."""
    shown = [word if len(word) <= 60 else word[:57] + "..." for word in words[:20]]
    return " or ".join(shown) + (" ..." if len(words) > 20 else "")


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
