"""What the pipe holds between requests, counted inside the real Open WebUI."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import PLUGINS, install_pipe
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "census"),
]

NOTHING = {"sessions": 0, "idle_sockets": 0, "lent": 0, "tasks": 0, "runs": 0}


@pytest_asyncio.fixture
async def census(admin: User) -> AsyncIterator[None]:
    """The pipe that counts, installed for a while."""
    await admin.install_function("census", (PLUGINS / "census.py").read_text())
    await admin.models()
    yield
    await admin.delete_function("census")


async def count(admin: User, function_id: str) -> Json:
    counted: Json = json.loads(await admin.complete("census.count", function_id))
    return counted


async def settled(admin: User, function_id: str) -> Json:
    """What it has open, once that is nothing, or after a minute.

    The host lets go of an ended request in its own time.
    """
    for _ in range(300):
        counted = await count(admin, function_id)
        if counted == NOTHING:
            break
        await asyncio.sleep(0.2)
    return counted


async def test_a_replaced_or_deleted_pipe_leaves_nothing_open(
    tab: Tab, admin: User, simulator: Simulator, pipe_source: str, pipe_valves: Json
) -> None:
    """No session, no socket, no task is left of it once its runs have ended.

    The old version finishes its answer; the new one goes on with the chat.
    """
    own = "short_lived"
    ids = await install_pipe(admin, own, pipe_source, pipe_valves)
    turn = await tab.send(ids[0], "sim:short hello")
    assert turn.error is None
    held = await count(admin, own)
    assert (held["sessions"], held["idle_sockets"]) == (1, 1)

    running = await tab.begin(ids[0], "sim:chat,hold=60 hello")
    await running.until(lambda seen: seen.text)
    await admin.install_function(own, pipe_source + "\n# newer\n")
    during = await count(admin, own)
    simulator.release()
    await running.finished.wait()
    await tab.settle(running)
    after = await settled(admin, own)
    stored = await tab.message(running)
    again = await tab.send(ids[0], "sim:chat again", chat_id=running.chat_id)
    await admin.delete_function(own)
    deleted = await settled(admin, own)

    assert running.error is None
    assert stored["content"].endswith("That is all for now.")
    assert "I was given 1 reasoning item back" in again.text
    assert during["lent"] >= 1
    assert after == deleted == NOTHING
