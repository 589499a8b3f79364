"""Which tools are offered: of OpenAI, of the host, and of filters."""

import json
from typing import Any

import pytest
from openai.types.responses import FileSearchToolParam, WebSearchToolParam
from openai.types.responses.tool_param import CodeInterpreter
from pydantic import TypeAdapter

from calls.sample import config_of
from calls.valves import expert
from manifold.preparation import OfferedTools, offer_tools
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.tools import ToolNames
from owui_manifold.call.config import read_config
from owui_manifold.call.model_valves import read_overrides
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.hosted_tools import (
    called_tools,
    hosted_tools,
    left_out_tools,
    unused_search_budget,
)

Json = dict[str, Any]


def function(name: str, description: str = "A tool.") -> Json:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    inner = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": inner}


OVERRIDES = read_overrides(
    json.dumps(
        {
            "silent": {"like": "gpt-5.2", "functions": False},
            "plain": {"like": "gpt-4.1", "hosted": False},
        }
    )
)


def offered(body: Json, model: str = "gpt-5.6-sol", **keys: Any) -> OfferedTools:
    called = called_by_name(body, model, **keys)
    return offer_tools(body.get("tool_choice"), called=called)


def called_by_name(body: Json, model: str = "gpt-5.6-sol", **keys: Any) -> list[Item]:
    config = read_config(Valves(EXPERT_JSON=expert(**keys)))
    told = list[str]()
    return called_tools(config, resolve_model(model, OVERRIDES), body, told.append)


@pytest.mark.parametrize("body", [{"tools": []}, {"tools": "none", "extra_tools": {}}])
def test_chat_without_tools_offers_none(body: Json) -> None:
    """A choice among none would be refused."""
    assert offered({**body, "tool_choice": "required"}) == OfferedTools()


def test_model_that_calls_nothing_gets_nothing() -> None:
    assert offered({"tools": [function("look")]}, "silent") == OfferedTools()


def test_hosted_tool_that_a_model_lacks_is_not_offered() -> None:
    """Not even by a filter: it would refuse every message."""
    tools = [{"type": "web_search"}, {"type": "web_search_preview"}, {"type": "mcp"}]
    body = {"tools": [function("look")], "extra_tools": tools}

    kinds = {
        model: [tool["type"] for tool in offered(body, model).items]
        for model in ("gpt-5", "gpt-5-nano", "plain", "silent")
    }

    others = ["web_search", "web_search_preview", "mcp"]
    assert kinds == {
        "gpt-5": ["function", *others],
        "gpt-5-nano": ["function", "mcp"],
        "plain": ["function"],
        "silent": others,
    }


LOOK = function("look")
CUSTOM: Json = {"type": "custom", "custom": {"name": "note"}}
MANY = [function(f"t{number}") for number in range(128)]
TOO_DEEP: Json = {"type": "function", "name": "deep", "parameters": {"a": {}}}
for _ in range(200):
    TOO_DEEP["parameters"] = {"properties": {"a": TOO_DEEP["parameters"]}}


@pytest.mark.parametrize(
    ("model", "body", "withheld", "names", "reason"),
    [
        ("gpt-5.2", {"tools": [LOOK], "extra_tools": [CUSTOM]}, (), [], ""),
        (
            *("silent", {"tools": [LOOK], "extra_tools": [CUSTOM]}, ()),
            *(["look", "note"], "silent takes no such tool"),
        ),
        (
            *("plain", {"extra_tools": [{"type": "web_search"}, {"type": "mcp"}]}, ()),
            *(["web_search", "mcp"], "plain takes no such tool"),
        ),
        (
            *("gpt-6.1-sol-research", {"tools": [LOOK]}, ()),
            *(["look"], "a model that researches gets only OpenAI's tools"),
        ),
        (
            *("gpt-5.2", {"tools": [LOOK, CUSTOM, function("own")]}, ("look", "own")),
            *(["look"], "OpenAI's own tool replaces it"),
        ),
        (
            *("gpt-5.2", {"tools": [*MANY, LOOK]}, ()),
            *(["look"], "the API takes at most 128 tools"),
        ),
        # It has a line of its own.
        ("gpt-5.2", {"tools": [LOOK, TOO_DEEP]}, (), [], ""),
        ("gpt-5.2", {"tools": [7, {"type": 7}, {}]}, (), [], ""),
    ],
)
def test_tool_of_a_caller_that_is_not_offered_has_a_reason(
    model: str, body: Json, withheld: tuple[str, ...], names: list[str], reason: str
) -> None:
    """Open WebUI's own are not the caller's."""
    resolved = resolve_model(model, OVERRIDES)
    called: list[Json] = []
    if not resolved.research and 7 not in body.get("tools", ()):
        called = called_by_name(body, model)
    offered = offer_tools(None, (), called, withheld)

    lost = left_out_tools(body, resolved, called, offered, {"own"})

    assert lost == {f"the tool {name}": reason for name in names}


