"""The database of Open WebUI is away for some seconds, and comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.servers.databases import lent_postgres
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe
from simulator import Simulator
from upstream.relay import Relay

pytestmark = [pytest.mark.host, pytest.mark.databases, pytest.mark.asyncio]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"


@pytest_asyncio.fixture(scope="module")
async def relayed(
    pipe_source: str, pipe_valves: dict[str, str]
) -> AsyncIterator[tuple[OpenWebUI, Relay]]:
    """A server whose PostgreSQL lies behind a relay."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(lent_postgres())
        port = urlsplit(address).port
        assert port
        relay = await stack.enter_async_context(Relay(port))
        env = {"DATABASE_URL": address.replace(str(port), str(relay.port))}
        server = await stack.enter_async_context(OpenWebUI(env=env))
        await install_pipe(server.admin, PIPE, pipe_source, pipe_valves)
        yield server, relay


async def test_answer_that_ends_meanwhile_is_stored(
    relayed: tuple[OpenWebUI, Relay], simulator: Simulator
) -> None:
    """Open WebUI stores an answer once, at its end: the end waits for the database."""
    server, relay = relayed
    async with Tab(server.admin) as tab:
        turn = await tab.begin(MODEL, "sim:chat,delay=100 hello")
        await turn.until(lambda seen: len(seen.text) > 20)
        await relay.interrupt()
        await asyncio.sleep(8)
        shown = turn.text
        await relay.resume()
        stored = await tab.ended_message(turn)
        again = await tab.send(MODEL, "sim:chat go on", chat_id=turn.chat_id)

    assert len(shown) > 20
    assert shown in stored["content"]
    assert "I was given 1 reasoning item back" in again.text
