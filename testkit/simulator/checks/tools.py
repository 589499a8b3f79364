"""Checks tools: names, number, hosted ones, and what `tool_choice` names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.checks.mcp import check_servers
from simulator.configuration import is_chosen, list_appended, list_items
from simulator.files import CONTAINER
from simulator.models import ModelFacts
from simulator.refusals import check_length, check_range, refuse

IMAGE_RANGES = {"partial_images": (0, 3), "output_compression": (0, 100)}
RETIRED_IMAGE_MODELS = ("gpt-image-1",)
WITHOUT_TRANSPARENCY = ("gpt-image-2", "gpt-image-2-2026-04-21")
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
            _check_image_options(tool, tool_path)
        if tool["type"] == "code_interpreter":
            container = tool["container"]
            # Source: litellm 30936; the wording is assumed.
            if isinstance(container, str) and container != CONTAINER:
                raise refuse("tool_container", id=container, path=tool_path)
        if tool["type"] == "file_search":
            _check_stores(tool["vector_store_ids"], f"{tool_path}.vector_store_ids")
            results_path = f"{tool_path}.max_num_results"
            wanted = tool.get("max_num_results")
            # Source: types of openai 3.54.0; the wording is assumed.
            check_range(results_path, "integer", wanted, 1, MAX_RESULTS)
        if tool["type"] == "web_search":
            _check_search_place(tool, tool_path)


def _check_image_options(tool: Tool, path: str) -> None:
    """Raise the refusal for the first invalid option, as far as somebody saw them refused.

    A transparent background is a preview for some organizations; the message names no
    place. Source: Wei-Shaw/sub2api 7150, 2026-09-15; GPT2Image-Pro 2; of the ranges the
    types of openai 3.54.0, `types/responses/tool_param.py`. Their words are assumed.
    """
    for name, (low, high) in IMAGE_RANGES.items():
        check_range(f"{path}.{name}", "integer", tool.get(name), low, high)
    model = tool.get("model")
    if model in RETIRED_IMAGE_MODELS:
        raise refuse("retired_model", model=model)
    if tool.get("background") == "transparent" and model in WITHOUT_TRANSPARENCY:
        raise refuse("transparent_preview")


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
    if country is not None:
        _check_pattern(country, COUNTRY, f"{path}.user_location.country")
    filters = tool.get("filters") or {}
    for name in ("allowed_domains", "blocked_domains"):
        domains = filters.get(name) or []
        place = f"{path}.filters.{name}"
        count = len(domains)
        if count > MAX_DOMAINS:
            raise refuse("array_length", path=place, limit=MAX_DOMAINS, length=count)
        for index, domain in enumerate(domains):
            _check_pattern(domain, DOMAIN, f"{place}[{index}]")


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
    return [("tools", body.get("tools") or []), *list_appended(list_items(body))]


def _check_names(tools: Sequence[Tool], path: str, seen: set[str]) -> None:
    """Assumed."""
    for index, tool in enumerate(tools):
        name = tool.get("name")
        if name is None:
            # With a space, which no name has: a function may be named like a type.
            kind = f" {tool['type']}"
            if kind in seen:
                raise refuse("duplicate_hosted_tool", kind=tool["type"])
            if tool["type"] != "mcp":  # its label counts
                seen.add(kind)
            continue
        check_name(name, f"{path}[{index}].name")
        if name in seen:
            raise refuse("duplicate_tool", name=name)
        if not tool.get("defer_loading"):
            seen.add(name)
        _check_names(tool.get("tools") or [], f"{path}[{index}].tools", set())


def check_name(name: str, path: str) -> None:
    """Raise the refusal for a name that is empty, too long or of other characters.

    Source: openai/codex 1289; of an empty name assumed.
    """
    if not name:
        raise refuse("empty", path=path)
    check_length(name, MAX_NAME_CHARACTERS, path)
    _check_pattern(name, TOOL_NAME, path)


def _check_pattern(value: str, pattern: re.Pattern[str], path: str) -> None:
    if not pattern.fullmatch(value):
        raise refuse("pattern", path=path, pattern=pattern.pattern)


def check_choice(body: Tool, model: ModelFacts) -> None:
    """Raise the refusal for a choice that names no tool of the request.

    Source: OpenAI's agents SDK; pydantic-ai 2.68.0, also that a tool which only an item
    declares can be named from gpt-5.6 on.
    """
    choice = body.get("tool_choice")
    lists = list_tools(body)
    if model.series < FIRST_SERIES_THAT_CHOOSES_ADDED_TOOLS:
        lists = lists[:1]
    tools = [tool for _, listed in lists for tool in listed]
    if choice == "required" and not tools:
        raise refuse("choice_without_tools")
    if not isinstance(choice, dict):
        return
    chosen = [choice]
    if choice["type"] == "allowed_tools":
        chosen = choice["tools"]
        if not chosen:
            raise refuse("empty_array", path="tool_choice.tools")  # assumed
    for one in chosen:
        name = one["type"] if one is choice else one.get("name") or one["type"]
        if not any(is_chosen(tool, one) for tool in tools):
            raise refuse("choice_of_no_tool", name=name)
