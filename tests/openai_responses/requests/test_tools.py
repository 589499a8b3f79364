"""Tools of a chat body or of the host become tools of the API."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.requests.json_schema import LARGEST_SCHEMA
from openai_responses.requests.tools import (
    ToolNames,
    clean_call,
    fit_calls,
    merge_tools,
    next_tool_choice,
    responses_tool_choice,
    responses_tools,
)
from simulator.checks.schemas import check_schemas

HERE = Path(__file__).resolve().parents[2] / "schemas"
SAMPLES = json.loads((HERE / "samples.json").read_text("utf-8"))
BUILTIN = json.loads((HERE / "open_webui_builtin.json").read_text("utf-8"))
SEARCH: Item = {"type": "web_search"}
EMPTY = {"type": "object", "properties": {}}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}


FLAT = {"name": "look", "description": "Look.", "parameters": PARAMETERS}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"type": "function", "function": FLAT}, FLAT),
        (FLAT, FLAT),
        (
            {"function": {"name": "look", "description": ""}},
            {"name": "look", "parameters": EMPTY},
        ),
        (
            {"type": "function", "name": "look", "async": True},
            {"name": "look", "async": True, "parameters": EMPTY},
        ),
    ],
    ids=["of a chat body", "of the host", "bare", "of the API"],
)
def test_function_becomes_flat_with_all_that_the_api_wants(
    spec: Item, fields: Item
) -> None:
    """No description where there is none; what only the API knows of it stays.

    A hosted tool is copied as it is, and is not shared with the caller.
    """
    search = {"type": "web_search", "filters": {"allowed_domains": ["a.b"]}}
    function, copied = responses_tools([spec, search])
    assert function == {"type": "function", "strict": False, **fields}
    assert copied == search
    assert copied is not search


def test_functions_in_the_form_of_the_api() -> None:
    """A filter may send such; their schemas are copied like others."""
    flat = {"type": "function", "name": "f", "strict": True}
    pattern = {"type": "string", "pattern": "^(?!x)"}
    hard = {"type": "object", "properties": {"a": pattern}, "required": ["a", "a"]}
    empty, copied = responses_tools(
        [{**flat, "parameters": None}, {**flat, "parameters": hard, "strict": False}]
    )
    closed = {**EMPTY, "required": [], "additionalProperties": False}
    assert empty == {**flat, "parameters": closed}
    text = {"type": "string"}
    assert copied["parameters"] == {
        **EMPTY,
        "properties": {"a": text},
        "required": ["a"],
    }


@pytest.mark.parametrize("kind", [{}, {"type": "custom"}, {"type": "function"}])
def test_function_as_anthropic_describes_it(kind: Item) -> None:
    """Cursor sends such ones; without its schema the model could give no argument."""
    spec = {**kind, "name": "f", "input_schema": PARAMETERS}
    [tool] = responses_tools([spec])
    own_form = responses_tools([{"name": "f", "parameters": PARAMETERS}])
    assert [tool] == own_form


def test_each_function_that_can_be_is_strict() -> None:
    open_map = {"type": "object", "properties": {"a": EMPTY | {"maxProperties": 1}}}
    specs: list[Item] = [
        {"name": "closed", "parameters": PARAMETERS},
        {"name": "open", "parameters": open_map},
        {"name": "never", "parameters": PARAMETERS, "strict": False},
        {"name": "empty"},
    ]

    tools = responses_tools(specs, strict=True)

    assert [tool["strict"] for tool in tools] == [True, False, False, True]
    assert tools[0]["parameters"]["required"] == ["a"]
    assert tools[1]["parameters"] == open_map
    assert tools[3]["parameters"]["additionalProperties"] is False


def test_custom_tool_becomes_flat_without_keys_that_the_api_does_not_have() -> None:
    """The API would quote them in its refusal."""
    grammar = {"syntax": "lark", "definition": "start: /a/"}
    form = {"type": "grammar", **grammar, "tools[0].filters": 1}
    known = {"type": "custom", "name": "c", "description": "d"}
    flat = {**known, "format": form, "tools[1].filters": 1}
    chat_form = {"type": "grammar", "grammar": grammar}

    read = responses_tools(
        [
            flat,
            {"type": "custom", "custom": flat},
            {"type": "custom", "custom": {**known, "format": chat_form}},
        ]
    )

    assert read == [{**known, "format": {"type": "grammar", **grammar}}] * 3


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "function", "function": {"description": "Look."}},
        {"type": "function", "function": {"name": ""}},
        {"type": "function", "parameters": None, "strict": True},
        {"type": "custom", "custom": {"name": 3}},
        {"parameters": PARAMETERS},
        {},
        "look",
    ],
)
def test_tool_without_a_name(spec: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^A tool (has no name|is not described)"):
        responses_tools([spec])


@pytest.mark.parametrize("strict", [True, False])
def test_api_takes_every_tool_of_the_corpus(strict: bool) -> None:
    tools = responses_tools([*BUILTIN, *SAMPLES], strict=strict)
    check_schemas([*tools])
    assert {tool["strict"] for tool in tools} == {strict, False}


def test_last_tool_of_a_name_counts_at_the_place_of_the_first() -> None:
    function: Item = {"type": "function", "name": "f", "strict": True}
    custom: Item = {"type": "custom", "name": "f"}
    search: Item = {"type": "web_search"}
    better: Item = {"type": "web_search", "search_context_size": "high"}
    files: Item = {"type": "mcp", "server_label": "files"}
    mails: Item = {"type": "mcp", "server_label": "mails"}

    merged = merge_tools([function, search], [files, mails], [better, custom])

    assert merged == [custom, better, files, mails]
    assert merge_tools() == []


@given(st.lists(st.text(min_size=1), unique=True, max_size=5))
def test_sent_name_is_allowed_distinct_and_found_again(names: list[str]) -> None:
    sent = [ToolNames(tuple(names)).sent_name(name) for name in names]

    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in sent)
    assert len({*sent}) == len(names)
    assert [ToolNames(tuple(names)).own_name(name) for name in sent] == names


def test_sent_name_does_not_depend_on_other_tools() -> None:
    alone = ToolNames(("a.b",))
    among = ToolNames(("x", "ä" * 80, "a.b"))

    assert alone.sent_name("a.b") == among.sent_name("a.b")
    assert re.fullmatch(r"a_b_[0-9a-f]{12}", alone.sent_name("a.b"))
    assert among.sent_name("x") == "x"
    assert among.own_name("unknown") == "unknown"
    called = {**CALLED, "name": alone.sent_name("a.b")}
    assert alone.with_own_name(called) == {**called, "name": "a.b"}
    assert alone.with_own_name(RETURNED) is RETURNED


@pytest.mark.parametrize(
    ("called", "meant"),
    [
        ("functions.get_weather", "get_weather"),
        ("users_list", "users.list"),
        ("Users.List", "users.list"),
        ("look up", "look up"),
        ("look_up", "look_up"),
        ("Other", "Other"),
        (" get_weather", "get_weather"),
        ("\tfunctions.get_weather\n", "get_weather"),
        ("get _weather", "get _weather"),
        ("", ""),
        ("get-weather", "get_weather"),
        ("default_api.get_weather", "get_weather"),
        ("our.product.other", "other"),
        ("our.look_up", "our.look_up"),
        ("get_weather.", "get_weather."),
    ],
)
def test_name_that_was_not_offered(called: str, meant: str) -> None:
    """It means the one tool that is spelled like it, and never one of two."""
    names = ToolNames(("get_weather", "users.list", "look up", "look_up", "other"))
    assert names.own_name(called, {"Other": {}}) == meant


def test_calls_of_a_history_get_allowed_names_and_ids() -> None:
    tool = ToolNames(("users.list",)).sent_name("users.list")
    call = {"type": "function_call", "arguments": "{}"}
    output = {"type": "function_call_output", "output": "1"}
    fine = [{**call, "name": "look", "call_id": "c" * 64}, {"name": "a.b", "role": "x"}]
    assert [clean_call(item) for item in fine] == fine
    assert clean_call(fine[0]) is fine[0]

    for name in ("users.list", "functions.users.list"):
        assert clean_call({**call, "name": name})["name"] == tool
    for name in ("functions.look", " look", "look\n", " functions.look "):
        assert clean_call({**call, "name": name})["name"] == "look"
    nameless = [clean_call({**call, **said}) for said in ({}, {"name": None})]
    assert nameless[0] == nameless[1]
    assert re.fullmatch(r"_[0-9a-f]{12}", nameless[0]["name"])
    assert re.fullmatch(r"_{50,}\w+", clean_call({**call, "name": "ä" * 70})["name"])
    for own in ("", "c" * 65, "\ud800" * 70):
        ids = [
            clean_call({**item, "call_id": own})["call_id"] for item in (call, output)
        ]
        assert ids[0] == ids[1]
        assert re.fullmatch(r"call_[0-9a-f]{32}", ids[0])


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"arguments": '{"a": 1}'}, '{"a": 1}'),
        ({"arguments": ""}, ""),
        ({"arguments": None}, "{}"),
        ({}, "{}"),
        ({"arguments": {"city": "Zürich"}}, '{"city": "Zürich"}'),
        ({"arguments": ["Bern"]}, '["Bern"]'),
    ],
)
def test_arguments_go_back_as_a_text(given: Item, sent: str) -> None:
    """Earlier versions stored what gateways sent; a custom call has an input instead."""
    call = {"type": "function_call", "name": "look", "call_id": "call_1", **given}
    custom = {**call, "type": "custom_tool_call"}

    assert clean_call(call)["arguments"] == sent
    assert clean_call(custom) is custom


def test_no_name_is_sent_twice() -> None:
    """Neither of two functions, nor of a function and what another one becomes.

    A hosted tool has no name of ours.
    """
    taken = ToolNames(("a.b",)).sent_name("a.b")
    functions = [{"type": "function", "name": n} for n in ("a.b", taken, "a.b")]
    tools = merge_tools(functions, [SEARCH])
    names = ToolNames(tuple(tool["name"] for tool in tools[:2]))
    first, second, hosted = names.rename_tools(tools)
    assert (first["name"], second["name"]) == (names.sent_name("a.b"), taken)
    assert first["name"] != taken
    assert hosted == SEARCH


FUNCTION: Item = {"type": "function", "name": "f"}
CUSTOM: Item = {"type": "custom", "name": "c"}
FILES: Item = {"type": "mcp", "server_label": "files"}
TOOLS = [FUNCTION, CUSTOM, FILES, SEARCH]
NESTED = {"type": "function", "function": {"name": "f"}}
REQUIRED = {"mode": "required"}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("f", FUNCTION),
        ("c", CUSTOM),
        ("web_search", SEARCH),
        ("files", FILES),
        (NESTED, FUNCTION),
        ({"type": "custom", "custom": {"name": "c"}}, CUSTOM),
        ({"type": "tool", "name": "f"}, FUNCTION),
        ({"type": "any", "disable_parallel_tool_use": True}, "required"),
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ("any", "required"),
        (
            {"type": "allowed_tools", "allowed_tools": {**REQUIRED, "tools": [NESTED]}},
            {"type": "allowed_tools", **REQUIRED, "tools": [FUNCTION]},
        ),
    ],
)
def test_choice_of_a_tool_in_another_form(choice: object, expected: object) -> None:
    """By its name alone, or as Chat Completions, Mistral and Anthropic have it."""
    before = json.dumps(choice)
    assert responses_tool_choice(choice, TOOLS, ToolNames()) == expected
    assert json.dumps(choice) == before


@pytest.mark.parametrize(
    "choice",
    [
        *(None, "required", FUNCTION, FILES, {**FILES, "name": "read"}),
        {"type": "mcp", "name": "files"},
        {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION, SEARCH]},
    ],
)
def test_choice_in_the_form_of_the_api_stays(choice: object) -> None:
    """One of the wrong type is the default, as with every parameter."""
    assert responses_tool_choice(choice, TOOLS, ToolNames()) == choice
    for odd in (7, ["f"]):
        assert responses_tool_choice(odd, TOOLS, ToolNames()) is None


def test_tool_may_have_the_name_of_a_choice() -> None:
    """Of another API's alone: the words of the API mean what they always mean."""
    tools: list[Item] = [{"type": "function", "name": name} for name in ("any", "auto")]
    assert responses_tool_choice("any", tools, ToolNames()) == tools[0]
    assert responses_tool_choice("auto", tools, ToolNames()) == "auto"


