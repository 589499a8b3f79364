"""Schemas of an OpenAPI document -> schemas that stand alone.

What a schema refers to inside the document is put beside it, under `$defs`; nothing is
loaded from anywhere else.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_DEEPEST_NODE = 40
_MOST_DEFINITIONS = 100
_HOPS = 10
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")


class SchemaUnusable(Exception):
    """A schema refers to what is not there, or is too large."""


def resolved(node: object, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object of the document, or the one that it refers to."""
    for _ in range(_HOPS):
        if not isinstance(node, Mapping):
            break
        if "$ref" not in node:
            return node
        node = _pointed_at(node["$ref"], document)
    raise SchemaUnusable


def _pointed_at(reference: object, document: Mapping[str, Any]) -> Any:
    """Return what a reference points at (RFC 6901, inside the document alone)."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise SchemaUnusable
    node: Any = document
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or name not in node:
            raise SchemaUnusable
        node = node[name]
    return node


class OpenApiSchemas:
    """The schemas of one tool; `definitions` holds what they refer to."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Take what references are about."""
        self.definitions: dict[str, Any] = {}
        self._document = document
        self._names: dict[str, str] = {}

    def standing_alone(self, node: Any, levels: int = _DEEPEST_NODE) -> Any:
        """Return a schema whose references lead to `definitions`.

        Raises SchemaUnusable.
        """
        if levels == 0:
            raise SchemaUnusable
        if isinstance(node, list):
            return [self.standing_alone(one, levels - 1) for one in node]
        if not isinstance(node, Mapping):
            return node
        if isinstance(node.get("$ref"), str):
            return {"$ref": f"#/$defs/{self._definition(node['$ref'], levels - 1)}"}
        return {
            str(key): self.standing_alone(value, levels - 1)
            for key, value in node.items()
        }

    def _definition(self, reference: str, levels: int) -> str:
        """Return the name under which something is defined from now on."""
        if reference not in self._names:
            if len(self._names) == _MOST_DEFINITIONS:
                raise SchemaUnusable
            last = _NOT_IN_A_NAME.sub("_", reference.rpartition("/")[2])
            taken = last in self._names.values()
            name = f"{last}_{len(self._names)}" if taken else last
            self._names[reference] = name
            target = _pointed_at(reference, self._document)
            self.definitions[name] = self.standing_alone(target, levels)
        return self._names[reference]
