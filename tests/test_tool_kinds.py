"""Every kind of OpenAI's tools is known wherever something depends on the kind."""

from operator import attrgetter
from typing import Any

import pytest

from calls.sample import call_of, chat
from openai_responses.items import ITEM_KINDS, Item, maker_of, tool_kind
from openai_responses.tool_kinds import TOOL_KINDS, ToolKind
from owui_administration.limits import UserLimits
from owui_administration.rules import LimitRule
from owui_chat.render.hosted import HOSTED_CARDS
from owui_manifold.call.callers import caller_may_set_error
from owui_manifold.call.config import read_config
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.call.valves import TOOL_SETTINGS, UserValves, Valves
from owui_manifold.prepare.hosted_tools import hosted_tools
from simulator.configuration import CALL_KINDS

OFFERED = [kind for kind in TOOL_KINDS.values() if kind.items]
"""Kinds of which we know the items: the pipe can offer them."""
SERVERS = '[{"server_label": "maps", "server_url": "https://maps.example/mcp"}]'
WORKS_WITH: dict[str, Any] = {
    "FILE_SEARCH_VECTOR_STORES": "vs_1",
    "REMOTE_MCP_SERVERS_JSON": SERVERS,
}
"""What offers a tool whose valve is not a switch."""


def offered(valves: Valves) -> list[Item]:
    call = call_of(chat("Hi"), valves)
    tools, _ = hosted_tools(read_config(valves), call.model)
    return tools


def test_each_offered_kind_has_a_setting() -> None:
    """And no setting is about an unknown kind."""
    assert [kind.type for kind in OFFERED] == list(TOOL_SETTINGS)


@pytest.mark.parametrize("kind", OFFERED, ids=attrgetter("type"))
def test_setting_offers_the_tool(kind: ToolKind) -> None:
    """Its valves exist, and the request has the tool with what the API demands."""
    setting = TOOL_SETTINGS[kind.type]
    valve = {setting.valve: WORKS_WITH.get(setting.valve, True)}
    assert Valves.model_fields.keys() >= valve.keys()
    if setting.user_valve:
        assert setting.user_valve in UserValves.model_fields

    (tool,) = offered(Valves(API_KEY="sk-1", **valve))

    assert tool["type"] == kind.type
    assert tool.items() >= kind.least.items()


@pytest.mark.parametrize("kind", OFFERED, ids=attrgetter("type"))
def test_page_draws_a_card(kind: ToolKind) -> None:
    """Of one of its items: the others are steps of the same call."""
    assert kind.items.keys() & HOSTED_CARDS.keys()


@pytest.mark.parametrize("kind", TOOL_KINDS.values(), ids=attrgetter("type"))
def test_callers_and_limits_know_the_kind(kind: ToolKind) -> None:
    """Each of its types and fields has a word, and a limit can forbid it."""
    fields = [f"{name}.{field}" for name in kind.types for field in kind.closed_fields]
    words = ", ".join([*kind.types, *fields])
    nothing = LimitRule.model_validate({"user": "*", "tools": []})

    assert caller_may_set_error(PipeExpertKeys(caller_may_set=words)) == ""
    assert kind.type in UserLimits([nothing]).forbidden_tools()


def test_simulator_makes_the_same_items() -> None:
    """It has a table of its own, so that a wrong row here is noticed."""
    made = {item: tools[0] for item, tools in CALL_KINDS.items()}
    for item_type in made.keys() & HOSTED_CARDS.keys():
        assert maker_of({"type": item_type}).type == made[item_type]
    assert ITEM_KINDS.keys() >= made.keys()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("web_search_preview_2025_03_11", "web_search"),
        ("web_search_2025_08_26", "web_search"),
        ("computer_use_preview", "computer"),
        ("local_shell", "local_shell"),
        ("function", ""),
        ("", ""),
    ],
)
def test_dated_versions_are_of_their_kind(name: str, kind: str) -> None:
    assert tool_kind({"type": name}).type == kind
