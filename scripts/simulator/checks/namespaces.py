"""Whether the calls of an input name the namespace of their tool.

Known: a call of a tool that only a namespace has, sent without it (reports: vercel/ai
15193, pi 7709, copilot-cli 4519). Assumed: a namespace that no tool of the request has.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.refusals import Refusal

Item = Mapping[str, Any]


def check_namespaces(body: Item, items: Sequence[Item]) -> None:
    """Raise the refusal for the first call whose namespace does not fit."""
    tools = list(_list_tools(body.get("tools") or [], items))
    spaces = {
        tool["name"]: {inner.get("name") for inner in tool["tools"]}
        for tool in tools
        if tool["type"] == "namespace"
    }
    plain = {tool.get("name") for tool in tools}
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


def _list_tools(tools: Sequence[Item], items: Sequence[Item]) -> Iterator[Item]:
    yield from tools
    for item in items:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            yield from item["tools"]