def test_tools_of_filters_come_behind_and_win() -> None:
    """By name; the order of the others stays."""
    body = {
        "tools": [function("look", "Old."), function("listen")],
        "extra_tools": [function("look", "New."), {"type": "web_search"}],
    }

    tools = offered(body)

    assert [tool.get("name") for tool in tools.items] == ["look", "listen", None]
    assert tools.items[0]["description"] == "New."
    assert tools.items[2] == {"type": "web_search"}
    assert tools.names.known == ("look", "listen")


def test_names_that_the_api_forbids_are_mapped_there_and_back() -> None:
    """A `tool_choice` has to name what was sent."""
    body = {
        "tools": [function("server:list files")],
        "tool_choice": {"type": "function", "function": {"name": "server:list files"}},
    }

    tools = offered(body)

    [sent] = [tool["name"] for tool in tools.items]
    assert sent == ToolNames(tools.names.known).sent_name("server:list files")
    assert sent != "server:list files"
    assert tools.names.own_name(sent) == "server:list files"
    assert tools.choice == {"type": "function", "name": sent}


@pytest.mark.parametrize("strict", [True, False])
def test_valve_makes_functions_strict(strict: bool) -> None:
    """Where their schemas allow it."""
    tools = offered({"tools": [function("look")]}, strict_tool_calling=strict)

    [tool] = tools.items
    assert tool["strict"] is strict
    assert ("required" in tool["parameters"]) is strict


CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
PICTURES = {"type": "image_generation", "partial_images": 2}
BOTH_ON = {"ENABLE_CODE_INTERPRETER": True, "ENABLE_IMAGE_GENERATION": True}
BOTH_OFF = {"CODE_INTERPRETER": "off", "IMAGE_GENERATION": "off"}
NO_OBJECT = "IMAGE_GENERATION_OPTIONS is not a JSON object"
NO_JSON = "IMAGE_GENERATION_OPTIONS is not JSON"


def made(
    valves: dict[str, Any], user: dict[str, Any] | None = None
) -> tuple[list[Item], set[str]]:
    """The tools of a request, and what they replace."""
    chosen = UserValves.model_validate(user or {})
    config = config_of(Valves.model_validate(valves), chosen)
    return hosted_tools(config, resolve_model("gpt-5.6-sol"))


def made_tools(valves: dict[str, Any], user: dict[str, Any] | None = None) -> list[Any]:
    return made(valves, user)[0]


@pytest.mark.parametrize(
    ("valves", "user", "tools"),
    [
        ({}, {}, []),  # pictures and code are billed
        (BOTH_ON, {}, [CODE, PICTURES]),
        (BOTH_ON, BOTH_OFF, []),
        ({}, {"IMAGE_GENERATION": "on"}, [PICTURES]),
        ({"ENABLE_CODE_INTERPRETER": True}, {"IMAGE_GENERATION": "off"}, [CODE]),
    ],
)
def test_a_users_choice_wins(
    valves: dict[str, Any], user: dict[str, Any], tools: list[Any]
) -> None:
    assert made_tools(valves, user) == tools


@pytest.mark.parametrize(
    ("memory", "container"),
    [("1g", {"type": "auto"}), ("4g", {"type": "auto", "memory_limit": "4g"})],
)
def test_the_container_has_the_memory_that_is_paid_for(
    memory: str, container: dict[str, str]
) -> None:
    """The API's own default is not sent, so the bytes of other chats stay."""
    valves = {
        "ENABLE_CODE_INTERPRETER": True,
        "EXPERT_JSON": expert(code_memory=memory),
    }
    [tool] = made_tools(valves)
    assert tool == {"type": "code_interpreter", "container": container}
    TypeAdapter(CodeInterpreter).validate_python(tool)


