"""The tools that a request offers: OpenAI's own, the host's, and those of filters."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from manifold.preparation import MAX_TOOLS, OfferedTools
from openai_responses.items import Item, tool_name
from openai_responses.json_input import JsonObject, as_mapping, as_text, compact_json
from openai_responses.models.resolve import (
    ResolvedModel,
    takes_hosted_tool,
    takes_search_budget,
)
from openai_responses.repairs.request_repairs import Repair, may_offer
from openai_responses.requests.tools import responses_tools
from openai_responses.tool_kinds import CALLED_BY_NAME, TOOL_KINDS
from owui_manifold.call.callers import given_tools
from owui_manifold.call.config import Config
from owui_manifold.call.expert import (
    PLACE_NAMES,
    SEARCH_VALVE,
    read_file_search_options,
    read_image_options,
    read_search_options,
)
from owui_manifold.call.valves import TOOL_SETTINGS
from owui_manifold.prepare.remote_rules import put_under_rules
from shells.valve_messages import PIPE_SHELL, valve_error

_COUNTRY_CODE = 2
"""Letters of a country's code (ISO 3166-1)."""
_MAX_STORES = 2
"""More are refused, and with them the request (docs/reference/responses-api.md)."""


def hosted_tools(
    config: Config, model: ResolvedModel, repairs: Sequence[Repair] = ()
) -> tuple[list[Item], set[str]]:
    """Return OpenAI's tools of a request, and the names of the host's they replace.

    Open WebUI's tools for the same purpose go: offering both would be ambiguous. A tool
    that `repairs` take away is left out, and replaces none. The order is always the same,
    because the prompt cache depends on it. Raises InvalidRequest for unusable valves.
    """
    usable: list[Item] = []
    for name, kind in TOOL_KINDS.items():
        is_on = name in config.tool_kinds or (model.research and name == "web_search")
        if not is_on or not _takes_kind(model, name):
            continue
        tools: Sequence[Item]
        match name:
            case "web_search":
                tools = [_web_search(config, model)]
            case "file_search":
                tools = _file_search(config)
            case "mcp":
                rules = config.approval_rules
                tools = [put_under_rules(row, rules) for row in config.remote.tools]
            case "code_interpreter":
                container = dict(kind.least["container"])
                if config.expert.code_memory != "1g":  # the default
                    container["memory_limit"] = config.expert.code_memory
                tools = [{"type": name, "container": container}]
            case "image_generation":
                given, _ = read_image_options(config.valves.IMAGE_GENERATION_OPTIONS)
                tools = [{**given.model_dump(exclude_unset=True), "type": name}]
            case _:
                tools = [{"type": name, **kind.least}]
        usable += [tool for tool in tools if may_offer(tool, repairs)]
    replaced: set[str] = set()
    for tool in usable:
        name = tool["type"]
        if name != "web_search" or config.replaces_search:
            replaced.update(TOOL_SETTINGS[name].replaced)
    return usable, replaced


def _takes_kind(model: ResolvedModel, kind: str) -> bool:
    if kind in CALLED_BY_NAME:
        return model.facts.functions
    return takes_hosted_tool(model, kind)


def _file_search(config: Config) -> Sequence[Item]:
    """Return the search in the stores of the valve, if it names any.

    Raises InvalidRequest for options that cannot be read: a search without the
    administrator's filters must not run.
    """
    text = config.valves.FILE_SEARCH_VECTOR_STORES
    options, problems = read_file_search_options(text)
    if problems:
        raise valve_error(problems[0].rstrip("."), PIPE_SHELL, _FILES_EXAMPLE)
    stores = list(options.vector_store_ids)[:_MAX_STORES]
    if not stores:
        return []
    more = options.model_dump(exclude={"vector_store_ids"}, exclude_none=True)
    return [{"type": "file_search", "vector_store_ids": stores, **more}]


_FILES_EXAMPLE = '{"vector_store_ids": ["vs_1"], "max_num_results": 5}'


def image_model_name(config: Config) -> str:
    """Return the model that IMAGE_GENERATION_OPTIONS names, if any."""
    options, _ = read_image_options(config.valves.IMAGE_GENERATION_OPTIONS)
    return options.model


def _web_search(config: Config, model: ResolvedModel) -> Item:
    """Return the web search with the options of WEB_SEARCH_OPTIONS.

    A model that researches has an unlimited budget for what searches return; one that
    knows no budget gets none.

    A location with only its type keeps the API from assuming the United States
    (docs/reference/responses-api.md, "Hosted tools"). Raises InvalidRequest for options
    that cannot be read: a search without the administrator's filters must not run.
    """
    options, problems = read_search_options(config.valves.WEB_SEARCH_OPTIONS)
    if problems:
        raise valve_error(problems[0].rstrip("."), PIPE_SHELL, _SEARCH_EXAMPLE)
    tool: Item = {
        "type": "web_search",
        "search_context_size": options.search_context_size,
        "user_location": {"type": "approximate", **_location(options.user_location)},
    }
    domains = {
        "allowed_domains": _domains(options.allowed_domains),
        "blocked_domains": _domains(options.blocked_domains),
    }
    filters = {name: given for name, given in domains.items() if given}
    if filters:
        tool["filters"] = filters
    if not options.external_web_access:
        tool["external_web_access"] = False
    budget = "unlimited" if model.research else options.return_token_budget
    if budget != "default" and takes_search_budget(model):
        tool["return_token_budget"] = budget
    return tool


