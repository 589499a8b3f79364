"""Functions and formats that do not say whether they are strict.

Recorded: 219 functions and 8 formats without `strict` all came back strict, with
`additionalProperties: false`, and with every property required, even those that the
request had left optional. From the types (`namespace_tool_param.py`): a schema that
strict mode refuses stays as it is, and is not strict. Assumed: inner objects are closed
like the outermost one. A format comes back without its `$schema`.

A function without parameters takes an empty object, a strict one if it does not say
otherwise; so does one with `{}` that is not strict (recorded). Fields that the API does
not know are gone, and a description that is missing or empty is null (70 of 70).
"""

from collections.abc import Mapping
from typing import Any

from openai.types.responses import FunctionToolParam

from simulator.checks.schemas import find_problem
from simulator.checks.shape import read_fields
from simulator.fields import without_fields

Schema = Mapping[str, Any]
SCHEMA_MAPS = ("properties", "$defs", "definitions")
FUNCTION_FIELDS = read_fields(FunctionToolParam)
EMPTY_OBJECT: Schema = {"type": "object", "properties": {}}


def settle_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as the API uses and echoes it: with `strict` decided."""
    if tool["type"] != "function":
        return dict(tool)
    known = {name: tool[name] for name in tool if name in FUNCTION_FIELDS}
    if not known.get("parameters"):
        known["parameters"] = EMPTY_OBJECT
    description = known.get("description") or None
    return _settle({**known, "description": description}, "parameters")


def settle_format(format: Mapping[str, Any]) -> dict[str, Any]:
    """Return a format as the API uses and echoes it: with `strict` decided."""
    if format["type"] != "json_schema":
        return dict(format)
    schema = without_fields(format["schema"], "$schema")
    return _settle({"description": None, **format, "schema": schema}, "schema")


def _settle(holder: Mapping[str, Any], field: str) -> dict[str, Any]:
    if holder.get("strict") is not None:
        return dict(holder)
    closed = close_schema(holder[field])
    if find_problem(closed, strict=True):
        return {**holder, "strict": False}
    return {**holder, field: closed, "strict": True}


def close_schema(schema: Any) -> Any:
    """Return a schema whose objects allow nothing unknown and require everything."""
    if not isinstance(schema, Mapping):
        return schema
    closed = dict(schema)
    for word in SCHEMA_MAPS:
        if isinstance(closed.get(word), Mapping):
            inner_schemas = closed[word].items()
            closed[word] = {name: close_schema(inner) for name, inner in inner_schemas}
    if "items" in closed:
        closed["items"] = close_schema(closed["items"])
    if "anyOf" in closed:
        closed["anyOf"] = [close_schema(inner) for inner in closed["anyOf"]]
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
        closed["required"] = list(closed["properties"])
    return closed
