"""Whether the calls of an input name the namespace of their tool.

Known: a call of a tool that only a namespace or an `additional_tools` item has, sent
without it (reports: vercel/ai 15193, pi 7709, copilot-cli 4519; vendors: pydantic-ai
2.68.0). Assumed: that the namespace of a tool of an item is its own name; a namespace
that no tool has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.configuration import list_appended
from simulator.refusals import Refusal

Item = Mapping[str, Any]


def check_namespaces(body: Item, items: Sequence[Item]) -> None:
    """Raise the refusal for the first call whose namespace does not fit."""
    declared = body.get("tools") or []
    loaded = [tool for one in items if _is_loaded(one) for tool in one["tools"]]
    appended = [tool for _, tools in list_appended(items) for tool in tools]
    spaces = _spaces((*declared, *loaded), appended)
    plain = {tool.get("name") for tool in (*declared, *loaded)} - {None}
    inside = set().union(*spaces.values())
    for index, item in enumerate(items):
        if item.get("type") not in ("function_call", "custom_tool_call"):
            continue
        path, name = f"input[{index}].namespace", item["name"]
        given = item.get("namespace")
        if given is None and name in inside - plain:
            raise Refusal(
                f"Missing namespace for {item['type']} '{name}'. It does not exist in "
                "the default namespace. Round-trip the model's function_call item with "
                "its namespace field included.",
                param=path,
            )
        if given is not None and given not in spaces and name not in plain:
            raise Refusal(
                f"Unknown namespace '{given}' for {item['type']} '{name}'.", param=path
            )


def _spaces(declared: Sequence[Item], appended: Sequence[Item]) -> dict[str, set[Any]]:
    """Return the names of the tools in each namespace."""
    spaces = {
        tool["name"]: {inner.get("name") for inner in tool["tools"]}
        for tool in (*declared, *appended)
        if tool["type"] == "namespace"
    }
    alone = {
        tool["name"] for tool in appended if tool["type"] in ("function", "custom")
    }
    return spaces | {name: {name} for name in alone}


def _is_loaded(item: Item) -> bool:
    return item.get("type") == "tool_search_output"
