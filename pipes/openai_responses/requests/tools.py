"""Tools of a chat body or of the host, in the API's form and with names it allows."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts
from openai_responses.json_input import as_mapping, as_text
from openai_responses.requests.json_schema import open_schema, strict_schema

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_STEM = 51  # of 64; the rest is `_` and the digest
_DIGEST = 12


class ToolNames(NamedTuple):
    """Translates the names of tools for the API and back; `known` are their own names.

    A translation depends only on the name, to be the same in later requests, unless
    another known tool has that name.
    """

    known: tuple[str, ...] = ()

    def sent_name(self, name: str) -> str:
        """Return the name that the API gets: 1 to 64 letters, digits, `_` and `-`."""
        if _ALLOWED.fullmatch(name):
            return name
        stem, seed = _FORBIDDEN.sub("_", name)[:_STEM], name
        while True:
            seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
            sent = f"{stem}_{seed[:_DIGEST]}"
            if sent not in self.known:
                return sent

    def own_name(self, sent: str) -> str:
        """Return the tool's own name for the name that the model used."""
        return next((name for name in self.known if self.sent_name(name) == sent), sent)

    def rename_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        return [
            (
                tool
                if is_hosted_tool(tool)
                else tool | {"name": self.sent_name(tool["name"])}
            )
            for tool in tools
        ]


_MODES = ("auto", "none", "required")
CALLED_BY_NAME = ("function", "custom")
"""Types of tools that the caller runs, and not the API."""

_OF_THE_API = ("allowed_callers", "async", "defer_loading", "output_schema")


def responses_tools(
    specs: Sequence[Mapping[str, Any]], *, strict: bool = False
) -> list[Item]:
    """Return the tools of a chat body, or of the host, in the API's form.

    Chat Completions nests a function under `function`, the host has no `type`; the API
    needs it flat, with `parameters` and `strict`. With `strict` every function becomes
    strict whose schema allows it.
    """
    return [_responses_tool(spec, strict) for spec in specs]


def is_hosted_tool(tool: Mapping[str, Any]) -> bool:
    """Say whether the API runs a tool, itself or on another server."""
    return tool.get("type") not in CALLED_BY_NAME


def merge_tools(*groups: Sequence[Item]) -> list[Item]:
    """Return the tools of all groups; a later one replaces an earlier one of its name.

    MCP servers are compared by label, other hosted tools by type.
    """
    tools = [tool for group in groups for tool in group]
    return list({_identity(tool): tool for tool in tools}.values())


def responses_tool_choice(
    choice: object, tools: Sequence[Item], names: ToolNames
) -> object:
    """Return `tool_choice` in the API's form, where a named function is not nested.

    A bare name is accepted. Raises InvalidRequest for a tool that is not among `tools`.
    """
    if choice is None or choice in _MODES:
        return choice
    if isinstance(choice, str):
        wanted = _choice_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _tool_choice(choice, names)
    else:
        raise InvalidRequest("The tool choice is neither a word nor a JSON object.")
    for tool in wanted["tools"] if wanted["type"] == "allowed_tools" else [wanted]:
        _check_offered(tool, tools)
    return wanted


def next_tool_choice(choice: object) -> object:
    """Return the choice after the first calls; what it forbids stays forbidden."""
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return "none" if choice == "none" else None


def _responses_tool(spec: Mapping[str, Any], strict: bool) -> Item:
    if not isinstance(spec, Mapping):
        raise InvalidRequest("A tool is not described by a JSON object.")
    kind = spec.get("type", "function")
    if kind not in CALLED_BY_NAME:
        return dict(spec)
    nested = spec.get(kind)
    flat: Mapping[str, Any] = nested if isinstance(nested, Mapping) else spec
    if not as_text(flat.get("name")):
        raise InvalidRequest(
            "A tool has no name. Every function or custom tool needs one."
        )
    if kind == "function":
        is_complete = {"type", "parameters", "strict"} <= spec.keys() and flat is spec
        return dict(spec) if is_complete else _function(flat, strict)
    if flat is spec:
        return dict(spec)
    return {"type": kind, **flat, **_flat_format(flat)} | {"type": kind}


def _function(function: Mapping[str, Any], strict: bool) -> Item:
    own = function.get("strict")
    wanted = own if isinstance(own, bool) else strict
    parameters = as_mapping(function.get("parameters"))
    made = strict_schema(parameters) if wanted else None
    tool: Item = {"type": "function", "name": function["name"]}
    if function.get("description"):
        tool["description"] = function["description"]
    tool |= {key: function[key] for key in _OF_THE_API if key in function}
    shown = open_schema(parameters) if made is None else made
    return {**tool, "parameters": shown, "strict": made is not None}


def _flat_format(custom: Mapping[str, Any]) -> Item:
    grammar = as_mapping(custom.get("format")).get("grammar")
    if not isinstance(grammar, Mapping):
        return {}
    return {"format": {"type": "grammar", **grammar}}


def _identity(tool: Mapping[str, Any]) -> tuple[str, object]:
    kind = tool.get("type")
    if kind in CALLED_BY_NAME:
        return "name", tool.get("name")
    if kind == "mcp":
        return "server", tool.get("server_label")
    return "type", (kind, tool.get("name")) if kind == "namespace" else kind


def _choice_by_name(choice: str, tools: Sequence[Item], names: ToolNames) -> Item:
    sent = names.sent_name(choice)
    for tool in tools:
        if not is_hosted_tool(tool) and tool.get("name") == sent:
            return {"type": tool["type"], "name": sent}
    for tool in tools:
        if tool.get("type") == choice or tool.get("server_label") == choice:
            return {key: tool[key] for key in ("type", "server_label") if key in tool}
    return {"type": "function", "name": sent}


def _tool_choice(choice: Mapping[str, Any], names: ToolNames) -> Item:
    kind = choice.get("type", "function")
    inner = choice.get(kind) if isinstance(kind, str) else None
    flat = dict(inner) if isinstance(inner, Mapping) else dict(choice)
    wanted: Item = {**flat, "type": kind}
    if kind in CALLED_BY_NAME:
        if not isinstance(wanted.get("name"), str):
            raise InvalidRequest("The tool choice names no tool.")
        wanted["name"] = names.sent_name(wanted["name"])
    if kind == "allowed_tools":
        chosen = content_parts(wanted.get("tools"))
        wanted["tools"] = [_tool_choice(one, names) for one in chosen]
    return wanted


def _check_offered(wanted: Item, tools: Sequence[Item]) -> None:
    keys = ("type", "server_label", *(() if is_hosted_tool(wanted) else ("name",)))
    same = {key: wanted[key] for key in keys if key in wanted}
    if not any(same.items() <= tool.items() for tool in tools):
        name = wanted.get("name") or wanted.get("server_label") or wanted["type"]
        raise InvalidRequest(f"The tool choice asks for {name}, which is no tool here.")
