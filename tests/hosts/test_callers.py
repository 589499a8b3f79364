"""Strangers on one server: what they may set, and what only administrators do."""

import pytest

from calls.callers import HOSTED, OURS
from calls.valves import expert
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User, permissions
from hosts.sent import chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import PIPE, valves_changed
from hosts.setup.switches import workspace_model
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio, pytest.mark.usefixtures("pipe")]

MODEL = f"{PIPE}.gpt-5.2"
SAID = [{"role": "user", "content": "sim:short"}]
LOOK: Json = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object"}},
}
STORED = {"service_tier": "flex", "safety_identifier": "the-school"}
SEARCH = {"type": "web_search", "search_context_size": "low"}


def hosted(body: Json) -> list[Json]:
    return [tool for tool in body.get("tools", ()) if tool["type"] != "function"]


def ours(body: Json) -> Json:
    return {key: body[key] for key in OURS if key in body}


async def test_a_caller_sets_nothing_that_costs(
    server: OpenWebUI, member: User, admin: User, tab: Tab, simulator: Simulator
) -> None:
    """Not over plain HTTP, not by the page's parameters, not with an own model."""
    await member.completion(MODEL, SAID)
    mine = {"tools": [*HOSTED, LOOK], "extra_tools": HOSTED, "reasoning_effort": "low"}
    async with valves_changed(admin, PIPE, MAX_OUTPUT_TOKENS=700):
        await member.completion(MODEL, SAID, **OURS, **mine, max_tokens=9000)
        await tab.send(MODEL, "sim:short")
        custom = {**OURS, "extra_tools": HOSTED, "reasoning": {"mode": "pro"}}
        page = {"params": {"custom_params": custom, "max_tokens": 9000}}
        await tab.send(MODEL, "sim:short", body={**OURS, **page})
        async with (
            permissions(admin, "workspace", models=True),
            workspace_model(member, MODEL, {"custom_params": custom}) as own,
        ):
            await tab.send(own, "sim:short")

    plain, http, untouched, asked, by_model = chat_bodies(simulator)
    assert ours(http) == ours(plain)
    assert [tool["name"] for tool in http["tools"]] == ["look"]
    assert http["reasoning"]["effort"] == "low"
    assert http["max_output_tokens"] == 700
    for body in (asked, by_model):
        # The cache's key belongs to the chat.
        assert ours(body).keys() == ours(untouched).keys()
        assert body["safety_identifier"] == untouched["safety_identifier"]
        assert body["prompt_cache_key"] != OURS["prompt_cache_key"]
        assert hosted(body) == []
        assert body["max_output_tokens"] == 700
        assert body.get("reasoning") == untouched.get("reasoning")
    dropped = f"left out of requests of user {member.id}: "
    lines = [line for line in server.log().splitlines() if dropped in line]
    assert len([x for x in lines if "service_tier (changes the price)" in x]) == 1


async def test_what_an_administrator_stored_with_a_model_arrives(
    admin: User, member: User, tab: Tab, simulator: Simulator
) -> None:
    """On every way; a caller cannot put something else in its place."""
    custom = {**STORED, "extra_tools": [SEARCH], "metadata": '{"team": "red"}'}
    instead = {"service_tier": "priority", "safety_identifier": None}
    async with workspace_model(admin, MODEL, {"custom_params": custom}) as model:
        await tab.send(model, "sim:short")
        await tab.send(model, "sim:short", body={"params": {"custom_params": instead}})
        await member.completion(model, SAID, **instead)
        async with valves_changed(
            admin, PIPE, EXPERT_JSON=expert(caller_may_set="service_tier")
        ):
            await member.completion(model, SAID, **instead)

    *held, opened = chat_bodies(simulator)
    for body in held:
        assert {key: body[key] for key in STORED} == STORED
        assert body["metadata"] == {"team": "red"}
        assert hosted(body) == [SEARCH]
    assert opened["service_tier"] == "priority"


async def test_users_own_settings_hold_within_bounds(
    server: OpenWebUI, member: User, tab: Tab, simulator: Simulator
) -> None:
    """What has no effect is told once; nothing hides it from the log."""
    own = {"SERVICE_TIER": "priority", "LOG_LEVEL": "CRITICAL"}
    begin = len(server.log())
    await member.set_user_valves(PIPE, own)
    try:
        turns = [await tab.send(MODEL, "sim:short") for _ in "ab"]
        await member.completion(MODEL, SAID, metadata={}, moderation={"model": "x"})
    finally:
        await member.set_user_valves(PIPE, {})

    first, second = [[s["description"] for s in turn.statuses] for turn in turns]
    assert any("has no effect: Service Tier" in line for line in first)
    assert not any("Service Tier" in line for line in second)
    assert "may not change SERVICE_TIER" in server.log()[begin:]
    assert all("service_tier" not in body for body in chat_bodies(simulator))
