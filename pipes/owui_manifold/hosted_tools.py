"""The tools that a request offers: OpenAI's own tools, the host's, and those of
filters.

OpenAI's searches, image generation and code interpreter are offered as the valves and
the page's switches ask for them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import parse_json_object
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.mcp_servers import read_servers
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_manifold.valves import UserValves, Valves

HOST_SEARCH_TOOLS = frozenset({"search_web", "fetch_url"})
"""Open WebUI's own tools for the web, which its Web Search switch adds."""

_PLACE = ("city", "region", "country", "timezone")


def search_tools(
    valves: Valves, user: UserValves, features: Mapping[str, Any]
) -> list[Item]:
    """Return the searches to offer; raises InvalidRequest for invalid settings.

    `features` are the page's switches.
    """
    tools: list[Item] = []
    if _is_search_on(valves, user, features):
        tools.append(_web_search(valves))
    stores = _words_of_list(valves.FILE_SEARCH_VECTOR_STORES)
    if stores:
        tools.append({"type": "file_search", "vector_store_ids": stores})
    return tools


def replaces_host_search(valves: Valves, features: Mapping[str, Any]) -> bool:
    """Say whether the page's switch means OpenAI's search instead of the host's."""
    return valves.MAP_WEB_SEARCH and bool(features.get("web_search"))


def _is_search_on(
    valves: Valves, user: UserValves, features: Mapping[str, Any]
) -> bool:
    if user.WEB_SEARCH != "inherit":
        return user.WEB_SEARCH == "on"
    return valves.ENABLE_WEB_SEARCH or replaces_host_search(valves, features)


def _web_search(valves: Valves) -> Item:
    tool: Item = {
        "type": "web_search",
        "search_context_size": valves.WEB_SEARCH_CONTEXT_SIZE,
        "user_location": _location(valves.WEB_SEARCH_USER_LOCATION),
    }
    domains = [
        _domain(word) for word in _words_of_list(valves.WEB_SEARCH_ALLOWED_DOMAINS)
    ]
    return {**tool, "filters": {"allowed_domains": domains}} if domains else tool


def _location(text: str) -> Item:
    """Return the location of the user.

    A location with only its type prevents the API from assuming the United States
    (docs/reference/responses-api.md, "Hosted tools").
    """
    if text.strip().startswith("{"):
        given = parse_json_object(text)
    else:
        words = [word.strip() for word in text.split(",")]
        given = dict(zip(_PLACE, words, strict=False)) if len(words) < 5 else None
    if given is None or not all(isinstance(given.get(k, ""), str) for k in _PLACE):
        raise InvalidRequest(
            "WEB_SEARCH_USER_LOCATION is neither a JSON object nor a place. An "
            "administrator has to correct it in the valves of this pipe, for example "
            "Bern, BE, CH, Europe/Zurich (city, region, country, timezone)."
        )
    known = {key: given[key] for key in _PLACE if given.get(key)}
    return {"type": "approximate", **known}


def _words_of_list(text: str) -> list[str]:
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(word for word in words if word))


def _domain(address: str) -> str:
    """Return the domain of an address, which is the form that the API needs."""
    return address.rpartition("://")[2].partition("/")[0]


_REPLACED = {
    "image_generation": {"generate_image", "edit_image"},
    "code_interpreter": {"execute_code"},
}
"""Open WebUI's own tools for the same purpose; offering both would be ambiguous."""


def image_and_code_tools(valves: Valves, user: UserValves) -> list[Item]:
    """Return the tools to offer; raises InvalidRequest for invalid options."""
    tools: list[Item] = []
    if _is_on(user.CODE_INTERPRETER, valves.ENABLE_CODE_INTERPRETER):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    if _is_on(user.IMAGE_GENERATION, valves.ENABLE_IMAGE_GENERATION):
        options = _picture_options(valves.IMAGE_GENERATION_OPTIONS)
        tools.append({**options, "type": "image_generation"})
    return tools


def replaced_host_tools(tools: list[Item]) -> set[str]:
    """Return the names of the host's tools that `tools` replace."""
    return {name for tool in tools for name in _REPLACED.get(tool["type"], ())}


def _is_on(user: str, administrator: bool) -> bool:
    return administrator if user == "inherit" else user == "on"


def _picture_options(text: str) -> Item:
    options = parse_json_object(text.strip() or "{}")
    if options is not None:
        return options
    raise InvalidRequest(
        "IMAGE_GENERATION_OPTIONS is not a JSON object. An administrator has to correct "
        'it in the valves of this pipe, for example {"quality": "high"}.'
    )


@dataclass(frozen=True, slots=True)
class HostedTools:
    """Tools in the API's form, and the names of the host's tools that they replace."""

    items: tuple[Item, ...] = ()
    replaced: frozenset[str] = frozenset()


NO_HOSTED_TOOLS = HostedTools()


def hosted_tools(
    valves: Valves, user: UserValves, features: object, model: ResolvedModel
) -> HostedTools:
    """Return the hosted tools of a request; none if the model does not support them.

    `features` are the page's switches. The order of the tools is always that of the
    lines below, because the prompt cache depends on it. Raises InvalidRequest for
    invalid settings.
    """
    if not model.facts.hosted:
        return NO_HOSTED_TOOLS
    switches: Mapping[str, Any] = features if isinstance(features, Mapping) else {}
    made = image_and_code_tools(valves, user)
    remote = read_servers(valves.REMOTE_MCP_SERVERS_JSON).tools
    items = [*search_tools(valves, user, switches), *remote, *made]
    replaced = replaced_host_tools(made)
    if replaces_host_search(valves, switches):
        replaced |= HOST_SEARCH_TOOLS
    return HostedTools(tuple(items), frozenset(replaced))


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Tools in the API's form, with the names that it allows.

    `names.known` are the functions' own names; `choice` is the API's `tool_choice`.
    """

    items: Sequence[Item] = ()
    names: ToolNames = field(default_factory=ToolNames)
    choice: Any = None


def offer_tools(
    body: Mapping[str, Any],
    model: ResolvedModel,
    valves: Valves,
    hosted: HostedTools = NO_HOSTED_TOOLS,
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
    dropped_parameters = {*hosted.replaced, *withheld}
    tools = [tool for tool in tools if tool.get("name") not in dropped_parameters]
    if not tools:
        return OfferedTools()
    called = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    names = ToolNames(tuple(str(tool["name"]) for tool in called))
    items = names.rename_tools(tools)
    choice = responses_tool_choice(body.get("tool_choice"), items, names=names)
    return OfferedTools(items, names, choice)
