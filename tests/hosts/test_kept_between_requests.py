"""What the pipe holds between requests, counted inside the real Open WebUI."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import MODEL, PIPE, PLUGINS, install_pipe, valves_changed
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "census"),
]

NOTHING = {"sessions": 0, "idle_sockets": 0, "lent": 0, "tasks": 0, "runs": 0}
REQUESTS = 6
GROWTH = 1_000
"""Bytes that a request may leave: hashes."""


@pytest_asyncio.fixture
async def census(admin: User) -> AsyncIterator[None]:
    """The pipe that counts, installed for a while."""
    await admin.install_function("census", (PLUGINS / "census.py").read_text())
    await admin.models()
    yield
    await admin.delete_function("census")


async def count(admin: User, function_id: str, what: str) -> Json:
    """What a pipe has `open`, or what it has `kept`."""
    counted: Json = json.loads(await admin.complete("census.count", function_id))[what]
    return counted


async def settled(admin: User, function_id: str) -> Json:
    """What it has open, once that is nothing, or after a minute.

    The host lets go of an ended request in its own time.
    """
    for _ in range(300):
        counted = await count(admin, function_id, "open")
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
    held = await count(admin, own, "open")
    assert (held["sessions"], held["idle_sockets"]) == (1, 1)

    running = await tab.begin(ids[0], "sim:chat,hold=60 hello")
    await running.until(lambda seen: seen.text)
    await admin.install_function(own, pipe_source + "\n# newer\n")
    during = await count(admin, own, "open")
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


async def test_refused_keys_and_words_of_a_user_are_not_kept(
    tab: Tab, admin: User, member: User, simulator: Simulator
) -> None:
    """600 long ones held 57 MB until the server ended."""
    counts = []
    async with valves_changed(admin, PIPE, USER_API_KEYS="allowed"):
        for number in range(2 * REQUESTS):
            if number == REQUESTS:
                counts.append(await count(admin, PIPE, "kept"))
            word = f"{number:03}" + "x" * 1_900
            await member.set_user_valves(PIPE, {"API_KEY": f"sk-{word}"})
            turn = await tab.send(MODEL, "sim:short", body={word: word, "top_p": word})
            assert turn.error
        await member.set_user_valves(PIPE, {})
    counts.append(await count(admin, PIPE, "kept"))

    first, last = counts
    assert first["keepers"] == last["keepers"] >= 4
    assert first["patterns"] == last["patterns"] == 0
    assert last["bytes"] - first["bytes"] < GROWTH * REQUESTS