@pytest.mark.parametrize(
    ("text", "kept", "told"),
    [
        ("", {}, []),
        ('{"quality": "high"}', {"quality": "high"}, []),
        (
            '{"type": "other"}',
            {},
            ["IMAGE_GENERATION_OPTIONS contains unknown names: type. Known keys: "],
        ),
        (
            '{"qualty": "high", "size": "1024x1024"}',
            {"size": "1024x1024"},
            [
                "IMAGE_GENERATION_OPTIONS contains unknown names: qualty. "
                "Known keys: quality, size, "
            ],
        ),
        (
            '{"quality": "best"}',
            {},
            ["IMAGE_GENERATION_OPTIONS: `quality` cannot be 'best'. "],
        ),
        (
            '{"partial_images": 9}',
            {"partial_images": 3},
            ["IMAGE_GENERATION_OPTIONS: `partial_images` cannot be 9. "],
        ),
        ("high", {}, [f"{NO_JSON} (line 1, column 1)"]),
        ("[1]", {}, [NO_OBJECT]),
        pytest.param("[" * 100_000, {}, [NO_JSON], id="brackets"),
    ],
)
def test_wrong_option_of_images_is_told_with_the_right_ones(
    text: str, kept: dict[str, Any], told: list[str]
) -> None:
    """The API would refuse the whole tool, and chats would go on without it."""
    valves = {"ENABLE_IMAGE_GENERATION": True, "IMAGE_GENERATION_OPTIONS": text}

    assert made_tools(valves) == [{"type": "image_generation", **kept}]
    problems = read_config(Valves.model_validate(valves)).problems
    beginnings = zip(problems, told, strict=True)
    assert all(problem.startswith(words) for problem, words in beginnings)


def test_hosts_tools_for_the_same_purpose_are_left_out() -> None:
    """Of two the model would have to guess."""
    code, pictures = BOTH_ON
    assert made({code: True})[1] == {"execute_code"}
    assert made({pictures: True})[1] == {"generate_image", "edit_image"}
    assert made({})[1] == set()


Hosted = tuple[list[Item], set[str]]
NOTHING: Hosted = ([], set())
SWITCHED: Json = {"web_search": True, "voice": False}
SEARCH = {
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


def search_with(**options: Any) -> Item:
    """The search that WEB_SEARCH_OPTIONS makes; the API's own type takes it."""
    text = json.dumps(options)
    [tool], _ = hosted(ENABLE_WEB_SEARCH=True, WEB_SEARCH_OPTIONS=text)
    TypeAdapter(WebSearchToolParam).validate_python(tool)
    return tool


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
    """The user's own choice wins over the valve and the switch.

    The API would assume the United States, if nothing were said of the place.
    """
    tools, _ = hosted({"web_search": page}, user, ENABLE_WEB_SEARCH=valve)

    assert tools == ([SEARCH] if searches else [])


@pytest.mark.parametrize("features", [None, [], "web_search"])
def test_nothing_is_offered_unasked(features: object) -> None:
    """Searches cost money; callers over plain HTTP send no features."""
    assert hosted(features) == NOTHING


def test_switch_stands_for_the_hosts_own_search_where_it_is_not_mapped() -> None:
    """Then it brings the host's tools, which stay."""
    mapped, not_mapped = (hosted(SWITCHED, MAP_WEB_SEARCH=on) for on in (True, False))

    assert mapped == ([SEARCH], {"search_web", "fetch_url"})
    assert not_mapped == NOTHING
    assert hosted(SWITCHED, "off") == NOTHING  # else no one would search


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


BERN = {"city": "Bern", "region": "BE", "country": "CH", "timezone": "Europe/Zurich"}
ADDRESS = "https://pubmed.example/about"


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (
            {"user_location": "Bern, BE, CH, Europe/Zurich"},
            {"user_location": {"type": "approximate", **BERN}},
        ),
        (
            {"user_location": " , , CH,"},
            {"user_location": {"type": "approximate", "country": "CH"}},
        ),
        # The API refuses a country that is no code.
        (
            {"user_location": "Bern, , Switzerland"},
            {"user_location": {"type": "approximate", "city": "Bern"}},
        ),
        (
            {"user_location": {"country": "CH", "type": "exact", "x": "1"}},
            {"user_location": {"type": "approximate", "country": "CH"}},
        ),
        # The API wants domains without a scheme.
        (
            {"allowed_domains": [" openai.com ", f" {ADDRESS}", ""]},
            {"filters": {"allowed_domains": ["openai.com", "pubmed.example"]}},
        ),
        (
            {"blocked_domains": ["http://x.example:80/"]},
            {"filters": {"blocked_domains": ["x.example"]}},
        ),
        # They may be one text, separated by commas as in other valves.
        (
            {"allowed_domains": f"who.int, {ADDRESS}?from=https://elsewhere.example"},
            {"filters": {"allowed_domains": ["who.int", "pubmed.example"]}},
        ),
        ({"search_context_size": "high"}, {"search_context_size": "high"}),
        # Servers that lack these options are not asked for the API's own defaults.
        ({"external_web_access": False}, {"external_web_access": False}),
        ({"external_web_access": True}, {}),
        ({"return_token_budget": "unlimited"}, {"return_token_budget": "unlimited"}),
        ({"return_token_budget": "default"}, {}),
    ],
)
def test_options_of_the_search_are_sent(options: Json, sent: Json) -> None:
    assert search_with(**options) == SEARCH | sent


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


