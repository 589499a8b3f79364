"""Whether the calls of an input name the namespace of their tool.

Recorded: calls go back with their tool's name as their namespace if a search found the
tool, on gpt-5.4 and gpt-5.6, or an `additional_tools` item has it, on gpt-5.6, although
calls come without one there. A search of the client finds tools that the request does
not declare, in a namespace or alone; their calls go back with that (read). Without a
namespace those of declared tools are refused (reports: vercel/ai 15193, pi 7709,
copilot-cli 4519; vendors: pydantic-ai 2.68.0). Assumed: that those of appended tools are
refused like them; that a namespace which no tool has is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.configuration import list_appended
from simulator.refusals import refuse

Item = Mapping[str, Any]


def check_namespaces(body: Item, items: Sequence[Item]) -> None:
    """Raise the refusal for the first call whose namespace does not match."""
    declared = body.get("tools") or []
    deferred = {tool["name"] for tool in declared if tool.get("defer_loading")}
    flat = {tool.get("name") for tool in declared} - deferred
    with_namespace = deferred | {
        tool["name"]
        for _, tools in list_appended(items)
        for tool in tools
        if tool["type"] in ("function", "custom")
    }
    # Those of tools that searches of a client found, and declared ones.
    known = with_namespace | {
        tool["name"]
        for item in items
        if item.get("type") == "tool_search_output"
        for tool in item["tools"]
        if "name" in tool
    }
    known |= {tool["name"] for tool in declared if tool["type"] == "namespace"}
    for index, item in enumerate(items):
        if item.get("type") not in ("function_call", "custom_tool_call"):
            continue
        path = f"input[{index}].namespace"
        name = item["name"]
        namespace = item.get("namespace")
        if namespace is None and name in with_namespace - flat:
            raise refuse("missing_namespace", type=item["type"], name=name, path=path)
        if namespace is not None and namespace not in known:
            raise refuse(
                "unknown_namespace",
                namespace=namespace,
                type=item["type"],
                name=name,
                path=path,
            )
