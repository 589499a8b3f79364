"""What is kept of a chat, what later turns get of it, and what they no longer get."""

import aiohttp
import pytest

from hosts.chats.at_once import AT_ONCE, Crowd
from hosts.people.tabs import Tab
from hosts.sent import (
    chat_bodies,
    kinds,
    outputs,
    stripped,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE
from owui_chat.storage.records import message_key
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

THINKING = ("gpt-6.1-sol", "gpt-6.2-sol", "gpt-5.2-high")


@pytest.mark.asyncio
async def test_many_answers_at_once_lose_nothing(
    tab: Tab, copy_of_pipe: list[str], simulator: Simulator
) -> None:
    """Two messages, each put to five models of two copies of the pipe.

    Each answer is a branch of the same chat, keeps its items and gets them back. The
    questions are taken one by one, because the host's own writes of many lock SQLite
    for longer than it waits; then all are answered together.
    """
    ours = [f"{PIPE}.{name}" for name in THINKING]
    crowd = Crowd([tab], [*ours, *copy_of_pipe], simulator, in_line=True)
    first = await tab.send(MODEL, "sim:short hello")

    turns = await crowd.asks_after(first)
    later = await crowd.goes_on(turns)

    assert len(turns) == AT_ONCE
    assert {turn.error for turn in (*turns, *later)} == {None}
    assert await crowd.lost([first, *turns, *later]) == []
    assert crowd.forgotten(turns) == []


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
