"""Checks values against the API's limits: JSON Schemas of functions, hosted tools,
ranges and lengths.
"""

import re
from collections.abc import Mapping
from typing import Any

from simulator.checks.mcp import check_servers
from simulator.checks.schema_dialect import find_dialect_problem
from simulator.files import CONTAINER
from simulator.models import ModelFacts
from simulator.refusals import Refusal, refuse_length, refuse_pattern, refuse_range
from simulator.tokens import check_compaction

Context = tuple[str, ...]
SchemaProblem = str | None


def check_schemas(tools: list[Mapping[str, Any]]) -> None:
    """Raise the refusal for the first function whose schema does not do."""
    for index, tool in enumerate(tools):
        if tool["type"] != "function" or tool["parameters"] is None:
            continue
        complaint = _check_root(tool["parameters"])
        complaint = complaint or find_schema_problem(
            tool["parameters"], (), bool(tool["strict"])
        )
        if complaint is None and tool["strict"]:
            complaint = _check_size(tool["parameters"])
        if complaint:
            raise Refusal(
                f"Invalid schema for function '{tool['name']}': {complaint}",
                code="invalid_function_parameters",
                param=f"tools[{index}].parameters",
            )


def find_schema_problem(schema: Any, context: Context, strict: bool) -> SchemaProblem:
    """Return what is wrong with a schema, None if nothing is.

    Objects without properties are refused at the root (janhq/jan 7017), inside this is
    assumed.
    """
    complaint = find_dialect_problem(schema) if not context else None
    if complaint is not None or not isinstance(schema, dict):
        return complaint
    if "object" in _types_of(schema) and "properties" not in schema:
        return f"In context={context}, object schema missing properties."
    if "array" in _types_of(schema) and "items" not in schema:
        return f"In context={context}, array schema missing items."
    if strict and schema.get("type") == "object":
        complaint = _check_strictness(schema, context)
    if complaint is not None:
        return complaint
    for name, inner in _inner_schemas(schema):
        complaint = find_schema_problem(inner, (*context, *name), strict)
        if complaint is not None:
            return complaint
    return None


def _types_of(schema: Mapping[str, Any]) -> list[Any]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _check_size(schema: Mapping[str, Any]) -> SchemaProblem:
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
    inner: list[tuple[Context, Any]] = []
    for key in ("properties", "$defs", "definitions"):
        inner += [((key, name), one) for name, one in schema.get(key, {}).items()]
    options = schema.get("anyOf")
    for index, one in enumerate(options if isinstance(options, list) else []):
        inner.append((("anyOf", str(index)), one))
    if "items" in schema:
        inner.append((("items",), schema["items"]))
    return inner


def _check_root(schema: Mapping[str, Any]) -> SchemaProblem:
    kind = schema.get("type")
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if "properties" not in schema:
        return "In context=(), object schema missing properties."
    return None


def _check_strictness(schema: Mapping[str, Any], context: Context) -> SchemaProblem:
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


Tool = Mapping[str, Any]
HOSTED_TOOL_RANGES = {"partial_images": (0, 3), "output_compression": (0, 100)}
RETIRED_IMAGE_MODELS = ("gpt-image-1",)
TRANSPARENT_FORMATS = ("png", "webp", "gif", "svg")


def check_hosted(tools: list[Tool]) -> None:
    """Raise the refusal for the first value that a hosted tool does not take."""
    for index, tool in enumerate(tools):
        if tool["type"] == "image_generation":
            _check_image(tool, f"tools[{index}]")
        if tool["type"] == "code_interpreter":
            _check_container(tool["container"], f"tools[{index}]")


