"""What the model is offered of the host's tools."""

import json
from typing import Any

import pytest

from manifold.preparation import OfferedTools, offer_tools
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.tools import ToolNames, responses_tools
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.call.model_valves import read_overrides
from owui_manifold.prepare.hosted_tools import called_tools, left_out_tools

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


def offered(body: Json, model: str = "gpt-5.6-sol", **expert: Any) -> OfferedTools:
    settings = PipeExpertKeys.model_validate(expert)
    called = called_tools(body, resolve_model(model, OVERRIDES), settings)
    return offer_tools(body.get("tool_choice"), called=called)


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


def test_tools_beyond_the_limit_are_left_out_and_reported() -> None:
    """OpenAI's stay, then those that people attached, in their order; a line says it."""
    names = [f"t{number}" for number in range(130)]
    called = responses_tools([function(name) for name in names])
    search: Json = {"type": "web_search"}

    whole = offer_tools(None, [search], called[:127], builtin=names)
    cut = offer_tools(None, [search], called, builtin=names[:5])

    assert (len(whole.items), whole.notice) == (128, "")
    sent = [tool.get("name") for tool in cut.items]
    assert sent == [None, *names[5:], *names[:2]]
    assert cut.names.known == (*names[5:], *names[:2])
    assert cut.notice == (
        "Left out: 3 of this chat's 131 tools, because the API takes at most 128. "
        "Switch off tools that this chat does not need."
    )


LOOK = function("look")
CUSTOM: Json = {"type": "custom", "custom": {"name": "note"}}
MANY = [function(f"t{number}") for number in range(128)]
TOO_DEEP: Json = {"type": "function", "name": "deep", "parameters": {"a": {}}}
for _ in range(200):
    TOO_DEEP["parameters"] = {"properties": {"a": TOO_DEEP["parameters"]}}


@pytest.mark.parametrize(
    ("model", "body", "withheld", "left_out"),
    [
        ("gpt-5.2", {"tools": [LOOK], "extra_tools": [CUSTOM]}, (), {}),
        (
            "silent",
            {"tools": [LOOK], "extra_tools": [CUSTOM]},
            (),
            {
                "the tool look": "silent takes no such tool",
                "the tool note": "silent takes no such tool",
            },
        ),
        (
            "plain",
            {"extra_tools": [{"type": "web_search"}, {"type": "mcp"}]},
            (),
            {
                "the tool web_search": "plain takes no such tool",
                "the tool mcp": "plain takes no such tool",
            },
        ),
        (
            "gpt-6.1-sol-research",
            {"tools": [LOOK]},
            (),
            {"the tool look": "a model that researches gets only OpenAI's tools"},
        ),
        (
            "gpt-5.2",
            {"tools": [LOOK, CUSTOM, function("own")]},
            ("look", "own"),
            {"the tool look": "OpenAI's own tool replaces it"},
        ),
        (
            "gpt-5.2",
            {"tools": [*MANY, LOOK]},
            (),
            {"the tool look": "the API takes at most 128 tools"},
        ),
        ("gpt-5.2", {"tools": [LOOK, TOO_DEEP]}, (), {}),  # it has a line of its own
        ("gpt-5.2", {"tools": [7, {"type": 7}, {}]}, (), {}),
    ],
)
def test_tool_of_a_caller_that_is_not_offered_has_a_reason(
    model: str, body: Json, withheld: tuple[str, ...], left_out: dict[str, str]
) -> None:
    """Open WebUI's own are not the caller's."""
    resolved = resolve_model(model, OVERRIDES)
    called: list[Json] = []
    if not resolved.research and 7 not in body.get("tools", ()):
        called = called_tools(body, resolved, PipeExpertKeys())
    offered = offer_tools(None, (), called, withheld)

    lost = left_out_tools(body, resolved, called, offered, {"own"})

    assert lost == left_out


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


@pytest.mark.parametrize("choice", [None, "required"])
def test_tool_choice_is_sent_unchanged(choice: str | None) -> None:
    """They mean the same there."""
    body = {"tools": [function("look")], "tool_choice": choice}

    assert offered(body).choice == choice