def unused_search_budget(config: Config, model: ResolvedModel) -> str:
    """Return the message that a model's search has no budget, if one is set.

    The filters of an administrator are always sent: what rejects them gets no search.
    """
    options, _ = read_search_options(config.valves.WEB_SEARCH_OPTIONS)
    is_set = options.return_token_budget != "default"
    is_searching = "web_search" in config.tool_kinds
    if not is_set or not is_searching or takes_search_budget(model):
        return ""
    return f"{SEARCH_VALVE}: {model.name} has no `return_token_budget`. It is not sent."


_SEARCH_EXAMPLE = '{"allowed_domains": ["who.int"], "user_location": "Bern, BE, CH"}'


def _domains(addresses: Sequence[str]) -> list[str]:
    """Return the domains of addresses: the API takes domains only, users paste more."""
    domains: list[str] = []
    for address in addresses:
        without_scheme = address.strip().split("://", 1)[-1]
        domain = re.split("[/:]", without_scheme)[0]
        if domain:
            domains.append(domain)
    return domains


def _location(setting: str | Mapping[str, str]) -> dict[str, str]:
    """Return a location by the API's names, from an object or from words in their order.

    A country that is not a code of two letters would be refused, so it is left out.
    """
    given: Mapping[str, str]
    if isinstance(setting, str):
        words = [word.strip() for word in setting.split(",")]
        given = dict(zip(PLACE_NAMES, words, strict=False))  # the last may be missing
    else:
        given = setting
    location = {name: given[name] for name in PLACE_NAMES if given.get(name)}
    if len(location.get("country", "")) != _COUNTRY_CODE:
        location.pop("country", None)
    return location


def called_tools(
    config: Config,
    model: ResolvedModel,
    body: JsonObject,
    log: Callable[[str], object],
) -> list[Item]:
    """Return the host's tools of a chat, then those that filters added.

    `log` is told of those that are too large. Raises InvalidRequest for a tool without
    a name.
    """
    specs = given_tools(body)
    strict = config.expert.strict_tool_calling
    known: tuple[list[Item], list[str]] | None = None
    with suppress(TypeError, ValueError, RecursionError):  # no JSON, or too deep
        text = compact_json(specs)
        if len(text) <= _MAX_REMEMBERED:
            known = _known_tools(text, strict)
    tools, log_lines = known or _read_tools(specs, strict)
    for line in log_lines:
        log(line)
    taken = [tool for tool in tools if _takes_kind(model, tool["type"])]
    return [put_under_rules(tool, config.approval_rules) for tool in taken]


_MAX_REMEMBERED = 50_000
"""Bytes of tools that are remembered: those of some fifty usual ones."""


@lru_cache(maxsize=16)
def _known_tools(text: bytes, strict: bool) -> tuple[list[Item], list[str]]:
    """Read the tools of a JSON text, which most requests of a server have in common.

    Requests share the tools that are returned, so they must not be changed.
    """
    return _read_tools(json.loads(text), strict)


def _read_tools(specs: list[Any], strict: bool) -> tuple[list[Item], list[str]]:
    log_lines: list[str] = []
    tools = responses_tools(specs, strict=strict, log=log_lines.append)
    return tools, log_lines


def left_out_tools(
    body: JsonObject,
    model: ResolvedModel,
    called: Sequence[Item],
    offered: OfferedTools,
    builtin: Collection[str],
) -> dict[str, str]:
    """Return the tools of a body that are not offered, with the reasons, by names.

    `called` are those that were read. Of what was too large the log has a line already,
    and of Open WebUI's own tools OpenAI's replace some by design.
    """
    offered_names = {*offered.names.known, *map(tool_name, offered.items)}
    called_names = {tool_name(tool) for tool in called}
    left_out: dict[str, str] = {}
    for given in map(as_mapping, given_tools(body)):
        kind = as_text(given.get("type")) or "function"
        name = tool_name(as_mapping(given.get(kind)) or given)
        if name in offered_names or name in builtin:
            continue
        if model.research:
            reason = "a model that researches gets only OpenAI's tools"
        elif not _takes_kind(model, kind):
            reason = f"{model.name} takes no such tool"
        elif name not in called_names:
            continue
        elif len(offered.items) == MAX_TOOLS:
            reason = f"the API takes at most {MAX_TOOLS} tools"
        else:
            reason = "OpenAI's own tool replaces it"
        left_out[f"the tool {name}"] = reason
    return left_out
