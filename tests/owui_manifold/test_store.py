"""Kept items go to the key of their own message and nowhere else."""

import asyncio

import pytest

from owui_chat.stored import Record, message_key, write_records
from owui_manifold.caller import Caller
from owui_manifold.store import ChatStore, open_store
from run_sample import ORIGIN, reasoning
from stand_in_host import StandInHost

pytestmark = pytest.mark.asyncio

CALLER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-1", streams=True)
FIRST, SECOND = message_key("m-1"), message_key("m-2")


def record(name: str, message_id: str = "m-1") -> Record:
    """A record of one item."""
    ulid = name * 26
    return Record(ulid, "f.gpt-5.2", 0, (reasoning(name),), message_id, ORIGIN)


async def opened(caller: Caller = CALLER) -> ChatStore:
    """The store of a caller that has one."""
    store = await open_store(caller)
    assert store is not None
    return store


async def test_new_chat_has_no_records(host: StandInHost) -> None:
    """And nothing is written before there is something to keep."""
    store = await opened()

    assert store.records == {}
    assert host.chats.writes == []


async def test_records_of_a_message_are_written_together(host: StandInHost) -> None:
    """The host replaces a key whole."""
    store = await opened()

    assert await store.write(record("1"))
    assert await store.write(record("2"))

    both = write_records({"1" * 26: record("1"), "2" * 26: record("2")})
    assert host.kept == {FIRST: both}


async def test_record_that_is_written_again_replaces_itself(host: StandInHost) -> None:
    """The end of a message may tell more."""
    store = await opened()
    await store.write(record("1"))
    changed = Record("1" * 26, "f.gpt-5.2", 0, (reasoning("9"),), "m-1", ORIGIN)

    await store.write(changed)

    assert host.kept == {FIRST: write_records({"1" * 26: changed})}


async def test_records_of_an_earlier_round_are_kept_on(host: StandInHost) -> None:
    """Each round opens the store anew."""
    await (await opened()).write(record("1"))

    again = await opened()
    await again.write(record("2"))

    assert again.records == {"1" * 26: record("1")}
    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "2" * 26]


async def test_answers_at_once_lose_nothing(host: StandInHost) -> None:
    """Two models, two copies of the pipe or two workers in one chat."""
    other = Caller("g.gpt-5.2", "user-1", "chat-1", "m-2", streams=True)
    one, two = await opened(), await opened(other)

    await asyncio.gather(
        one.write(record("1")),
        two.write(record("2", "m-2")),
        one.write(record("3")),
        two.write(record("4", "m-2")),
    )

    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "3" * 26]
    assert list(host.kept[SECOND]["items"]) == ["2" * 26, "4" * 26]
    again = await opened()
    assert {ulid[0] for ulid in again.records} == set("1234")


async def test_refused_write_is_told_and_forgotten(host: StandInHost) -> None:
    """No marker may name what is not there."""
    store = await opened()
    host.chats.is_full = True
    assert not await store.write(record("1"))

    host.chats.is_full = False
    await store.write(record("2"))

    assert list(host.kept[FIRST]["items"]) == ["2" * 26]


@pytest.mark.parametrize(
    "caller",
    [
        Caller("f.m", "user-1", "temporary:1", "m-1"),
        Caller("f.m", "user-1", "chat-1", ""),
        Caller("f.m", "user-2", "chat-1", "m-1"),
        Caller("f.m", "user-1", "chat-2", "m-1"),
    ],
    ids=["temporary", "plain HTTP", "another user's", "no row"],
)
async def test_chat_without_a_row_of_its_own_has_no_store(
    caller: Caller, host: StandInHost
) -> None:
    """Nothing is kept of it, nothing is read."""
    assert await open_store(caller) is None
