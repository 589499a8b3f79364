"""Checks tools: names, number, hosted ones, and what `tool_choice` names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.checks.image_tool import check_image_tool
from simulator.checks.mcp import check_servers
from simulator.configuration import is_chosen, list_appended, list_items
from simulator.files import CONTAINER
from simulator.models import ModelFacts
from simulator.refusals import check_range, refuse

MAX_TOOLS = 128
MAX_NAME_CHARACTERS = 64
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
STORE_ID = re.compile("vs_")
MAX_STORES = 2
MAX_RESULTS = 50
MAX_DOMAINS = 100
FIRST_SERIES_THAT_CHOOSES_ADDED_TOOLS = (5, 6)
COUNTRY = re.compile(r"[A-Za-z]{2}")
DOMAIN = re.compile(r"[^\s/:]+(?:/\S*)?")
Tool = Mapping[str, Any]


def check_hosted(tools: Sequence[Tool], path: str) -> None:
    """Raise the refusal for the first value that a hosted tool does not take."""
    for index, tool in enumerate(tools):
        tool_path = f"{path}[{index}]"
        if tool["type"] == "image_generation":
            check_image_tool(tool, tool_path)
        if tool["type"] == "code_interpreter":
            _check_container(tool["container"], tool_path)
        if tool["type"] == "file_search":
            _check_stores(tool["vector_store_ids"], f"{tool_path}.vector_store_ids")
            results_path = f"{tool_path}.max_num_results"
            wanted = tool.get("max_num_results")
            # Source: types of openai 3.54.0; the wording is assumed.
            check_range(results_path, "integer", wanted, 1, MAX_RESULTS)
        if tool["type"] == "web_search":
            _check_search_place(tool, tool_path)


def _check_container(container: str | Tool, path: str) -> None:
    """Source: litellm 30936; the wording is assumed."""
    if isinstance(container, str) and container != CONTAINER:
        raise refuse("tool_container", id=container, path=path)


def _check_stores(stores: list[str], path: str) -> None:
    """Source: openai/openai-support-agent-demo 1; dimagi/open-chat-studio 3815 for the
    limit, of which only a part of the words is known; of an empty list assumed.
    """
    if not stores:
        raise refuse("empty_array", path=path)
    if len(stores) > MAX_STORES:
        raise refuse("store_count", limit=MAX_STORES)
    for index, store in enumerate(stores):
        if not STORE_ID.match(store):
            raise refuse("store_id", path=path, index=index)


def _check_search_place(tool: Tool, path: str) -> None:
    """Source: types of openai 3.54.0 for countries, guide "Web search" for domains, 100
    at most and without a scheme; the wording is assumed.
    """
    country = (tool.get("user_location") or {}).get("country")
    if country is not None and not COUNTRY.fullmatch(country):
        raise refuse(
            "pattern", path=f"{path}.user_location.country", pattern=COUNTRY.pattern
        )
    filters = tool.get("filters") or {}
    for name in ("allowed_domains", "blocked_domains"):
        _check_domains(filters.get(name) or [], f"{path}.filters.{name}")


def _check_domains(domains: Sequence[str], path: str) -> None:
    """Source: guide "Web search"; the words are assumed."""
    if len(domains) > MAX_DOMAINS:
        raise refuse("array_length", path=path, limit=MAX_DOMAINS, length=len(domains))
    for index, domain in enumerate(domains):
        if not DOMAIN.fullmatch(domain):
            raise refuse("pattern", path=f"{path}[{index}]", pattern=DOMAIN.pattern)


def check_tools(body: Tool) -> None:
    """Raise the refusal for the first invalid tool.

    Known of a tool that is both in the request and in an item: it is rejected
    (vendors: pydantic-ai 2.68.0), but not where the request defers it (recorded).
    Assumed: the words, that two items, two hosted tools of one type and what a
    compaction keeps count alike, and that the limit counts all.
    """
    lists = list_tools(body)
    count = sum(len(tools) for _, tools in lists)
    if count > MAX_TOOLS:
        raise refuse("array_length", path="tools", limit=MAX_TOOLS, length=count)
    seen: set[str] = set()
    labels: set[str] = set()
    for path, tools in lists:
        _check_names(tools, path, seen)
        check_hosted(tools, path)
        check_servers(tools, path, labels)


def list_tools(body: Tool) -> list[tuple[str, Sequence[Tool]]]:
    """Return the tools of the request and those of its items, with their paths."""
    return [("tools", body.get("tools") or []), *list_appended(list_items(body))]


def _check_names(tools: Sequence[Tool], path: str, seen: set[str]) -> None:
    """Assumed."""
    for index, tool in enumerate(tools):
        name = tool.get("name")
        if name is None:
            _check_hosted_twice(tool["type"], seen)
            continue
        check_name(name, f"{path}[{index}].name")
        if name in seen:
            raise refuse("duplicate_tool", name=name)
        if not tool.get("defer_loading"):
            seen.add(name)
        _check_names(tool.get("tools") or [], f"{path}[{index}].tools", set())


def _check_hosted_twice(kind: str, seen: set[str]) -> None:
    """Assumed."""
    if kind == "mcp":
        return  # its label counts
    # With a space, which no name has: a function may be named like a type.
    entry = f" {kind}"
    if entry in seen:
        raise refuse("duplicate_hosted_tool", kind=kind)
    seen.add(entry)


def check_name(name: str, path: str) -> None:
    """Raise the refusal for a name that is empty, too long or of other characters.

    Source: openai/codex 1289; of an empty name assumed.
    """
    if not name:
        raise refuse("empty", path=path)
    if len(name) > MAX_NAME_CHARACTERS:
        raise refuse("length", path=path, limit=MAX_NAME_CHARACTERS, length=len(name))
    if not TOOL_NAME.fullmatch(name):
        raise refuse("pattern", path=path, pattern=TOOL_NAME.pattern)


def check_choice(body: Tool, model: ModelFacts) -> None:
    """Raise the refusal for a choice that names no tool of the request.

    Source: OpenAI's agents SDK; pydantic-ai 2.68.0, also that a tool which only an item
    declares can be named from gpt-5.6 on.
    """
    choice = body.get("tool_choice")
    tools = _tools_to_choose(body, model)
    if choice == "required" and not tools:
        raise refuse("choice_without_tools")
    if not isinstance(choice, dict):
        return
    if choice["type"] != "allowed_tools":
        _check_chosen(choice, choice["type"], tools)
        return
    if not choice["tools"]:
        raise refuse("empty_array", path="tool_choice.tools")  # assumed
    for allowed in choice["tools"]:
        _check_chosen(allowed, allowed.get("name") or allowed["type"], tools)


def _tools_to_choose(body: Tool, model: ModelFacts) -> list[Tool]:
    """Return the tools that a choice can name."""
    lists = list_tools(body)
    if model.series < FIRST_SERIES_THAT_CHOOSES_ADDED_TOOLS:
        lists = lists[:1]
    return [tool for _, listed in lists for tool in listed]


def _check_chosen(chosen: Tool, name: str, tools: Sequence[Tool]) -> None:
    """Raise the refusal of a choice that names none of the tools.

    Source: OpenAI's agents SDK.
    """
    if not any(is_chosen(tool, chosen) for tool in tools):
        raise refuse("choice_of_no_tool", name=name)
