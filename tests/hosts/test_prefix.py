"""What a chat sends stays what it was: turns in a real Open WebUI."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
import pytest_asyncio

from hosts.chats.lighthouse import (
    FACT,
    MEMORY,
    MIN_CACHED,
    MODEL,
    TURNS,
    Talk,
    cached_shares,
)
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import answered, instructions_of, stripped
from hosts.servers.website import Website
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
STEADY = ("tools", "prompt_cache_key", "safety_identifier")


@pytest_asyncio.fixture
async def talk(admin: User) -> AsyncIterator[Talk]:
    async with Website() as site:
        talk = Talk(f"{PIPE}.{MODEL}", site)
        async with talk.possible(admin):
            yield talk


@pytest.mark.asyncio
async def test_turns_begin_as_the_last_one_did(
    tab: Tab, talk: Talk, simulator: Simulator
) -> None:
    """Pages, a memory, a file with its text, a clock: nothing of it moves."""
    turns = await talk.happen(tab)

    assert [turn.error for turn in turns] == [None] * TURNS
    asked = answered(simulator)
    assert len(asked) == TURNS + TURNS // 2
    first = asked[0].body
    assert MEMORY in instructions_of(first)
    assert "10:00:00" in instructions_of(first)
    for before, after in pairwise(asked):
        received = [stripped(item) for item in (before.response or {})["output"]]
        expected = [*before.body["input"], *received]
        assert after.body["input"][: len(expected)] == expected
        assert [after.body[key] for key in STEADY] == [first[key] for key in STEADY]
    assert not any((r.response or {})["input_transformations"] for r in asked)
    cited = (await tab.message(turns[1]))["sources"]
    assert talk.site.url("tide-1") in json.dumps(cited)
    last = json.dumps(asked[-1].body["input"])
    assert last.count(FACT) == 20  # of the first question; the others refer to it
    assert "It is 2026-11-22 10:05:00." in last
    assert "On page tide-5 the tide turns at noon." in last
    assert min(cached_shares(asked)) >= MIN_CACHED
