"""The tools that a request offers: OpenAI's own, the host's, and those of filters."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from openai_responses.items import Item
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_manifold.config import Config, comma_list, usable
from owui_manifold.valves import Valves

_HOST_SEARCH_TOOLS = frozenset({"search_web", "fetch_url"})
"""Open WebUI's own tools for the web, which its Web Search switch adds."""


class HostedTools(NamedTuple):
    """Tools in the API's form, and the names of the host's tools that they replace."""

    items: tuple[Item, ...] = ()
    replaced: frozenset[str] = frozenset()


_NO_HOSTED_TOOLS = HostedTools()


def hosted_tools(config: Config, model: ResolvedModel) -> HostedTools:
    """Return the hosted tools of a request; none if the model does not support them.

    Their order is always the same, because the prompt cache depends on it. Raises
    InvalidRequest for unusable valves.
    """
    if not model.facts.hosted:
        return _NO_HOSTED_TOOLS
    valves, made = config.valves, list[Item]()
    # Open WebUI's tools for the same purpose go: offering both would be ambiguous.
    replaced = set[str]()
    if config.code_interpreter:
        made.append({"type": "code_interpreter", "container": {"type": "auto"}})
        replaced.add("execute_code")
    if config.image_generation:
        made.append({**usable(config.image_options), "type": "image_generation"})
        replaced |= {"generate_image", "edit_image"}
    if config.replaces_search:
        replaced |= _HOST_SEARCH_TOOLS
    searches = [_web_search(config)] if config.web_search else []
    if stores := comma_list(valves.FILE_SEARCH_VECTOR_STORES):
        searches.append({"type": "file_search", "vector_store_ids": stores})
    items = (*searches, *config.remote.tools, *made)
    return HostedTools(items, frozenset(replaced))


def _web_search(config: Config) -> Item:
    """Return the web search.

    A location with only its type keeps the API from assuming the United States
    (docs/reference/responses-api.md, "Hosted tools").
    """
    tool: Item = {
        "type": "web_search",
        "search_context_size": config.valves.WEB_SEARCH_CONTEXT_SIZE,
        "user_location": {"type": "approximate", **usable(config.location)},
    }
    addresses = comma_list(config.valves.WEB_SEARCH_ALLOWED_DOMAINS)
    # The API takes domains only, people paste addresses.
    domains = [a.rpartition("://")[2].partition("/")[0] for a in addresses]
    return {**tool, "filters": {"allowed_domains": domains}} if domains else tool


class OfferedTools(NamedTuple):
    """Tools in the API's form, with the functions' own names and `tool_choice`."""

    items: Sequence[Item] = ()
    names: ToolNames = ToolNames()
    choice: Any = None


def offer_tools(
    body: Mapping[str, Any],
    model: ResolvedModel,
    valves: Valves,
    hosted: HostedTools = _NO_HOSTED_TOOLS,
    withheld: Collection[str] = (),
) -> OfferedTools:
    """Return the tools of a chat: OpenAI's, the host's, then those that filters added.

    A tool that the host or a filter describes replaces ours of the same kind; the
    `withheld` ones are left out. Raises InvalidRequest for a tool without a name, and
    for a choice that names no tool.
    """
    groups = [body.get(key) for key in ("tools", "extra_tools")]
    specs = [spec for group in groups if isinstance(group, list) for spec in group]
    own = responses_tools(specs, strict=valves.ENABLE_STRICT_TOOL_CALLING)
    if not model.facts.functions:
        own = []
    tools = merge_tools(hosted.items, own)
    dropped = {*hosted.replaced, *withheld}
    tools = [tool for tool in tools if tool.get("name") not in dropped]
    if not tools:
        return OfferedTools()
    called = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    names = ToolNames(tuple(str(tool["name"]) for tool in called))
    items = names.rename_tools(tools)
    choice = responses_tool_choice(body.get("tool_choice"), items, names)
    return OfferedTools(items, names, choice)
