"""Calls and names of Open WebUI's own tools.

Its tool `call_tool` runs another tool by its name (docs/reference/open-webui.md, "Tools
of the host").
"""

import re
from collections.abc import Collection

from openai_responses.items import Item
from openai_responses.json_input import parse_json_object
from owui_chat.host_tools import CALL_TOOL, read_call_tool


def resolve_host_call(call: Item) -> Item:
    """Return a call as one of the tool that the host would run.

    Any other call, and one that the host would not pass on, is returned unchanged.
    """
    if call.get("name") != CALL_TOOL:
        return call
    arguments = parse_json_object(call.get("arguments")) or {}
    if arguments.keys() != {"tool_name", "params"}:
        return call
    if read_call_tool(arguments) is None:
        return call
    name = arguments["tool_name"]
    if not isinstance(name, str):
        return call
    return {**call, "name": name, "arguments": arguments["params"]}


_MAX_ID_CHARACTERS = 200
"""Of the id of a toolkit or a server; Open WebUI's own ids are shorter."""


def find_own_names(name: str, tool_ids: Collection[str]) -> list[str]:
    """Return the names that a tool of Open WebUI may have where it comes from.

    Open WebUI puts the id of a toolkit or a server in front of a name that two tools
    have, again and again until there is only one of it, and of each name of an MCP
    server.
    """
    names: list[str] = []
    for index, character in enumerate(name[:_MAX_ID_CHARACTERS]):
        if character == "_" and name[:index] in tool_ids:
            prefix = name[: index + 1]
            rest = re.sub(f"(?:{re.escape(prefix)})+", "", name, count=1)
            names += [rest, prefix + rest]  # the own name may begin like the id
    return names
