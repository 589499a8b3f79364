"""Rounds of the host's builtin tools, and those of a client."""

import json

import pytest

from hosts.people.questions import tool_choice
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import (
    assert_each_continues,
    assert_nothing_dropped,
    chat_bodies,
    host_items,
    kinds,
)
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = "openai_responses.gpt-6.2-sol"


@pytest.mark.asyncio
async def test_reasoning_survives_the_rounds_and_the_turn(
    tab: Tab, simulator: Simulator
) -> None:
    """Each round and the next turn send all that came before, byte for byte."""
    first = await tab.send(MODEL, "sim:tool-after-text what time is it?")
    second = await tab.send(MODEL, "sim:chat thanks", chat_id=first.chat_id)

    assert first.error is second.error is None
    bodies = chat_bodies(simulator)
    assert len(bodies) == 3
    assert_each_continues(simulator)
    assert kinds(bodies[-1]["input"]).count("reasoning") >= 2
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_the_card_is_the_hosts_own(tab: Tab, simulator: Simulator) -> None:
    """The call and its output are stored as Open WebUI stores them."""
    turn = await tab.send(MODEL, "sim:tool what time is it?")

    stored = host_items(await tab.message(turn))
    types = [item["type"] for item in stored]
    assert types == [
        *("reasoning", "function_call", "function_call_output"),
        *("reasoning", "message"),
    ]
    assert stored[1]["status"] == "completed"


@pytest.mark.asyncio
@pytest.mark.parametrize(("mode", "carried"), [("response", True), ("disabled", False)])
async def test_reasoning_is_kept_no_longer_than_allowed(
    tab: Tab, admin: User, simulator: Simulator, mode: str, carried: bool
) -> None:
    """Between the rounds or not at all; the chat's row never holds it."""
    async with valves_changed(admin, "openai_responses", PERSIST_REASONING_TOKENS=mode):
        first = await tab.send(MODEL, "sim:tool what time is it?")
        second = await tab.send(MODEL, "sim:chat thanks", chat_id=first.chat_id)

    assert first.error is second.error is None
    _, round_two, turn_two = chat_bodies(simulator)
    assert ("reasoning" in kinds(round_two["input"])) is carried
    assert "reasoning" not in kinds(turn_two["input"])
    assert kinds(turn_two["input"])[1:3] == ["function_call", "function_call_output"]
    chat = await tab.user.chat(first.chat_id)
    assert "encrypted_content" not in json.dumps(chat)


@pytest.mark.asyncio
async def test_an_api_caller_gets_its_own_tools_back(
    member: User, simulator: Simulator
) -> None:
    """Over plain HTTP the caller runs its tools and answers in a new request."""
    function = {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    tools = [{"type": "function", "function": function}]
    asked = [{"role": "user", "content": "sim:tool weather?"}]
    choice = tool_choice("get_weather")

    called = await member.completion(MODEL, asked, tools=tools, tool_choice=choice)
    message = called["choices"][0]["message"]
    (call,) = message["tool_calls"]
    result = {"role": "tool", "tool_call_id": call["id"], "content": ""}
    answer = await member.completion(MODEL, [*asked, message, result], tools=tools)

    assert called["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["choices"][0]["finish_reason"] == "stop"
    first, second = chat_bodies(simulator)
    assert first["tool_choice"] == {"type": "function", "name": "get_weather"}
    assert kinds(second["input"]) == ["user", "function_call", "function_call_output"]
    assert second["input"][2]["output"] == ""
