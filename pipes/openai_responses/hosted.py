"""What an item that the API itself makes or runs means to a viewer and to a later turn.

Searches, code, pictures, calls of remote servers: nobody on our side answers them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_reasoning,
    item_type,
)

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("container_id",),
    "mcp_list_tools": ("server_label", "tools"),
    "mcp_call": ("server_label", "name", "arguments"),
    "mcp_approval_request": ("id", "server_label", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
}
"""Hosted items that can be given back, with what the API asks of each. A picture is
not among them: it would be looked up by an id that was never stored
(responses-api.md §2.1)."""

_UNFINISHED = ("in_progress", "searching", "interpreting", "calling", "incomplete")
_ACTIONS = ("search", "open_page", "find_in_page")

_REFUSED_AT_MINIMAL = ("web_search", "file_search", "image_generation")
"""Tools that cannot be used with the effort `minimal` (responses-api.md §1)."""


_INCLUDED = {
    "web_search": "web_search_call.action.sources",
    "code_interpreter": "code_interpreter_call.outputs",
}
"""What the API leaves out of an item unless it is asked, by the tool."""


def is_hosted(item: Mapping[str, Any]) -> bool:
    """Say whether the API made or answered `item` itself."""
    return item_type(item) in (*_NEEDS, "image_generation_call")


def is_returned_hosted(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is a finished hosted one that a later request gives back."""
    kind = item_type(item)
    if kind not in _NEEDS or item.get("status") in _UNFINISHED:
        return False
    if kind == "web_search_call" and _action(item).get("type") not in _ACTIONS:
        return False
    if kind == "mcp_list_tools" and item.get("error"):
        return False  # without a list the API asks the server again
    return all(item.get(key) is not None for key in _NEEDS[kind])


def is_kept_hosted(item: Mapping[str, Any]) -> bool:
    """Say whether later turns of a chat get `item` back; an approval is over by then."""
    return is_returned_hosted(item) and not item_type(item).startswith("mcp_approval")


def without_tools(items: Iterable[Item]) -> list[Item]:
    """Return `items` without calls, their outputs and the reasoning before them.

    The lists of remote servers stay, for they are none; so do pictures, which people
    see in the answer.
    """
    kept: list[Item] = []
    dangling: list[Item] = []  # reasoning whose product has not come yet
    for item in items:
        if is_reasoning(item):
            dangling.append(item)
            continue
        if not (is_call(item) or is_call_output(item) or _is_hosted_call(item)):
            kept += [*dangling, item]
        dangling = []
    return kept


def is_search(tool: Mapping[str, Any]) -> bool:
    """Say whether answers cite what `tool` found."""
    return tool.get("type") in ("web_search", "file_search")


def searched_queries(item: Mapping[str, Any]) -> list[str]:
    """Return what a search looked for, on the web or in files."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = _action(item)
    return _texts(action.get("queries")) or _texts([action.get("query")])


def searched_pages(item: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the pages that a search found, each once."""
    sources = _action(item).get("sources")
    rows = sources if isinstance(sources, list) else []
    urls = [row.get("url") for row in rows if isinstance(row, Mapping)]
    return list(dict.fromkeys(_texts(urls)))


def tools_at_effort(tools: Sequence[Item], effort: str | None) -> list[Item]:
    """Return the tools that may be offered to a model that works with `effort`."""
    refused = _REFUSED_AT_MINIMAL if effort == "minimal" else ()
    return [tool for tool in tools if tool.get("type") not in refused]


def included_by(tools: Sequence[Item]) -> list[str]:
    """Return what has to be asked for so that a viewer sees what `tools` did."""
    return [_INCLUDED[t["type"]] for t in tools if t.get("type") in _INCLUDED]


def _is_hosted_call(item: Mapping[str, Any]) -> bool:
    return item_type(item) in _NEEDS and item_type(item) != "mcp_list_tools"


def _action(item: Mapping[str, Any]) -> Mapping[str, Any]:
    action = item.get("action")
    return action if isinstance(action, Mapping) else {}


def _texts(values: object) -> list[str]:
    rows = values if isinstance(values, list) else []
    return [row for row in rows if isinstance(row, str) and row]
