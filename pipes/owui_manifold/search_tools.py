"""OpenAI's searches, as the valves and the page's switch ask for them."""

from collections.abc import Mapping
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_texts import typed_object
from owui_manifold.valves import UserValves, Valves

HOSTS_SEARCHES = frozenset({"search_web", "fetch_url"})
"""Open WebUI's own tools for the web, which its switch brings (open-webui.md §11)."""

_PLACE = ("city", "region", "country", "timezone")


def search_tools(
    valves: Valves, user: UserValves, features: Mapping[str, Any]
) -> list[Item]:
    """Return the searches to offer; raises InvalidRequest for settings that mean none.

    `features` are the page's switches.
    """
    tools: list[Item] = []
    if _searches_web(valves, user, features):
        tools.append(_web_search(valves))
    stores = _words_of_list(valves.FILE_SEARCH_VECTOR_STORES)
    if stores:
        tools.append({"type": "file_search", "vector_store_ids": stores})
    return tools


def replaces_hosts_search(valves: Valves, features: Mapping[str, Any]) -> bool:
    """Say whether the page's switch means OpenAI's search instead of the host's."""
    return valves.MAP_WEB_SEARCH and bool(features.get("web_search"))


def _searches_web(
    valves: Valves, user: UserValves, features: Mapping[str, Any]
) -> bool:
    if user.WEB_SEARCH != "inherit":
        return user.WEB_SEARCH == "on"
    return valves.ENABLE_WEB_SEARCH or replaces_hosts_search(valves, features)


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
    """Return where the user is.

    With nothing but its type the API does not assume the United States
    (responses-api.md §1).
    """
    if text.strip().startswith("{"):
        given = typed_object(text)
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
    """Return the domain of what somebody copied from the browser; the API wants that."""
    return address.rpartition("://")[2].partition("/")[0]
