"""The tools that OpenAI itself runs, as the valves and the page's switches ask for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openai_responses.items import Item
from openai_responses.mcp_servers import read_servers
from openai_responses.models import ResolvedModel
from owui_manifold.made_tools import made_tools, replaced_by
from owui_manifold.search_tools import (
    HOSTS_SEARCHES,
    replaces_hosts_search,
    search_tools,
)
from owui_manifold.valves import UserValves, Valves


@dataclass(frozen=True, slots=True)
class HostedTools:
    """Tools in the API's form, and the names of the host's tools they stand in for."""

    items: tuple[Item, ...] = ()
    replaced: frozenset[str] = frozenset()


NO_HOSTED_TOOLS = HostedTools()


def hosted_tools(
    valves: Valves, user: UserValves, features: object, model: ResolvedModel
) -> HostedTools:
    """Return what a request offers; nothing where the model takes no such tools.

    `features` are the page's switches. The order of the tools is that of the lines
    below, always, because the prompt cache lives on it. Raises InvalidRequest for
    settings that mean nothing.
    """
    if not model.facts.hosted:
        return NO_HOSTED_TOOLS
    switches: Mapping[str, Any] = features if isinstance(features, Mapping) else {}
    made = made_tools(valves, user)
    remote = read_servers(valves.REMOTE_MCP_SERVERS_JSON).tools
    items = [*search_tools(valves, user, switches), *remote, *made]
    replaced = replaced_by(made)
    if replaces_hosts_search(valves, switches):
        replaced |= HOSTS_SEARCHES
    return HostedTools(tuple(items), frozenset(replaced))
