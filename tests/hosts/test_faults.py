"""What goes wrong upstream, as a person in the real Open WebUI meets it."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.sent import chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import PLUGINS, install_pipe
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"


CENSUS = (PLUGINS / "census.py").read_text()


async def count(admin: User) -> dict[str, int]:
    """What the short-lived pipe holds open."""
    text = await admin.complete("census.count", "short_lived")
    counted: dict[str, int] = json.loads(text)
    return counted


NOTHING = {"sessions": 0, "idle_sockets": 0, "lent": 0, "tasks": 0, "runs": 0}


async def settled(admin: User, expected: dict[str, int]) -> dict[str, int]:
    """The same, once it is as expected, or after a minute.

    The host lets go of an ended request in its own time.
    """
    for _ in range(300):
        counted = await count(admin)
        if counted == expected:
            break
        await asyncio.sleep(0.2)
    return counted


@pytest_asyncio.fixture
async def census(admin: User) -> AsyncIterator[None]:
    """The pipe that counts, installed for a while."""
    await admin.install_function("census", CENSUS)
    await admin.models()
    yield
    await admin.delete_function("census")


@pytest.mark.asyncio
@pytest.mark.usefixtures("census")
async def test_a_replaced_or_deleted_pipe_leaves_nothing_open(
    tab: Tab,
    admin: User,
    simulator: Simulator,
    pipe_source: str,
    pipe_valves: dict[str, str],
) -> None:
    """No session, no socket, no task is left of it once its runs have ended.

    The old version finishes its answer; the new one goes on with the chat.
    """
    ids = await install_pipe(admin, "short_lived", pipe_source, pipe_valves)
    turn = await tab.send(ids[0], "sim:short hello")
    assert turn.error is None
    held = await count(admin)
    assert (held["sessions"], held["idle_sockets"]) == (1, 1)

    running = await tab.begin(ids[0], "sim:chat,hold=60 hello")
    await running.until(lambda seen: seen.text)
    await admin.install_function("short_lived", pipe_source + "\n# newer\n")
    during = await count(admin)
    simulator.release()
    await running.finished.wait()
    await tab.settle(running)
    after = await settled(admin, NOTHING)
    stored = await tab.message(running)
    again = await tab.send(ids[0], "sim:chat again", chat_id=running.chat_id)
    await admin.delete_function("short_lived")
    deleted = await settled(admin, NOTHING)

    assert running.error is None
    assert stored["content"].endswith("That is all for now.")
    assert "I was given 1 reasoning item back" in again.text
    assert during["lent"] >= 1
    assert after == NOTHING
    assert deleted == NOTHING


async def asked_at_once(
    tabs: list[Tab], canaries: list[str], simulator: Simulator
) -> list[Turn]:
    """One question of each tab; all are being answered before the first one is.

    They are begun a few at a time, because the host's SQLite takes no more new chats
    at once.
    """
    begun_at_once = asyncio.Semaphore(4)

    async def begin(tab: Tab, canary: str) -> Turn:
        async with begun_at_once:
            return await tab.begin(MODEL, f"sim:slow,deltas=24,hold=16 {canary}")

    pairs = zip(tabs, canaries, strict=True)
    turns = await asyncio.gather(*(begin(tab, canary) for tab, canary in pairs))
    await simulator.requested(len(tabs))
    assert simulator.open_streams == len(tabs)
    simulator.release()
    for turn in turns:
        await turn.until(lambda seen: seen.finished.is_set())
    return list(turns)


@pytest.mark.asyncio
async def test_runs_of_two_users_stay_apart(
    admin: User, member: User, simulator: Simulator, server: OpenWebUI
) -> None:
    """Each checks for the other's words: events, stored chats, kept items, valves."""
    async with Tab(admin) as admins_tab, Tab(member) as members_tab:
        await admin.set_user_valves(PIPE, {"VERBOSITY": "low"})
        tabs = [admins_tab, members_tab] * 6
        words = [
            f"{'ADM' if tab is admins_tab else 'MEM'}-canary-{i}"
            for i, tab in enumerate(tabs)
        ]
        turns = await asked_at_once(tabs, words, simulator)
        await admin.set_user_valves(PIPE, {"VERBOSITY": "inherit"})

    assert all(turn.error is None for turn in turns)
    for tab, turn, word in zip(tabs, turns, words, strict=True):
        theirs = "MEM-canary" if tab is admins_tab else "ADM-canary"
        seen = json.dumps(turn.events) + json.dumps(server.stored_chat(turn.chat_id))
        assert word in seen
        assert theirs not in seen
    for body in chat_bodies(simulator):
        mine = "ADM-canary" in json.dumps(body["input"])
        assert (body.get("text") == {"verbosity": "low"}) is mine
