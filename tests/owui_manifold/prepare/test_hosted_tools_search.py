"""The valves and the page's switch decide which searches are offered."""

import json
from typing import Any

import pytest
from openai.types.responses import FileSearchToolParam, WebSearchToolParam
from pydantic import TypeAdapter

from calls.sample import config_of
from manifold.preparation import OfferedTools, offer_tools
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.hosted_tools import (
    called_tools,
    hosted_tools,
    unused_search_budget,
)

Json = dict[str, Any]
Hosted = tuple[list[Item], set[str]]
NOTHING: Hosted = ([], set())
SWITCHED: Json = {"web_search": True, "voice": False}
PLAIN = {
    "type": "web_search",
    "search_context_size": "medium",
    "user_location": {"type": "approximate"},
}


def hosted(
    features: object = None,
    user: str = "inherit",
    model: str = "gpt-5.6-sol",
    **valves: Any,
) -> Hosted:
    own = UserValves.model_validate({"WEB_SEARCH": user})
    config = config_of(Valves.model_validate(valves), own, {"features": features})
    return hosted_tools(config, resolve_model(model))


def search(**valves: Any) -> Item:
    """The search of the web that these valves make; the API's own type takes it."""
    [tool], _ = hosted(ENABLE_WEB_SEARCH=True, **valves)
    TypeAdapter(WebSearchToolParam).validate_python(tool)
    return tool


def search_with(**options: Any) -> Item:
    """The search that WEB_SEARCH_OPTIONS makes."""
    return search(WEB_SEARCH_OPTIONS=json.dumps(options))


def test_search_does_not_assume_the_united_states() -> None:
    """The API would, if nothing were said."""
    assert search() == PLAIN


@pytest.mark.parametrize(
    ("valve", "page", "user", "searches"),
    [
        (True, False, "inherit", True),
        (False, True, "inherit", True),
        (False, False, "on", True),
        (True, True, "off", False),
    ],
)
def test_who_turns_the_search_on(
    valve: bool, page: bool, user: str, searches: bool
) -> None:
    """The user's own choice wins over the valve and the switch."""
    tools, _ = hosted({"web_search": page}, user, ENABLE_WEB_SEARCH=valve)

    assert tools == ([PLAIN] if searches else [])


def test_switch_stands_for_the_hosts_own_search_where_it_is_not_mapped() -> None:
    """Then it brings the host's tools, which stay."""
    mapped, not_mapped = (hosted(SWITCHED, MAP_WEB_SEARCH=on) for on in (True, False))

    assert mapped == ([PLAIN], {"search_web", "fetch_url"})
    assert not_mapped == NOTHING
    assert hosted(SWITCHED, "off") == NOTHING  # else no one would search


@pytest.mark.parametrize("features", [None, [], "web_search"])
def test_nothing_is_offered_unasked(features: object) -> None:
    """Searches cost money; callers over plain HTTP send no features."""
    assert hosted(features) == NOTHING


@pytest.mark.parametrize(
    ("given", "location"),
    [
        (
            "Bern, BE, CH, Europe/Zurich",
            {
                "city": "Bern",
                "region": "BE",
                "country": "CH",
                "timezone": "Europe/Zurich",
            },
        ),
        (" , , CH,", {"country": "CH"}),
        ({"country": "CH", "type": "exact", "x": "1"}, {"country": "CH"}),
    ],
)
def test_location_is_read_from_an_object_or_words(
    given: str | Json, location: Json
) -> None:
    tool = search_with(user_location=given)

    assert tool["user_location"] == {"type": "approximate", **location}


@pytest.mark.parametrize(
    "options",
    [
        {"user_location": {"city": 7}},
        {"user_location": "a, b, c, d, e"},
        {"allowed_domains": 7},
        {"allowed_domains": ["who.int"], "blocked_domain": ["example.org"]},
        {"allowed_domains": [f"site{number}.org" for number in range(101)]},
        {"search_context_size": "huge"},
    ],
)
def test_options_that_cannot_be_read_stop_the_search(options: Json) -> None:
    """A search without the administrator's filters must not run."""
    with pytest.raises(InvalidRequest, match="WEB_SEARCH_OPTIONS") as refused:
        search_with(**options)
    assert "default applies" not in str(refused.value)


def test_domains_may_be_one_text() -> None:
    """Separated by commas, as in other valves."""
    address = "https://pubmed.example/about?from=https://elsewhere.example"
    tool = search_with(allowed_domains=f"who.int, {address}")

    assert tool["filters"] == {"allowed_domains": ["who.int", "pubmed.example"]}


