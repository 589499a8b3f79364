"""One of two servers is killed in the middle of an answer."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

import pytest

from hosts.people.questions import calling
from hosts.people.tabs import Tab
from hosts.sent import chat_bodies, tool_outputs
from hosts.servers.shared import shared_servers
from hosts.setup.pipes import install_pipe, install_toolkit
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.databases, pytest.mark.asyncio]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
USED = calling("get_weather", "toolkit")
WORDS = 150


async def test_other_server_goes_on_with_all_chats(
    pipe_source: str, pipe_valves: dict[str, str], simulator: Simulator
) -> None:
    """Its own answers end whole, and the chat of the lost one has its finished round."""
    async with AsyncExitStack() as stack:
        killed, other = await stack.enter_async_context(shared_servers())
        await install_toolkit(killed.admin)
        await install_pipe(killed.admin, PIPE, pipe_source, pipe_valves)
        here = await stack.enter_async_context(Tab(killed.admin))
        there = await stack.enter_async_context(Tab(other.admin))
        kept = await there.begin(MODEL, f"sim:long,deltas={WORDS},delay=50")
        await kept.until(lambda turn: "word" in turn.text)
        lost = await here.begin(MODEL, "sim:tool-twice,delay=200 weather?", body=USED)
        await lost.until(lambda _: len(chat_bodies(simulator)) == 3)

        os.kill(killed.pid, signal.SIGKILL)

        await asyncio.wait_for(kept.finished.wait(), 60)
        assert kept.error is None
        assert kept.text.count("word") == WORDS
        await there.stop(lost)  # Redis lists it as running for five minutes
        after = await there.send(MODEL, "sim:chat go on", chat_id=lost.chat_id)
        assert after.error is None
        assert len(tool_outputs(chat_bodies(simulator)[-1])) == 1
