"""Items that say at their place in a chat what fields of a request say.

A chat that only grows changes its tools, its effort and its format with such items. A
server that does not have them gets the same in the fields.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from openai_responses.items import ADDED_TOOLS, CONFIGURATION, Item, item_type

APPENDED = frozenset({ADDED_TOOLS, CONFIGURATION})
"""The types of these items."""

_CONFIGURED = ("reasoning", "text")
"""The fields that a configuration update can change."""


def declared_tools(payload: Mapping[str, Any]) -> list[Item]:
    """Return the tools of a request and of its items, in this order."""
    tools = list(payload.get("tools") or ())
    for item in payload["input"]:
        if item_type(item) == ADDED_TOOLS:
            tools += item["tools"]
    return tools


def change_added_tools(
    items: Iterable[Item], change: Callable[[Item], Item]
) -> list[Item]:
    """Return the input of a request in which the tools of its items are changed."""
    changed = list(items)
    for number, item in enumerate(changed):
        if item_type(item) == ADDED_TOOLS:
            tools = [change(tool) for tool in item["tools"]]
            changed[number] = {**item, "tools": tools}
    return changed


def lower_payload(payload: Mapping[str, Any], kinds: Set[str]) -> dict[str, Any]:
    """Return a request whose own fields say what items of these `kinds` said."""
    lowered = dict(payload)
    if not kinds:
        return lowered
    items = payload["input"]
    lowered["input"] = [item for item in items if item_type(item) not in kinds]
    if CONFIGURATION in kinds:
        for item in items:
            for key in _CONFIGURED:
                if item_type(item) == CONFIGURATION and key in item:
                    lowered[key] = {**lowered.get(key, {}), **item[key]}
    if ADDED_TOOLS in kinds:
        tools = declared_tools(payload)
        if tools:
            lowered["tools"] = tools
    return lowered