def _check_image(tool: Tool, path: str) -> None:
    for name, (low, high) in HOSTED_TOOL_RANGES.items():
        value = tool.get(name)
        if value is not None and value < low:
            raise refuse_range(f"{path}.{name}", "integer", f">= {low}", value)
        if value is not None and value > high:
            raise refuse_range(f"{path}.{name}", "integer", f"<= {high}", value)
    if tool.get("model") in RETIRED_IMAGE_MODELS:
        raise Refusal(
            f"The model `{tool['model']}` has been deprecated, learn more here: "
            "https://platform.openai.com/docs/deprecations",
            status=404,
            code="model_not_found",
        )
    form = tool.get("output_format", "png")
    if tool.get("background") == "transparent" and form not in TRANSPARENT_FORMATS:
        raise Refusal(
            f"Transparent background is not supported for '{form}' output.",
            code="invalid_value",
            param=f"{path}.background",
        )


def _check_container(container: str | Tool, path: str) -> None:
    if isinstance(container, str) and container != CONTAINER:
        raise Refusal(
            f"Container with id '{container}' not found.",
            status=404,
            param=f"{path}.container",
        )


Body = Mapping[str, Any]
MAX_LENGTHS = {"prompt_cache_key": 64, "safety_identifier": 128, "user": 128}
Ranges = Mapping[str, tuple[int, int | None]]
REQUEST_RANGES: Ranges = {"temperature": (0, 2), "top_p": (0, 1)}
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def check_limits(body: Body, model: ModelFacts) -> None:
    """Raise the refusal for the first value beyond a limit."""
    for name, limit in MAX_LENGTHS.items():
        length = len(body.get(name) or "")
        if length > limit:
            raise refuse_length(name, limit, length)
    _check_ranges(body, "decimal", REQUEST_RANGES)
    _check_ranges(body, "integer", _integer_ranges(model))
    _check_metadata(body.get("metadata") or {})
    _check_tools(body.get("tools") or [])
    check_compaction(body)
    _check_choice(body)
    if body.get("background") and body.get("store") is False:
        # The guide says that it is refused, not in which words.
        raise Refusal("Background mode requires 'store' to be true.", param="store")


def _integer_ranges(model: ModelFacts) -> Ranges:
    return {
        "max_output_tokens": (16, model.max_output),
        "top_logprobs": (0, 20),
        "max_tool_calls": (1, None),
    }


def _check_ranges(body: Body, kind: str, ranges: Ranges) -> None:
    """Refuse the first number outside its range; None is no upper end."""
    for name, (low, high) in ranges.items():
        value = body.get(name)
        if value is None:
            continue
        if value < low:
            raise refuse_range(name, kind, f">= {low}", value)
        if high is not None and value > high:
            raise refuse_range(name, kind, f"<= {high}", value)


def _check_metadata(metadata: Mapping[str, str]) -> None:
    if len(metadata) > 16:
        raise Refusal(
            "Invalid 'metadata': too many properties. Expected an object with at most "
            f"16 properties, but got an object with {len(metadata)} properties instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for name, value in metadata.items():
        if len(name) > 64:
            raise refuse_length("metadata", 64, len(name))
        if len(value) > 512:
            raise refuse_length(f"metadata.{name}", 512, len(value))


def _check_tools(tools: list[Body]) -> None:
    for index, tool in enumerate(tools):
        _check_tool(tool, f"tools[{index}]")
    check_schemas(tools)
    check_hosted(tools)
    check_servers(tools)


def _check_tool(tool: Body, path: str) -> None:
    name = tool.get("name")
    if name is None:
        return
    if len(name) > 64:
        raise refuse_length(f"{path}.name", 64, len(name))
    if not TOOL_NAME.fullmatch(name):
        raise refuse_pattern(f"{path}.name", TOOL_NAME.pattern)


def _check_choice(body: Body) -> None:
    choice = body.get("tool_choice")
    tools = body.get("tools") or []
    if choice == "required" and not tools:
        raise Refusal(
            "Tool choice 'required' must be specified with 'tools' parameter.",
            param="tool_choice",
        )
    if isinstance(choice, dict) and choice["type"] in ("function", "custom"):
        names = [tool.get("name") for tool in tools if tool["type"] == choice["type"]]
        if choice["name"] not in names:
            raise Refusal(
                f"Tool choice '{choice['type']}' not found in 'tools' parameter.",
                param="tool_choice",
            )
