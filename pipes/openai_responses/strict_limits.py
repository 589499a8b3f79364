"""How large a schema may be in strict mode.

The numbers are those of OpenAI's guide to structured outputs, "Supported schemas".
"""

from collections.abc import Iterator, Mapping
from typing import Any

_MOST_PROPERTIES, _MOST_VALUES, _MOST_TEXT = 5000, 1000, 120_000
_LONG_ENUM, _LONG_ENUM_CHARACTERS = 250, 15_000


def is_within_limits(schema: Mapping[str, Any]) -> bool:
    """Say whether strict mode takes a strict schema of this size."""
    nodes = list(_nodes(schema))
    properties = [name for node in nodes for name in node.get("properties", ())]
    enums = [list(map(str, node.get("enum", ()))) for node in nodes]
    values = [value for enum in enums for value in enum]
    return (
        len(properties) <= _MOST_PROPERTIES
        and len(values) <= _MOST_VALUES
        and _length([*properties, *schema.get("$defs", ()), *values]) <= _MOST_TEXT
        and all(map(_is_short, enums))
    )


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a strict schema and every schema inside it."""
    yield node
    inner = [*node.get("anyOf", ()), *([node["items"]] if "items" in node else ())]
    for key in ("properties", "$defs"):
        inner += node.get(key, {}).values()
    for one in inner:
        yield from _nodes(one)


def _is_short(enum: list[str]) -> bool:
    return len(enum) <= _LONG_ENUM or _length(enum) <= _LONG_ENUM_CHARACTERS


def _length(texts: list[str]) -> int:
    return sum(map(len, texts))
