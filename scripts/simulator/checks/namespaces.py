"""Whether the calls of an input name the namespace of their tool.

Known: a call of a tool that only an `additional_tools` item has, sent without its
namespace, is refused (reports: vercel/ai 15193, pi 7709, copilot-cli 4519; vendors:
pydantic-ai 2.68.0). Assumed: that the namespace of such a tool is its own name; that a
namespace which no tool has is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.configuration import list_appended
from simulator.refusals import Refusal

Item = Mapping[str, Any]


def check_namespaces(body: Item, items: Sequence[Item]) -> None:
    """Raise the refusal for the first call whose namespace does not fit."""
    declared = {tool.get("name") for tool in body.get("tools") or []}
    added = {
        tool["name"]
        for _, tools in list_appended(items)
        for tool in tools
        if tool["type"] in ("function", "custom")
    }
    for index, item in enumerate(items):
        if item.get("type") not in ("function_call", "custom_tool_call"):
            continue
        path, name = f"input[{index}].namespace", item["name"]
        given = item.get("namespace")
        if given is None and name in added - declared:
            raise Refusal(
                f"Missing namespace for {item['type']} '{name}'. It does not exist in "
                "the default namespace. Round-trip the model's function_call item with "
                "its namespace field included.",
                param=path,
            )
        if given is not None and given not in added:
            raise Refusal(
                f"Unknown namespace '{given}' for {item['type']} '{name}'.", param=path
            )
