"""The named parts of a JSON Schema, and what refers to them."""

from collections.abc import Mapping
from typing import Any

DEFINITIONS = ("$defs", "definitions")


def definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named parts of a schema, from both places where they may stand."""
    found: dict[str, Any] = {}
    for key in DEFINITIONS:
        named = schema.get(key)
        for name, part in named.items() if isinstance(named, Mapping) else ():
            # Two of one name and different content: neither is the right one.
            found[name] = part if found.get(name, part) == part else None
    return found


def referred(node: Any, root: Mapping[str, Any]) -> Any:
    """Return the part of `root` that a `$ref` names, or None; `#` is the root itself."""
    if node.get("$ref") == "#":
        return root
    return definitions(root).get(reference_name(node))


def reference_name(node: Any) -> str:
    """Return the name of the definition that a `$ref` points to; nothing if to none."""
    steps = str(node.get("$ref")).split("/")
    if len(steps) == 3 and steps[0] == "#" and steps[1] in DEFINITIONS:
        return steps[2].replace("~1", "/").replace("~0", "~")
    return ""
