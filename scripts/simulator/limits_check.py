"""Whether plain values keep the API's limits."""

import re
from collections.abc import Mapping
from typing import Any

from simulator.compacting import check_compaction
from simulator.hosted_check import check_hosted
from simulator.mcp_check import check_servers
from simulator.models import ModelFacts
from simulator.refusals import Refusal, out_of_range, too_long, wrong_pattern
from simulator.schema_check import check_schemas

Body = Mapping[str, Any]
LONGEST = {"prompt_cache_key": 64, "safety_identifier": 128, "user": 128}
Ranges = Mapping[str, tuple[int, int | None]]
RANGES: Ranges = {"temperature": (0, 2), "top_p": (0, 1)}
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def check_limits(body: Body, model: ModelFacts) -> None:
    """Raise the refusal for the first value beyond a limit."""
    for name, limit in LONGEST.items():
        length = len(body.get(name) or "")
        if length > limit:
            raise too_long(name, limit, length)
    _check_ranges(body, "decimal", RANGES)
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
            raise out_of_range(name, kind, f">= {low}", value)
        if high is not None and value > high:
            raise out_of_range(name, kind, f"<= {high}", value)


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
            raise too_long("metadata", 64, len(name))
        if len(value) > 512:
            raise too_long(f"metadata.{name}", 512, len(value))


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
        raise too_long(f"{path}.name", 64, len(name))
    if not TOOL_NAME.fullmatch(name):
        raise wrong_pattern(f"{path}.name", TOOL_NAME.pattern)


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
