"""Calls and names of Open WebUI's own tools.

Its tool `call_tool` runs another tool by its name (docs/reference/open-webui.md, "Tools
of the host").
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from openai_responses.digest import hex_digest
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
    name, _ = read_call_tool(arguments) or (None, {})
    if arguments.keys() != {"tool_name", "params"} or not isinstance(name, str):
        return call
    return {**call, "name": name, "arguments": arguments["params"]}


def names_no_tool(call: Item) -> bool:
    """Say whether a call of `call_tool` names no tool that the host would run."""
    return call.get("name") == CALL_TOOL and resolve_host_call(call) is call


MAX_ID_CHARACTERS = 200
"""Of the id of a toolkit or a server; Open WebUI's own ids are shorter."""

_CUT_NAME = re.compile(r"(?P<beginning>.{55})_(?P<digest>[0-9a-f]{8})", re.DOTALL)
"""From 0.12 on, a name of an MCP server's tool with over 64 characters: its beginning,
and that of the SHA-256 of the whole (utils/middleware.py, `tool_name[:55]`)."""
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class HostToolNames:
    """The names that Open WebUI's tools in a chat have, had or may have.

    Only their present names are sent, so wherever it is not clear what a tool was
    called, every name is considered that it may have had.
    """

    toolkit_ids: frozenset[str] = frozenset()
    """Ids of the chat's toolkits and OpenAPI servers."""
    mcp_ids: frozenset[str] = frozenset()
    """Ids of the chat's MCP servers."""
    own_tools: frozenset[str] = frozenset()
    """Names of tools that are not Open WebUI's."""
    has_more: bool = False
    """Whether the chat names more toolkits than are known, or one that is too long."""

    def other_names(self, name: str) -> list[str]:
        """Return the names that a tool has where it comes from, or had in other chats.

        Open WebUI puts the id of a toolkit or a server in front of a name that two
        tools of a chat have, again and again until there is only one of it, and of each
        name of an MCP server. A rule for the longer name still holds where a chat has
        no other tool of that name: a user chooses the tools.
        """
        if name in self.own_tools:
            return []
        tool_ids = self.toolkit_ids | self.mcp_ids
        names: list[str] = []
        for index, character in enumerate(name[:MAX_ID_CHARACTERS]):
            if character == "_" and name[:index] in tool_ids:
                prefix = name[: index + 1]
                own_name = re.sub(f"(?:{re.escape(prefix)})+", "", name, count=1)
                # The own name may itself begin like the id.
                names += [own_name, prefix + own_name]
        longer_names = [f"{tool_id}_{name}" for tool_id in sorted(self.toolkit_ids)]
        return names + longer_names

    def may_match(self, name: str, pattern: str) -> bool:
        """Say whether a pattern may match a tool whose name was cut.

        It may match the whole name, or the tool's own name on its server, both in upper
        and lower case: only a rule that allows has to spell a name as it is. Where the
        chat names more toolkits, it may match any.
        """
        if name in self.own_tools:
            return False
        cut_name = _CUT_NAME.fullmatch(name)
        if cut_name is None or self.has_more:
            return self.has_more
        beginning, cut_digest = cut_name.groups()
        for mcp_id in self.mcp_ids:
            prefix = f"{mcp_id}_"
            if not (beginning.startswith(prefix) or prefix.startswith(beginning)):
                continue
            if _WILDCARDS.isdisjoint(pattern):
                # The digest tells whether it is one of the two names.
                whole_names = (pattern, prefix + pattern)
                matches = any(
                    _is_cut_from(whole_name, beginning, cut_digest)
                    for whole_name in whole_names
                )
            else:
                beginnings = (beginning, beginning[len(prefix) :])
                matches = any(_may_continue(known, pattern) for known in beginnings)
            if matches:
                return True
        return False


def _is_cut_from(whole_name: str, beginning: str, cut_digest: str) -> bool:
    """Say whether a name was cut that is written like this, or in other capitals.

    Those of the beginning are known; what follows is tried in lower case, too.
    """
    if not whole_name.lower().startswith(beginning.lower()):
        return False
    end = whole_name[len(beginning) :]
    digests = [hex_digest(beginning + tried) for tried in (end, end.lower())]
    return any(digest.startswith(cut_digest) for digest in digests)


def _may_continue(beginning: str, pattern: str) -> bool:
    """Say whether a pattern matches any text that begins like this, in any case.

    The beginning of the pattern then matches the beginning of the text, and the rest of
    the pattern what follows. Where the pattern is divided is not known, so all places
    are tried.
    """
    for end in range(len(pattern) + 1):
        part = pattern[:end]
        # Both, as a rule holds for whole names (`Approver.rule_for`).
        if fnmatchcase(beginning, part) or fnmatchcase(beginning.lower(), part.lower()):
            return True
    return False
