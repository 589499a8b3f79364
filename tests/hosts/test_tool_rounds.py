"""Rounds of the host's builtin tools, and those of a client."""

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
    stored = host_items(await tab.message(first))  # as Open WebUI stores them
    assert [item["type"] for item in stored][-3:] == [
        *("function_call_output", "reasoning", "message")
    ]
    assert_each_continues(simulator)
    assert kinds(bodies[-1]["input"]).count("reasoning") >= 2
    assert_nothing_dropped(simulator)


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