def endless_choice() -> Item:
    """Return a choice inside of very many choices."""
    choice = FUNCTION
    for _ in range(2_000):
        choice = {"type": "allowed_tools", "tools": [choice]}
    return choice


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ("nothing", "nothing"),
        ({"type": "function", "function": {"name": "gone"}}, "gone"),
        ({"type": "function", "name": "c"}, "c"),
        ({"type": "mcp", "server_label": "mails"}, "mails"),
        ({"type": "allowed_tools", "tools": [{"type": "custom", "name": "x"}]}, "x"),
        pytest.param(endless_choice(), "allowed_tools", id="very many"),
    ],
)
def test_choice_of_a_missing_tool(choice: object, named: str) -> None:
    message = f"The tool choice asks for {named}, which this chat does not have."
    with pytest.raises(InvalidRequest, match=f"^{re.escape(message)}$"):
        responses_tool_choice(choice, TOOLS, ToolNames())


@pytest.mark.parametrize(
    "choice",
    [{"type": "function"}, {"type": "function", "name": 3}, {"type": ["function"]}, {}],
)
def test_choice_that_names_no_tool_is_refused(choice: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^The tool choice"):
        responses_tool_choice(choice, TOOLS, ToolNames())


def test_choice_by_a_forbidden_name() -> None:
    names = ToolNames(("a.b",))
    tools = names.rename_tools([{"type": "function", "name": "a.b"}])
    expected = {"type": "function", "name": names.sent_name("a.b")}

    assert responses_tool_choice("a.b", tools, names) == expected
    nested = {"type": "function", "function": {"name": "a.b"}}
    assert responses_tool_choice(nested, tools, names) == expected


CALLED: Item = {"type": "custom_tool_call", "name": "list_ships", "call_id": "c"}
RETURNED: Item = {"type": "custom_tool_call_output", "call_id": "c", "output": "[]"}


@pytest.mark.parametrize(
    ("added", "namespace", "sent_namespace"),
    [
        (["list_ships"], "list_ships", "list_ships"),
        (["list_ships"], None, "list_ships"),
        (["list_ships"], "ships_1", "list_ships"),
        (["list_crews"], None, None),
        (["list_crews"], "list_crews", None),
        ([], None, None),
        ([["odd"], None], ["odd"], None),
    ],
)
def test_call_of_an_added_tool_names_the_tool_as_its_namespace(
    added: list[Any], namespace: Any, sent_namespace: str | None
) -> None:
    """gpt-5.4 gives it, gpt-5.6 and gpt-6 do not; accepted is the form that has it.

    Earlier versions declared tools in other namespaces, which no request has any more.
    """
    tools = [{"type": "function", "name": name} for name in added]
    declared: Item = {"type": "additional_tools", "role": "developer", "tools": tools}
    call = {**CALLED, "namespace": namespace} if namespace else CALLED

    asked = {"role": "user", "content": "Hi", "namespace": "x"}
    sent = fit_calls([asked, declared, call, RETURNED])

    expected = {**CALLED, "namespace": sent_namespace} if sent_namespace else CALLED
    assert sent == [asked, declared, expected, RETURNED]


def test_choice_demands_one_call_and_forbids_for_good() -> None:
    """Else the model would call again and again."""
    for choice in ("auto", "required", None, {"type": "function", "name": "look"}):
        assert next_tool_choice(choice) is None, choice
    assert next_tool_choice("none") == "none"
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [FLAT]}
    assert next_tool_choice(allowed) == {**allowed, "mode": "auto"}


def test_tools_that_are_too_large_are_left_out_and_named() -> None:
    """One alone as well, which would leave others no room."""
    large = "x" * LARGEST_SCHEMA
    custom = {"type": "custom", "custom": {"name": "c", "description": large}}
    log: list[str] = []

    left = responses_tools(
        [custom, FLAT, {**FLAT, "description": large}], log=log.append
    )

    assert left == responses_tools([FLAT])
    assert len(log) == 1
    assert "'c', 'look' (2 in all)" in log[0]
