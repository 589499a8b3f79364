"""Chats of others go on with the pipe."""

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

OWN = "own.gpt-6.2-sol"
MODEL = "openai_responses.gpt-6.2-sol"
TOOLS = {"tool_ids": ["toolkit"]}


async def test_chat_of_the_hosts_own_connection_continues(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """With its texts, tool calls and results; it stored no reasoning."""
    connection = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [simulator.base_url],
        "OPENAI_API_KEYS": [simulator.api_key],
        "OPENAI_API_CONFIGS": {"0": {"api_type": "responses", "prefix_id": "own"}},
    }
    before = await admin.call("GET", "/openai/config")
    await admin.call("POST", "/openai/config/update", connection)
    try:
        await admin.models()
        await admin.share_model(OWN, "own")
        first = await tab.send(OWN, "sim:tool what time is it?", body=TOOLS)
    finally:
        await admin.call("POST", "/openai/config/update", before)
    second = await tab.send(MODEL, "sim:short and now?", chat_id=first.chat_id)
    third = await tab.send(MODEL, "sim:short and later?", chat_id=first.chat_id)

    assert [turn.error for turn in (first, second, third)] == [None, None, None]
    *_, taken_over, next_turn = chat_bodies(simulator)
    call, output = taken_over["input"][1:3]
    assert kinds(taken_over["input"]) == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
    ]
    assert output["call_id"] == call["call_id"]
    assert kinds(next_turn["input"])[5:] == ["reasoning", "assistant", "user"]
