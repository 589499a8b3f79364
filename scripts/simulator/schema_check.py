"""Whether the JSON Schemas of function tools are ones the API takes."""

from collections.abc import Mapping
from typing import Any

from simulator.refusals import Refusal

Context = tuple[str, ...]
Complaint = str | None


def check_schemas(tools: list[Mapping[str, Any]]) -> None:
    """Raise the refusal for the first function whose schema does not do."""
    for index, tool in enumerate(tools):
        if tool["type"] != "function" or tool["parameters"] is None:
            continue
        complaint = _complain_of_root(tool["parameters"])
        complaint = complaint or complain(tool["parameters"], (), bool(tool["strict"]))
        if complaint is None and tool["strict"]:
            complaint = _complain_of_size(tool["parameters"])
        if complaint:
            raise Refusal(
                f"Invalid schema for function '{tool['name']}': {complaint}",
                code="invalid_function_parameters",
                param=f"tools[{index}].parameters",
            )


def complain(schema: Any, context: Context, strict: bool) -> Complaint:
    """Return what is wrong with a schema, None if nothing is."""
    if not isinstance(schema, dict):
        fits = isinstance(schema, bool)
        return None if fits else f"{schema} is not of type 'object', 'boolean'."
    complaint = _complain_of_type(schema.get("type", "object"))
    complaint = complaint or _complain_of_required(schema.get("required", []))
    if complaint is None and schema.get("type") == "object" and strict:
        complaint = _complain_of_strictness(schema, context)
    if complaint is not None:
        return complaint
    for name, inner in _inner_schemas(schema):
        complaint = complain(inner, (*context, *name), strict)
        if complaint is not None:
            return complaint
    return None


def _complain_of_size(schema: Mapping[str, Any]) -> Complaint:
    """Hold a strict schema against the two limits whose messages are known."""
    inner = [schema]
    for one in inner:
        inner += [part for _, part in _inner_schemas(one) if isinstance(part, dict)]
    counts = {
        "object properties": (
            5000,
            sum(len(one.get("properties", {})) for one in inner),
        ),
        "enum values": (1000, sum(len(one.get("enum", [])) for one in inner)),
    }
    for what, (most, count) in counts.items():
        if count > most:
            return (
                f"Expected at most {most} {what} in total within a single schema when "
                f"using structured outputs, but received {count}. Consider reducing the "
                f"number of {what.split()[0]}s, or use 'strict: false' to opt out of "
                "structured outputs."
            )
    return None


def _inner_schemas(schema: Mapping[str, Any]) -> list[tuple[Context, Any]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return [(("properties",), "'properties'")]
    inner: list[tuple[Context, Any]] = []
    inner += [(("properties", name), one) for name, one in properties.items()]
    options = schema.get("anyOf")
    for index, one in enumerate(options if isinstance(options, list) else []):
        inner.append((("anyOf", str(index)), one))
    if "items" in schema:
        inner.append((("items",), schema["items"]))
    return inner


def _complain_of_root(schema: Mapping[str, Any]) -> Complaint:
    kind = schema.get("type")
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if "properties" not in schema:
        return "In context=(), object schema missing properties."
    return None


def _complain_of_type(kind: Any) -> Complaint:
    if isinstance(kind, str):
        return None
    several = isinstance(kind, list) and bool(kind)
    if several and all(isinstance(one, str) for one in kind):
        return None
    return f"{kind} is not valid under any of the given schemas."


def _complain_of_required(required: Any) -> Complaint:
    if isinstance(required, list) and all(isinstance(one, str) for one in required):
        return None
    return f"{required} is not of type 'array'."


def _complain_of_strictness(schema: Mapping[str, Any], context: Context) -> Complaint:
    if schema.get("additionalProperties") is not False:
        return (
            f"In context={context}, 'additionalProperties' is required to be supplied "
            "and to be false."
        )
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    named = required if isinstance(required, list) else []
    missing = [name for name in properties if name not in named]
    if missing:
        return (
            f"In context={context}, 'required' is required to be supplied and to be an "
            f"array including every key in properties. Missing '{missing[0]}'."
        )
    return None
