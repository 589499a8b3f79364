"""What the pipe keeps between requests, counted inside the real Open WebUI."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import PLUGINS, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
COUNT = (PLUGINS / "kept_count.py").read_text()
REQUESTS = 6
GROWTH = 1_000
"""Bytes that a request may leave: hashes."""


@pytest_asyncio.fixture
async def counting(admin: User) -> AsyncIterator[None]:
    """The function that counts, installed for a while."""
    await admin.install_function("kept", COUNT)
    await admin.models()
    yield
    await admin.delete_function("kept")


async def count(admin: User) -> dict[str, int]:
    """Return what the pipe keeps now."""
    counted: dict[str, int] = json.loads(await admin.complete("kept.count", PIPE))
    return counted


@pytest.mark.asyncio
@pytest.mark.usefixtures("counting")
async def test_refused_keys_and_words_of_a_user_are_not_kept(
    tab: Tab, admin: User, member: User, simulator: Simulator
) -> None:
    """600 long ones held 57 MB until the server ended."""
    counts = []
    async with valves_changed(admin, PIPE, USER_API_KEYS="allowed"):
        for number in range(2 * REQUESTS):
            if number == REQUESTS:
                counts.append(await count(admin))
            word = f"{number:03}" + "x" * 1_900
            await member.set_user_valves(PIPE, {"API_KEY": f"sk-{word}"})
            turn = await tab.send(MODEL, "sim:short", body={word: word, "top_p": word})
            assert turn.error
        await member.set_user_valves(PIPE, {})
    counts.append(await count(admin))

    first, last = counts
    assert first["keepers"] == last["keepers"] >= 4
    assert first["patterns"] == last["patterns"] == 0
    assert last["bytes"] - first["bytes"] < GROWTH * REQUESTS
