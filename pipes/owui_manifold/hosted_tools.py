"""The tools that a request offers: OpenAI's own, the host's, and those of filters."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from openai_responses.errors import PIPE_VALVES, valve_error
from openai_responses.items import Item, json_digest, tool_name
from openai_responses.json_input import JsonObject, as_list, parse_json_object
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.tools import (
    CALLED_BY_NAME,
    ToolNames,
    is_hosted_tool,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_manifold.config import Config, comma_list
from owui_manifold.expert import ExpertSettings, WebSearchOptions
from owui_manifold.valves import Valves
from shells.json_valve import read_json_valve

_REPLACED = {
    "web_search": ("search_web", "fetch_url"),
    "code_interpreter": ("execute_code",),
    "image_generation": ("generate_image", "edit_image"),
}
"""Open WebUI's tools for the same purpose, by the type of OpenAI's."""

_PLACE = ("city", "region", "country", "timezone")
_COUNTRY_CODE = 2
"""Letters of a country's code (ISO 3166-1)."""
_MAX_STORES = 2
"""More are refused, and with them the request (docs/reference/responses-api.md)."""


def hosted_tools(
    config: Config, model: ResolvedModel, refused: Collection[str] = ()
) -> tuple[list[Item], set[str]]:
    """Return OpenAI's tools of a request, and the names of the host's they replace.

    Open WebUI's tools for the same purpose go: offering both would be ambiguous. Those
    for a tool stay whose digest is among the `refused` ones. The order is always the
    same, because the prompt cache depends on it. Raises InvalidRequest for unusable
    valves.
    """
    usable = [
        tool
        for tool in _configured_tools(config, partial(_takes, model))
        if json_digest(tool) not in refused
    ]
    replaced = {name for tool in usable for name in _REPLACED.get(tool["type"], ())}
    kept = () if config.replaces_search else _REPLACED["web_search"]
    return usable, replaced.difference(kept)


def _configured_tools(config: Config, takes: Callable[[str], bool]) -> Iterator[Item]:
    """Yield the tools that are switched on and that a model takes."""
    if config.web_search and takes("web_search"):
        yield _web_search(config)
    stores = comma_list(config.valves.FILE_SEARCH_VECTOR_STORES)[:_MAX_STORES]
    servers = config.remote.tools if takes("mcp") else ()
    if stores and takes("file_search"):
        yield {"type": "file_search", "vector_store_ids": stores}
    yield from servers
    if config.code_interpreter and takes("code_interpreter"):
        yield {"type": "code_interpreter", "container": {"type": "auto"}}
    if config.image_generation and takes("image_generation"):
        yield {**_image_options(config.valves), "type": "image_generation"}


