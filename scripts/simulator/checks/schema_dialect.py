"""Holds a function's schema against JSON Schema, draft 2020-12.

The API does that with or without strict mode and quotes the validator: "... is not of
type 'object', 'boolean'" (smallmain/vscode-unify-chat-provider 162,
FoundationAgents/OpenManus 1162), "True is not of type 'array'". A `pattern` must be an
expression that Python reads ("... is not a 'regex'"), and without lookaround
(can1357/oh-my-pi 2784, where a server of Figma has such a pattern; the words of the
refusal are assumed). That a reference must name a definition at the root is known of
strict mode and assumed without it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

META_VALIDATOR = Draft202012Validator(
    Draft202012Validator.META_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
)
LOOKAROUND = re.compile(r"\(\?<?[=!]")
DEFINITION = re.compile(r"#/(?P<key>\$defs|definitions)/(?P<name>[^/]+)")
SCHEMA_MAPS = (
    *("properties", "patternProperties", "$defs", "definitions"),
    "dependentSchemas",
)
SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMAS = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
    *("propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)


def find_dialect_problem(schema: Any) -> str | None:
    """Return what is no JSON Schema in a whole schema, None if all of it is one."""
    error = next(META_VALIDATOR.iter_errors(schema), None)
    if error is not None:
        return f"{error.message}."
    for node in iterate_nodes(schema):
        for pattern in (node.get("pattern", ""), *node.get("patternProperties", ())):
            if LOOKAROUND.search(pattern):
                return f"'{pattern}' is not a 'regex': lookaround is not supported."
        reference = node.get("$ref", "#")
        if not leads_somewhere(reference, schema):
            return "reference can only point to definitions defined at the top level."
    return None


def iterate_nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it, as the metaschema finds them."""
    ahead = [schema]
    while ahead:
        node = ahead.pop()
        if not isinstance(node, dict):
            continue
        yield node
        ahead += [node[key] for key in SCHEMAS if key in node]
        ahead += [one for key in SCHEMA_LISTS for one in node.get(key, ())]
        ahead += [one for key in SCHEMA_MAPS for one in node.get(key, {}).values()]


def leads_somewhere(reference: str, root: Mapping[str, Any]) -> bool:
    """Tell whether a reference names the schema itself or a definition at its root."""
    found = DEFINITION.fullmatch(reference)
    if found is None:
        return reference == "#"
    name = found["name"].replace("~1", "/").replace("~0", "~")
    return name in root.get(found["key"], {})
