"""Checks tools: names, number, hosted ones, and what `tool_choice` names."""

import re
from collections.abc import Mapping
from typing import Any

from simulator.checks.mcp import check_servers
from simulator.files import CONTAINER
from simulator.refusals import (
    Refusal,
    refuse_empty,
    refuse_length,
    refuse_pattern,
    refuse_range,
)

MAX_TOOLS, MAX_NAME_CHARACTERS = 128, 64
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
STORE_ID = re.compile("vs_")
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
        if tool["type"] == "file_search":
            _check_stores(tool["vector_store_ids"], f"tools[{index}].vector_store_ids")


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


def _check_stores(stores: list[str], path: str) -> None:
    if not stores:
        raise Refusal(
            f"Invalid '{path}': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            code="empty_array",
            param=path,
        )
    for index, store in enumerate(stores):
        if not STORE_ID.match(store):
            raise Refusal(
                f"Invalid '{path}[{index}]': string does not match pattern. Expected a "
                "string that matches the pattern 'vs_*'",
                code="invalid_value",
                param=f"{path}[{index}]",
            )


def check_tools(body: Tool) -> None:
    """Raise the refusal for the first tool that does not do."""
    tools = body.get("tools") or []
    if len(tools) > MAX_TOOLS:
        raise Refusal(
            f"Invalid 'tools': array too long. Expected an array with maximum length "
            f"{MAX_TOOLS}, but got an array with length {len(tools)} instead.",
            code="array_above_max_length",
            param="tools",
        )
    seen: set[str] = set()
    for path, listed in list_tools(body).items():
        _check_names(listed, path, seen)
    _check_search(tools)
    check_hosted(tools)
    check_servers(tools)


def _check_search(tools: list[Tool]) -> None:
    """Refuse a second search for tools, and deferred tools that nothing could find.

    Of the latter the guide says that both are needed; the words are assumed.
    """
    searches = [tool for tool in tools if tool["type"] == "tool_search"]
    if len(searches) > 1:
        raise Refusal(
            "Only one tool_search tool is allowed in tools parameter.", param="tools"
        )
    for index, tool in enumerate(tools):
        if tool["type"] == "namespace" and not tool["description"]:
            raise refuse_empty(f"tools[{index}].description")
        deferred = any(one.get("defer_loading") for one in (tool, *_inner(tool)))
        if deferred and not searches:
            raise Refusal(
                "Tools with 'defer_loading' need the tool 'tool_search'.",
                param=f"tools[{index}]",
            )


def _inner(tool: Tool) -> list[Tool]:
    return list(tool["tools"]) if tool["type"] == "namespace" else []


def list_tools(body: Tool) -> dict[str, list[Tool]]:
    """Return the tools of the request and those of its items, by their paths."""
    lists = {"tools": list(body.get("tools") or [])}
    given = body.get("input")
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if item.get("type") == "additional_tools":
            lists[f"input[{index}].tools"] = item["tools"]
    return lists


def _check_names(tools: list[Tool], path: str, seen: set[str]) -> None:
    for index, tool in enumerate(tools):
        name = tool.get("name")
        if name is None:
            continue
        check_name(name, f"{path}[{index}].name")
        if name in seen:
            raise Refusal(
                f"Duplicate tool name found: {name}. Please provide a unique name for "
                "each tool.",
                param="tools",
            )
        seen.add(name)
        _check_names(tool.get("tools") or [], f"{path}[{index}].tools", set())


def check_name(name: str, path: str) -> None:
    """Raise the refusal for a name that is empty, too long or of other characters."""
    if not name:
        raise refuse_empty(path)
    if len(name) > MAX_NAME_CHARACTERS:
        raise refuse_length(path, MAX_NAME_CHARACTERS, len(name))
    if not TOOL_NAME.fullmatch(name):
        raise refuse_pattern(path, TOOL_NAME.pattern)


def check_choice(body: Tool) -> None:
    """Raise the refusal for a choice that names no tool of the request."""
    choice = body.get("tool_choice")
    tools = body.get("tools") or []
    if choice == "required" and not tools:
        raise Refusal(
            "Tool choice 'required' must be specified with 'tools' parameter.",
            param="tool_choice",
        )
    if not isinstance(choice, dict):
        return
    allows = choice["type"] == "allowed_tools"
    for one in choice["tools"] if allows else [choice]:
        if not any(_is_chosen(tool, one) for tool in tools):
            name = (allows and one.get("name")) or one["type"]
            raise Refusal(
                f"Tool choice '{name}' not found in 'tools' parameter.",
                param="tool_choice",
            )


def _is_chosen(tool: Tool, choice: Tool) -> bool:
    if tool["type"] == "namespace":
        return any(_is_chosen(inner, choice) for inner in tool["tools"])
    same = all(tool.get(key) == choice.get(key) for key in ("type", "server_label"))
    if choice["type"] == "mcp":
        return same  # its name is a tool of the server
    return same and tool.get("name") == choice.get("name")
