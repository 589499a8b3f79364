"""Who asks without a page: automations, channels, sub-agents of Open WebUI."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.client import Json, OpenWebUIError
from hosts.people.tabs import PATIENCE, Tab
from hosts.people.users import EVERYBODY_READS, User
from hosts.sent import chat_bodies
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
AUTOMATIONS = "/api/v1/automations"
SETTINGS = "/api/v1/auths/admin/config"
SWITCHES = {"ENABLE_AUTOMATIONS": True, "ENABLE_CHANNELS": True}
DAILY = "DTSTART:20990101T000000Z\nRRULE:FREQ=DAILY"
DELEGATION = {"type": "function", "function": {"name": "delegate_task"}}


@pytest_asyncio.fixture
async def features(admin: User) -> AsyncIterator[None]:
    """A server with automations and channels."""
    before = await admin.call("GET", SETTINGS)
    await admin.call("POST", SETTINGS, {**before, **SWITCHES})
    yield
    await admin.call("POST", SETTINGS, before)


async def value_at_last(look: Callable[[], Awaitable[Any]]) -> Any:
    """What is there at last; no event tells it without a page."""
    async with asyncio.timeout(PATIENCE):
        value = await look()
        while not value:
            await asyncio.sleep(0.05)
            value = await look()
    return value


async def automation_of(admin: User, form: Json) -> Json:
    """A new automation, refused while the machine is too busy to read its schedule."""

    async def create() -> Any:
        try:
            return await admin.call("POST", f"{AUTOMATIONS}/create", form)
        except OpenWebUIError as refused:
            if "took too long to evaluate" not in str(refused):
                raise
            return None

    return dict(await value_at_last(create))


def is_answered(output: list[Json]) -> bool:
    """Whether a stored output has a text."""
    return any(item["type"] == "message" and item["content"] for item in output)


@pytest.mark.usefixtures("features")
async def test_automation_and_mention_are_answered(
    admin: User, simulator: Simulator
) -> None:
    """An automation has a chat of its own, a channel has none; neither has a page."""
    automation = {"prompt": "sim:count good morning", "model_id": MODEL, "rrule": DAILY}
    form = {"name": "Morning", "data": automation, "is_active": False}
    path = f"{AUTOMATIONS}/{(await automation_of(admin, form))['id']}"
    await admin.call("POST", f"{path}/run")

    async def answer_of_run() -> Any:
        runs = await admin.call("GET", f"{path}/runs")
        chat = await admin.chat(runs[0]["chat_id"]) if runs else {}
        messages = chat.get("history", {}).get("messages", {}).values()
        return [m for m in messages if m["role"] == "assistant" and m.get("done")]

    [answer] = await value_at_last(answer_of_run)

    channel = {"name": "harbour", "access_grants": [EVERYBODY_READS]}
    room = await admin.call("POST", "/api/v1/channels/create", channel)
    address = f"/api/v1/channels/{room['id']}/messages"
    mention = {"content": f"<@M:{MODEL}|Sol> sim:count and you?"}
    asked = await admin.call("POST", f"{address}/post", mention)

    async def reply() -> Any:
        thread = await admin.call("GET", f"{address}/{asked['id']}/thread")
        return [
            message["id"] for message in thread if (message["meta"] or {}).get("done")
        ]

    [reply_id] = await value_at_last(reply)
    reply_data = await admin.call("GET", f"{address}/{reply_id}/data")

    assert "error" not in answer, answer
    assert is_answered(answer["output"])
    assert is_answered(reply_data["output"]), reply_data
    first, second = chat_bodies(simulator)
    assert "good morning" in str(first["input"][-1])
    assert "and you?" in str(second["input"][-1])


@pytest.mark.usefixtures("sub_agents")
async def test_sub_agent_takes_longer_than_other_tools(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Open WebUI's own tool, whose answer is a chat of the pipe as well."""
    async with valves_changed(admin, PIPE, TOOL_TIMEOUTS="default: 0.001"):
        turn = await tab.send(MODEL, "sim:tool", body={"tool_choice": DELEGATION})

    assert turn.error is None
    items = chat_bodies(simulator)[-1]["input"]
    [output] = [i["output"] for i in items if i["type"] == "function_call_output"]
    assert output.startswith("This is turn 1.")
