"""Servers that stream in other ways than OpenAI, behind the pipe in Open WebUI."""

import json

import pytest

from hosts.pipes import valves_changed
from hosts.sent import chat_bodies, kinds
from hosts.tabs import Tab
from hosts.users import User
from simulator import Simulator
from simulator.wire.servers import RETELLINGS

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
CHOICE = {"type": "function", "function": {"name": "get_weather"}}
USED = {"tool_ids": ["toolkit"], "tool_choice": CHOICE}
OUTPUT = [
    *("reasoning", "function_call", "function_call_output"),
    *("reasoning", "message"),
]


@pytest.mark.parametrize("profile", RETELLINGS)
async def test_chat_tool_stop_and_regenerate(
    tab: Tab, admin: User, simulator: Simulator, profile: str
) -> None:
    """A tool runs once, a text stands there once, and the chat goes on."""
    headers = json.dumps({"X-Simulator-Profile": profile})
    async with valves_changed(admin, PIPE, EXTRA_HEADERS=headers):
        turns = [await tab.send(MODEL, "sim:tool weather?", body=USED)]
        turns.append(await tab.regenerate(MODEL, turns[0], body=USED))
        stopped = await tab.begin(MODEL, "sim:slow", chat_id=turns[0].chat_id)
        await stopped.until(lambda seen: bool(seen.text))
        await tab.stop(stopped)
        await tab.settle(stopped)
        assert (await tab.message(stopped))["done"]

    for turn in turns:
        assert turn.error is None
        stored = await tab.message(turn)
        shown = [i["type"] for i in stored["output"] if ":" not in i["type"]]
        assert shown == OUTPUT
        assert stored["content"].count("It said: ") == 1
    sent = [
        kinds(body["input"]).count("function_call") for body in chat_bodies(simulator)
    ]
    assert sent == [0, 1, 0, 1, 1]