FILES: Json = {"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"]}
FILE_OPTIONS: Json = {
    "max_num_results": 5,
    "filters": {"type": "eq", "key": "team", "value": "law"},
    "ranking_options": {"score_threshold": 0.5},
}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("vs_1, vs_2,", {}),
        (
            json.dumps({**FILE_OPTIONS, "vector_store_ids": ["vs_1", "vs_2", "vs_3"]}),
            FILE_OPTIONS,
        ),
        (
            f" {json.dumps({**FILE_OPTIONS, 'vector_store_ids': 'vs_1, vs_2'})}",
            FILE_OPTIONS,
        ),
    ],
    ids=["names", "an object", "an object with names"],
)
def test_file_search_follows_the_web_search(text: str, options: Json) -> None:
    """The order is fixed, so that the prompt cache is read; the API's type takes it."""
    [web, files], _ = hosted(ENABLE_WEB_SEARCH=True, FILE_SEARCH_VECTOR_STORES=text)

    TypeAdapter(FileSearchToolParam).validate_python(files)
    assert web == SEARCH
    assert files == {**FILES, **options}


def test_valve_that_names_no_store_searches_in_none() -> None:
    """Its answers would all fail."""
    assert hosted(FILE_SEARCH_VECTOR_STORES=",") == NOTHING


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


@pytest.mark.parametrize(
    ("model", "features", "found"),
    [
        ("my-deployment", None, ([SEARCH], set())),  # it has any name
        ("gpt-4.1", None, ([SEARCH], set())),
        ("gpt-4.1-unheard-of", SWITCHED, NOTHING),  # it would refuse the request
    ],
)
def test_only_model_that_may_have_the_search_gets_it(
    model: str, features: object, found: Hosted
) -> None:
    """The host's own tools stay."""
    assert hosted(features, model=model, ENABLE_WEB_SEARCH=True) == found


def offer(body: Json, tools: Hosted) -> OfferedTools:
    hosted_ones, withheld = tools
    called = called_by_name(body)
    return offer_tools(body.get("tool_choice"), hosted_ones, called, withheld)


def offered_names(body: Json, tools: Hosted) -> list[Any]:
    return [tool.get("name") or tool["type"] for tool in offer(body, tools).items]


def test_hosted_tools_come_first_and_replace_the_hosts() -> None:
    """The same order in every request."""
    names = ("look", "search_web", "fetch_url", "read")
    body = {"tools": [function(name) for name in names]}

    assert offered_names(body, hosted(SWITCHED)) == ["web_search", "look", "read"]
    assert offered_names(body, hosted(ENABLE_WEB_SEARCH=True)) == ["web_search", *names]


def test_search_of_a_filter_takes_the_place_of_ours() -> None:
    """It says what it wants of it."""
    own = {"type": "web_search", "search_context_size": "low"}
    tools = hosted(ENABLE_WEB_SEARCH=True)

    offered_tools = offer({"extra_tools": [own]}, tools)

    assert offered_tools.items == [own]


def test_switch_stands_for_the_hosts_own_search_where_that_has_run() -> None:
    """With legacy function calling, the host searches before it asks the model."""
    facts = {"features": SWITCHED, "params": {"function_calling": "legacy"}}
    tools_of = [
        hosted_tools(config_of(valves, UserValves(), facts), resolve_model("gpt-5.2"))
        for valves in (Valves(), Valves(ENABLE_WEB_SEARCH=True))
    ]

    assert tools_of == [NOTHING, ([SEARCH], set())]
