"""What is kept of a chat, what later turns get of it, and what they no longer get."""

import aiohttp
import pytest

from hosts.people.tabs import Tab
from hosts.sent import (
    chat_bodies,
    kinds,
    outputs,
    stripped,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL
from owui_chat.storage.records import message_key
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]


async def let_answers_begin(simulator: Simulator) -> None:
    """Be the second of two that begin to answer together."""
    headers = {"Authorization": f"Bearer {simulator.api_key}"}
    body = {"model": "gpt-6-luna", "input": "sim:short,together=2", "store": False}
    url = f"{simulator.base_url}/responses"
    async with aiohttp.request("POST", url, json=body, headers=headers) as reply:
        assert reply.status == 200


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_row")
async def test_items_survive_a_locked_database(
    tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """The answer goes on while another process writes; what was refused comes after."""
    first = await tab.begin(MODEL, "sim:chat,together=2 hello")
    await simulator.requested(1)

    with server.locked():
        await let_answers_begin(simulator)
        await first.until(lambda seen: seen.text)
        kept_meanwhile = server.stored_chat(first.chat_id).get(
            message_key(first.message_id)
        )
    await first.until(lambda seen: seen.finished.is_set())
    await tab.settle(first)
    second = await tab.send(MODEL, "sim:chat thanks", chat_id=first.chat_id)

    assert kept_meanwhile is None
    assert first.error is second.error is None
    assert (await tab.message(first))["content"].endswith("That is all for now.")
    before, _, after = chat_bodies(simulator)
    received = [stripped(item) for item in outputs(simulator)[0]]
    assert after["input"][:-1] == [*before["input"], *received]
    assert "reasoning" in kinds(received)