def _takes(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model takes a type of tools; older web searches have longer names."""
    if kind in CALLED_BY_NAME:
        return model.facts.functions
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def _image_options(valves: Valves) -> Item:
    options = parse_json_object(valves.IMAGE_GENERATION_OPTIONS.strip() or "{}")
    if options is None:
        problem = "IMAGE_GENERATION_OPTIONS is not a JSON object"
        raise valve_error(problem, '{"quality": "high"}')
    return options


def _web_search(config: Config) -> Item:
    """Return the web search with the options of WEB_SEARCH_OPTIONS.

    A location with only its type keeps the API from assuming the United States
    (docs/reference/responses-api.md, "Hosted tools"). Raises InvalidRequest for options
    that cannot be read: a search without the administrator's filters must not run.
    """
    options, problems = read_json_valve(
        _SEARCH_VALVE, config.valves.WEB_SEARCH_OPTIONS, WebSearchOptions
    )
    if problems:
        raise valve_error(problems[0].rstrip("."), _SEARCH_EXAMPLE, place=PIPE_VALVES)
    tool: Item = {
        "type": "web_search",
        "search_context_size": options.search_context_size,
        "user_location": {"type": "approximate", **_location(options.user_location)},
    }
    filters = {
        "allowed_domains": _domains(options.allowed_domains),
        "blocked_domains": _domains(options.blocked_domains),
    }
    filters = {name: domains for name, domains in filters.items() if domains}
    if filters:
        tool["filters"] = filters
    if not options.external_web_access:
        tool["external_web_access"] = False
    if options.return_token_budget != "default":
        tool["return_token_budget"] = options.return_token_budget
    return tool


_SEARCH_VALVE = "WEB_SEARCH_OPTIONS"
_SEARCH_EXAMPLE = '{"allowed_domains": ["who.int"], "user_location": "Bern, BE, CH"}'


def _domains(addresses: Sequence[str]) -> list[str]:
    """Return the domains of addresses: the API takes domains only, people paste more."""
    domains = []
    for address in addresses:
        without_scheme = address.strip().rpartition("://")[2]
        domains.append(re.split("[/:]", without_scheme)[0])
    return [domain for domain in domains if domain]


def _location(given: str | Mapping[str, str]) -> dict[str, str]:
    """Return a place by the API's names, from an object or from words in their order.

    A country that is no code of two letters would be refused, so it is left out.
    """
    if isinstance(given, str):
        words = [word.strip() for word in given.split(",")]
        if len(words) > len(_PLACE):
            problem = f"{_SEARCH_VALVE}: `user_location` has more than four words"
            raise valve_error(problem, _SEARCH_EXAMPLE, place=PIPE_VALVES)
        given = dict(zip(_PLACE, words, strict=False))
    place = {name: given[name] for name in _PLACE if given.get(name)}
    if len(place.get("country", "")) != _COUNTRY_CODE:
        place.pop("country", None)
    return place


class OfferedTools(NamedTuple):
    """Tools in the API's form, with the functions' own names and `tool_choice`."""

    items: Sequence[Item] = ()
    names: ToolNames = ToolNames()
    choice: Any = None
    notice: str = ""
    """What the person who asked is told, if anything."""


def called_tools(
    body: JsonObject,
    model: ResolvedModel,
    expert: ExpertSettings,
    log: Callable[[str], object] = str,
) -> list[Item]:
    """Return the host's tools of a chat, then those that filters added.

    `log` is told of those that are too large. Raises InvalidRequest for a tool without
    a name.
    """
    specs = as_list(body.get("tools")) + as_list(body.get("extra_tools"))
    text = _tools_text(specs)
    strict = expert.strict_tool_calling
    is_usual = 0 < len(text) <= _LONGEST_REMEMBERED
    tools, lines = (
        _known_tools(text, strict) if is_usual else _read_tools(specs, strict)
    )
    for line in lines:
        log(line)
    return [tool for tool in tools if _takes(model, tool["type"])]


_LONGEST_REMEMBERED = 100_000


def _tools_text(specs: list[Any]) -> str:
    """Return the text of tools; an empty one if some are no JSON, or too deep."""
    try:
        return json.dumps(specs)
    except (TypeError, ValueError, RecursionError):
        return ""


@lru_cache(maxsize=32)
def _known_tools(text: str, strict: bool) -> tuple[list[Item], list[str]]:
    """Read the tools of a JSON text, which most requests of a server have in common."""
    return _read_tools(json.loads(text), strict)


def _read_tools(specs: list[Any], strict: bool) -> tuple[list[Item], list[str]]:
    """Return tools in the API's form, and lines for the log."""
    lines = list[str]()
    return responses_tools(specs, strict=strict, log=lines.append), lines


_MOST_TOOLS = 128
"""Longer lists are refused (docs/reference/responses-api.md, "Function tools")."""
_TOO_MANY = (
    "{} tools were left out: the API takes at most {}. Switch off tools that this chat "
    "does not need."
)
_TOOL_SEARCH: Item = {"type": "tool_search"}
_MOST_AT_ONCE = 64
"""Beside a search, which finds the others."""
_NAMESPACE_TOOLS = 9
"""The guide "Tool search" advises fewer than ten."""
_MOST_SEARCHED = _MOST_AT_ONCE + (_MOST_TOOLS - _MOST_AT_ONCE - 1) * _NAMESPACE_TOOLS


def tool_search(config: Config, model: ResolvedModel) -> list[Item]:
    """Return the search for tools, if the model has one that works.

    gpt-5.4 has it, too, but ends in a `server_error` where some tools are deferred and
    others are not (docs/reference/responses-api.md, "Function tools").
    """
    is_strict = config.valves.COMPATIBILITY == "strict"
    return [_TOOL_SEARCH] if model.facts.appends_tools and not is_strict else []


def offer_tools(
    choice: object,
    hosted: Sequence[Item] = (),
    called: Sequence[Item] = (),
    withheld: Collection[str] = (),
    builtin: Collection[str] = (),
) -> OfferedTools:
    """Return the tools of a chat: OpenAI's, then the others, and the choice.

    One of the others replaces OpenAI's of the same kind; the `withheld` ones are left
    out. Of too many OpenAI's are kept, then those that people attached, then the
    `builtin` ones. With our search for tools among the `hosted` the model finds the
    rest; that of a filter stays as it is.
    Raises InvalidRequest for a choice that names no tool.
    """
    merged = merge_tools(hosted, called)
    others = [tool for tool in merged if tool is not _TOOL_SEARCH]
    most = _MOST_TOOLS if len(others) == len(merged) else _MOST_SEARCHED
    tools = [tool for tool in others if tool.get("name") not in withheld]
    if len(tools) > _MOST_TOOLS:
        tools.sort(key=lambda t: 0 if is_hosted_tool(t) else 1 + (t["name"] in builtin))
    lost = len(tools) - most
    notice = _TOO_MANY.format(lost, most) if lost > 0 else ""
    if not tools:
        return OfferedTools()
    known = (str(t["name"]) for t in tools[:most] if not is_hosted_tool(t))
    names = ToolNames(tuple(known))
    items = names.rename_tools(tools[:most])
    chosen = responses_tool_choice(choice, items, names)
    if len(items) > _MOST_TOOLS:
        items = [*items[:_MOST_AT_ONCE], *_searched_tools(items[_MOST_AT_ONCE:])]
    return OfferedTools(items, names, chosen, notice)


def _searched_tools(tools: Sequence[Item]) -> list[Item]:
    """Return a search, and namespaces with `tools`, which the model reads when found.

    Tools of one server often begin with the same word.
    """
    found = [_TOOL_SEARCH]
    ordered = sorted(tools, key=_first_word)
    for start in range(0, len(ordered), _NAMESPACE_TOOLS):
        inner = ordered[start : start + _NAMESPACE_TOOLS]
        space: Item = {
            "type": "namespace",
            "name": f"{_first_word(inner[0])}_{len(found)}",
            "description": f"Functions: {', '.join(map(tool_name, inner))}",
            "tools": [{**tool, "defer_loading": True} for tool in inner],
        }
        found.append(space)
    return found


def _first_word(tool: Item) -> str:
    return tool_name(tool).split("_")[0][:50]