def test_domains_are_those_of_copied_addresses() -> None:
    """The API wants them without a scheme."""
    tool = search_with(
        allowed_domains=["openai.com", " https://pubmed.example/about", ""],
        blocked_domains=["http://x.example:80/"],
        search_context_size="high",
    )

    assert tool["filters"] == {
        "allowed_domains": ["openai.com", "pubmed.example"],
        "blocked_domains": ["x.example"],
    }
    assert tool["search_context_size"] == "high"


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"external_web_access": False}, {"external_web_access": False}),
        ({"external_web_access": True}, {}),
        ({"return_token_budget": "unlimited"}, {"return_token_budget": "unlimited"}),
        ({"return_token_budget": "default"}, {}),
    ],
)
def test_defaults_of_the_api_are_not_sent(options: Json, sent: Json) -> None:
    """Servers that lack these options are not asked for them."""
    plain = search_with()

    assert search_with(**options) == plain | sent


@pytest.mark.parametrize(("model", "is_sent"), [("gpt-5.2", True), ("gpt-4.1", False)])
def test_budget_is_sent_to_models_that_have_one(model: str, is_sent: bool) -> None:
    """An administrator reads a message about the others."""
    options = json.dumps({"return_token_budget": "unlimited"})
    given: Json = {"ENABLE_WEB_SEARCH": True, "WEB_SEARCH_OPTIONS": options}
    [tool], _ = hosted(model=model, **given)
    note = unused_search_budget(
        config_of(Valves.model_validate(given)), resolve_model(model)
    )

    assert ("return_token_budget" in tool) == is_sent
    assert bool(note) != is_sent
    unused = config_of(Valves(ENABLE_WEB_SEARCH=False, WEB_SEARCH_OPTIONS=options))
    assert unused_search_budget(unused, resolve_model(model)) == ""


def test_file_search_follows_the_web_search() -> None:
    """The order is fixed, so that the prompt cache is read."""
    [web, files], _ = hosted(
        ENABLE_WEB_SEARCH=True, FILE_SEARCH_VECTOR_STORES="vs_1, vs_2,"
    )

    TypeAdapter(FileSearchToolParam).validate_python(files)
    assert web == PLAIN
    assert files == {"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"]}


def test_file_search_has_options() -> None:
    """As a JSON object instead of the names; the API's own type takes them."""
    options = {
        "max_num_results": 5,
        "filters": {"type": "eq", "key": "team", "value": "law"},
        "ranking_options": {"score_threshold": 0.5},
    }
    for stores in (["vs_1", "vs_2", "vs_3"], "vs_1, vs_2"):
        text = json.dumps({**options, "vector_store_ids": stores})
        [files], _ = hosted(FILE_SEARCH_VECTOR_STORES=text)

        TypeAdapter(FileSearchToolParam).validate_python(files)
        expected = {"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"]}
        assert files == {**expected, **options}


@pytest.mark.parametrize(
    "options",
    [
        "{",
        '{"vector_store_ids": 7}',
        '{"vector_store_ids": ["vs_1"], "max_num_results": 51}',
        '{"vector_store_ids": ["vs_1"], "filters": "team"}',
        '{"vector_store_ids": ["vs_1"], "filter": {"type": "eq"}}',
    ],
)
def test_a_file_search_without_its_filters_does_not_run(options: str) -> None:
    """They may keep files from people."""
    with pytest.raises(InvalidRequest, match="FILE_SEARCH_VECTOR_STORES"):
        hosted(FILE_SEARCH_VECTOR_STORES=options)


@pytest.mark.parametrize("model", ["gpt-4.1-unheard-of"])
def test_model_without_hosted_tools_gets_none(model: str) -> None:
    """It would refuse the request; the host's own tools stay."""
    assert hosted(SWITCHED, model=model, ENABLE_WEB_SEARCH=True) == NOTHING


@pytest.mark.parametrize("model", ["my-deployment", "gpt-4.1"])
def test_model_that_may_have_them_gets_them(model: str) -> None:
    """A deployment has any name: the administrator knows."""
    assert hosted(model=model, ENABLE_WEB_SEARCH=True) == ([PLAIN], set())


def function(name: str) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


def offer(body: Json, tools: Hosted) -> OfferedTools:
    called = called_tools(body, resolve_model("gpt-5.6-sol"), PipeExpertKeys())
    hosted_ones, withheld = tools
    return offer_tools(body.get("tool_choice"), hosted_ones, called, withheld)


def offered(body: Json, tools: Hosted) -> list[Any]:
    """The names or types of all tools of a chat."""
    offered_tools = offer(body, tools)
    return [tool.get("name") or tool["type"] for tool in offered_tools.items]


def test_hosted_tools_come_first_and_replace_the_hosts() -> None:
    """The same order in every request."""
    names = ("look", "search_web", "fetch_url", "read")
    body = {"tools": [function(name) for name in names]}

    assert offered(body, hosted(SWITCHED)) == ["web_search", "look", "read"]
    assert offered(body, hosted(ENABLE_WEB_SEARCH=True)) == ["web_search", *names]


def test_search_of_a_filter_takes_the_place_of_ours() -> None:
    """It says what it wants of it."""
    own = {"type": "web_search", "search_context_size": "low"}
    tools = hosted(ENABLE_WEB_SEARCH=True)

    offered_tools = offer({"extra_tools": [own]}, tools)

    assert offered_tools.items == [own]
