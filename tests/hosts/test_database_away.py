"""The database of Open WebUI is away for some seconds, and comes back.

On a server of its own: connections that other tests left in its pool are broken, too,
and Open WebUI does not answer every question that meets one of them.
"""

import asyncio

import pytest

from hosts.people.tabs import Tab
from hosts.servers.databases import lent_postgres, without_postgres
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, install_pipe
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.databases, pytest.mark.asyncio]

AWAY_SECONDS = 2


async def test_answer_that_ends_meanwhile_is_stored(
    pipe_source: str,
    pipe_valves: dict[str, str],
    forks: ForkServer,
    simulator: Simulator,
) -> None:
    """Open WebUI stores an answer once, at its end: the end waits for the database."""
    async with (
        lent_postgres() as address,
        OpenWebUI(env={"DATABASE_URL": address}, forks=forks) as server,
        Tab(server.admin) as tab,
    ):
        await install_pipe(server.admin, PIPE, pipe_source, pipe_valves)
        turn = await tab.begin(MODEL, "sim:chat,hold=60 hello")
        await turn.until(lambda seen: len(seen.text) > 20)
        async with without_postgres(address):
            shown = turn.text
            simulator.release()
            await simulator.all_ended()
            await asyncio.sleep(AWAY_SECONDS)
        stored = await tab.ended_message(turn)
        again = await tab.send(MODEL, "sim:chat go on", chat_id=turn.chat_id)

    assert shown in stored["content"]
    assert stored["content"].endswith("That is all for now.")
    assert "I was given 1 reasoning item back" in again.text
