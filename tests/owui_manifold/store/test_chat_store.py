"""Kept items go to the key of their own message and nowhere else."""

import asyncio
import sys
import threading
from math import inf

import pytest

from openai_responses.long_work import run_work
from openai_responses.repairs.chat_repairs import LeaveOutItem, PlainItems
from owui_chat.input.prefix import SentContext
from owui_chat.render.items import OutputItems
from owui_chat.storage.records import (
    MAX_STORED_KB,
    Record,
    message_key,
    read_records,
    write_records,
)
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.store.chat_store import (
    ChatKeys,
    ChatStore,
    chat_keys,
    open_store,
)
from runs.sample import ORIGIN, call, reasoning
from stand_in.host import SERVER_SECRET, Row, StandInHost
from stand_in.signing import KEYS, SIGN

pytestmark = pytest.mark.asyncio

CALLER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-1", streams=True)
LATER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-2", streams=True)
PLAIN = Valves(HISTORY_CARRIER="markers")
KEYED = Valves(HISTORY_CARRIER="markers", STORE_ENCRYPTION_KEY=" a key of its own ")
IN_OUTPUT = Valves()
FIRST, SECOND = message_key("m-1"), message_key("m-2")


def record(name: str, message_id: str = "m-1") -> Record:
    """A record of one item."""
    ulid = name * 26
    return Record(ulid, "f.gpt-5.2", 0, (reasoning(name),), message_id, ORIGIN)


async def opened(caller: Caller = CALLER, valves: Valves = PLAIN) -> ChatStore:
    """The store of a caller that has one."""
    keys = chat_keys(valves, caller)
    store = await open_store(caller, valves, keys)
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

    await store.write(record("1"))
    await store.write(record("2"))

    both = write_records({"1" * 26: record("1"), "2" * 26: record("2")}, SIGN)
    assert host.kept == {FIRST: both}


async def test_record_that_is_written_again_replaces_itself(host: StandInHost) -> None:
    """The end of a message may tell more."""
    store = await opened()
    await store.write(record("1"))
    changed = Record("1" * 26, "f.gpt-5.2", 0, (reasoning("9"),), "m-1", ORIGIN)

    await store.write(changed)

    assert host.kept == {FIRST: write_records({"1" * 26: changed}, SIGN)}


async def test_many_records_are_written_less_often(host: StandInHost) -> None:
    """Each write has all of them; the end of the answer stores what is left."""
    store = await opened()
    records = {f"{n:026d}": record("1")._replace(ulid=f"{n:026d}") for n in range(500)}

    written = 0
    for number, one in enumerate(records.values(), 1):
        await store.write(one)
        if len(host.chats.writes) > written:
            written = len(host.chats.writes)
            assert len(host.kept[FIRST]["items"]) == number
        assert number > 32 or written == number
    assert written < 150
    assert await store.flush()

    assert host.kept == {FIRST: write_records(records, SIGN)}


async def test_records_of_an_earlier_round_are_kept_on(host: StandInHost) -> None:
    """Each round opens the store anew."""
    await (await opened()).write(record("1"))

    again = await opened()
    await again.write(record("2"))

    assert again.records == {"1" * 26: record("1")}
    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "2" * 26]


async def test_answers_at_once_lose_nothing(host: StandInHost) -> None:
    """Two models, two copies of the pipe or two workers in one chat."""
    one, two = await opened(), await opened(LATER)

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


async def test_refused_write_goes_with_the_next(host: StandInHost) -> None:
    """A database that another process has locked is there again soon."""
    store = await opened()
    host.chats.refusing = 1

    await store.write(record("1"))
    await store.write(record("2"))

    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "2" * 26]
    assert await store.flush()
    assert len(host.chats.writes) == 1


async def test_refused_write_is_tried_again_at_the_end(host: StandInHost) -> None:
    """A few times; then the answer ends without."""
    store = await opened()
    store.set_sent(SentContext(instructions="Be brief."))
    host.chats.refusing = inf
    await store.write(record("1"))
    assert not await store.flush()

    host.chats.refusing = 2
    assert await store.flush()

    assert list(host.kept[FIRST]["items"]) == ["1" * 26]
    assert (await opened(LATER)).sent == {"m-1": SentContext(instructions="Be brief.")}


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
    assert await open_store(caller, PLAIN, KEYS) is None


# ---------------------------------------------------------- signed and encrypted

SENT = SentContext(instructions="The secret plan.")


@pytest.mark.parametrize("valves", [PLAIN, IN_OUTPUT], ids=["markers", "output"])
async def test_what_was_sent_cannot_be_read_in_the_row(
    valves: Valves, host: StandInHost
) -> None:
    """Whoever gets the chat as shared gets its row."""
    store = await opened(valves=valves)
    store.set_sent(SENT)
    await store.write(record("1"))
    if valves is IN_OUTPUT:
        answered(host, store)

    assert "secret plan" not in str(host.chats.rows["chat-1"].chat)
    assert (await opened(LATER)).sent == {"m-1": SENT}


@pytest.mark.parametrize(
    ("valves", "secret"),
    [(PLAIN, SERVER_SECRET), (KEYED, "a key of its own")],
)
async def test_key_is_that_of_the_valve_or_of_the_server(
    valves: Valves, secret: str, host: StandInHost
) -> None:
    """The valve wins, without the white space of a copy and paste."""
    await (await opened(valves=valves)).write(record("1"))

    found = read_records(host.kept, ChatKeys(secret, "user-1", "chat-1").sign)

    assert found == {"1" * 26: record("1")}


@pytest.mark.parametrize(
    ("caller", "valves"),
    [(CALLER, KEYED), (CALLER._replace(user_id="user-2"), PLAIN)],
    ids=["another key", "cloned from another user"],
)
async def test_records_of_others_are_harmless_and_break_nothing(
    caller: Caller, valves: Valves, host: StandInHost
) -> None:
    """Encrypted reasoning is what is left of them."""
    host.chats.rows["chat-1"].user_id = caller.user_id
    first = await opened(caller, valves)
    first.set_sent(SENT)
    await first.write(mixed("1"))
    host.chats.rows["chat-1"].user_id = "user-1"

    store = await opened(LATER)
    await store.write(mixed("2", "m-2"))

    again = await opened(LATER)
    bare, stub = again.records["1" * 26].payload
    assert set(bare) == {"type", "summary", "encrypted_content"}
    assert set(stub) == {"type", "call_id"}
    assert again.records["2" * 26] == mixed("2", "m-2")
    assert again.sent == {}


@pytest.mark.parametrize("lacks", ["secret", "name", "cryptography"])
async def test_server_without_a_key_stores_no_instructions(
    lacks: str, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing that it could not tell from a forgery."""
    package = "cryptography.hazmat.primitives.ciphers.aead"
    if lacks == "cryptography":
        monkeypatch.setitem(sys.modules, package, None)
    else:
        names = {"WEBUI_SECRET_KEY": ""} if lacks == "secret" else {}
        host.provide("env", VERSION="0.12.4", **names)
    store = await opened()
    store.set_sent(SENT)
    await store.write(mixed("1"))

    assert "sent" not in host.kept[FIRST]
    again = await opened(LATER)
    assert again.sent == {}
    is_signed = lacks == "cryptography"
    assert (again.records["1" * 26] == mixed("1")) is is_signed


# ---------------------------------------------------------------- refusals


def mixed(name: str, message_id: str = "m-1") -> Record:
    """A record of reasoning with a call behind it."""
    payload = (reasoning(name), call(name))
    return Record(name * 26, "f.gpt-5.2", 0, payload, message_id, ORIGIN)


REPAIR, OTHER = PlainItems("b" * 32), LeaveOutItem("a" * 32)


async def test_repair_is_stored_with_the_message_that_needed_it(
    host: StandInHost,
) -> None:
    """And holds for every message of the chat; the others are not written again."""
    await (await opened()).write(record("1"))
    refused = await opened(LATER)

    await refused.add_repair(REPAIR)

    assert refused.repairs == (REPAIR,)
    assert host.kept[SECOND]["repairs"] == [["plain", "b" * 32]]
    assert host.kept[FIRST] == write_records({"1" * 26: record("1")}, SIGN)
    for caller in (CALLER, LATER):
        found = await opened(caller)
        assert found.repairs == (REPAIR,)
        assert found.records == {"1" * 26: record("1")}


async def test_later_writes_keep_the_repairs(host: StandInHost) -> None:
    """In the same run and in the next round."""
    refused = await opened(LATER)
    await refused.add_repair(REPAIR)

    await refused.write(record("2", "m-2"))
    await (await opened(LATER)).write(record("3", "m-2"))

    found = await opened(LATER)
    assert found.repairs == (REPAIR,)
    assert sorted(ulid[0] for ulid in found.records) == ["2", "3"]


async def test_repairs_add_up(host: StandInHost) -> None:
    """Of several runs and messages, each once."""
    first = await opened()
    await first.add_repair(REPAIR)
    await first.add_repair(OTHER)
    await first.add_repair(REPAIR)
    await (await opened(LATER)).add_repair(OTHER)

    assert host.kept[FIRST]["repairs"] == [["plain", "b" * 32], ["item", "a" * 32]]
    assert host.kept[SECOND]["repairs"] == [["item", "a" * 32]]
    assert {*(await opened()).repairs} == {REPAIR, OTHER}
    assert len((await opened()).repairs) == 2


async def test_without_a_refusal_there_is_no_list(host: StandInHost) -> None:
    """It would be read at each later answer."""
    await (await opened()).write(record("1"))

    assert "repairs" not in host.kept[FIRST]


# ------------------------------------------------------- the carrier `output`


def answered(host: StandInHost, store: ChatStore, message_id: str = "m-1") -> None:
    """Let the host store an answer with all that the store has given to it."""
    shown = OutputItems()
    for kept in store.take_unsent():
        [*_] = shown.add_record(kept, None)
    history = {"messages": {message_id: {"output": shown.items}}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history})


async def test_answer_itself_holds_what_is_kept(host: StandInHost) -> None:
    """Nothing is written; it is read whatever the valve says later."""
    store = await opened(valves=IN_OUTPUT)

    store.write_beside(record("1"))
    answered(host, store)

    assert store.take_unsent() == []
    assert host.chats.writes == []
    for later in (IN_OUTPUT, PLAIN):
        found = (await opened(LATER, later)).records
        assert found == {"1" * 26: record("1")}


async def test_repair_is_noted_in_the_answer(host: StandInHost) -> None:
    """At once, for an answer that may keep nothing more."""
    first = await opened(valves=IN_OUTPUT)
    first.write_beside(record("1"))
    answered(host, first)
    refused = await opened(LATER, IN_OUTPUT)

    await refused.add_repair(REPAIR)
    [noted] = refused.take_unsent()

    assert noted.item["kept"]["repairs"] == [["plain", "b" * 32]]
    assert noted.item["kept"]["items"] == {}
    assert host.chats.writes == []


async def test_repair_that_the_answer_holds_is_read(host: StandInHost) -> None:
    """Whatever the valve says later."""
    refused = await opened(valves=IN_OUTPUT)
    await refused.add_repair(REPAIR)
    answered(host, refused)

    for later in (IN_OUTPUT, PLAIN):
        assert (await opened(LATER, later)).repairs == (REPAIR,)


async def test_what_was_sent_stays_with_a_record_that_is_replaced(
    host: StandInHost,
) -> None:
    """A record is written again where its text is not shown as the model wrote it."""
    sent = SentContext(instructions="Be brief.")
    store = await opened(valves=IN_OUTPUT)
    store.set_sent(sent)

    store.write_beside(record("1"))
    store.write_beside(record("2"))
    store.write_beside(record("1")._replace(shown="x" * 32))
    answered(host, store)

    assert (await opened(LATER, IN_OUTPUT)).sent == {"m-1": sent}


@pytest.mark.parametrize("with_record", [True, False])
async def test_what_was_sent_is_kept_in_the_answer(
    with_record: bool, host: StandInHost
) -> None:
    """Once: with the first record, or at the end where there is none."""
    sent = SentContext(instructions="Be brief.")
    store = await opened(valves=IN_OUTPUT)
    store.set_sent(sent)

    if with_record:
        store.write_beside(record("1"))
        store.write_beside(record("2"))
    assert await store.flush()
    assert await store.flush()
    answered(host, store)

    assert host.chats.writes == []
    assert str(host.chats.rows["chat-1"].chat).count("'sent'") == 1
    later = await opened(LATER, IN_OUTPUT)
    assert later.sent == {"m-1": sent}
    assert len(later.records) == (2 if with_record else 0)


# ---------------------------------------------------------------- tidying up


async def test_items_of_deleted_messages_go_with_the_next_write(
    host: StandInHost,
) -> None:
    """In one write; those of the others stay."""
    for message_id, name in (("m-0", "0"), ("m-1", "1")):
        caller = CALLER._replace(message_id=message_id)
        await (await opened(caller)).write(record(name, message_id))
    row = host.chats.rows["chat-1"]
    messages = {"m-1": {"done": True}, "m-2": {"done": False}}
    row.chat = {**row.chat, "history": {"messages": messages}}
    writes = len(host.chats.writes)

    store = await opened(LATER)
    await store.write(record("2", "m-2"))
    await store.write(record("3", "m-2"))

    assert [sorted(write) for write in host.chats.writes[writes:]] == [
        sorted([message_key("m-0"), SECOND]),
        [SECOND],
    ]
    left = (await opened(LATER)).records
    assert sorted(left) == ["1" * 26, "2" * 26, "3" * 26]


async def test_chat_keeps_no_more_than_its_room(host: StandInHost) -> None:
    """The oldest go; the answer's own never do."""
    caller = CALLER._replace(message_id="m-0")
    sealed = {**reasoning("0"), "encrypted_content": "x" * (MAX_STORED_KB * 1024)}
    old = Record("0" * 26, "f.gpt-5.2", 0, (sealed,), "m-0", ORIGIN)
    await (await opened(caller)).write(old)
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": {"m-0": {"done": True}}}}

    await (await opened(LATER)).write(record("2", "m-2"))

    assert list((await opened(LATER)).records) == ["2" * 26]


async def test_refused_write_is_tidied_up_later(host: StandInHost) -> None:
    """Nothing is taken for done that was not."""
    await (await opened()).write(record("1"))
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": {"m-2": {}}}}
    store = await opened(LATER)
    host.chats.refusing = 1
    await store.write(record("2", "m-2"))

    await store.write(record("3", "m-2"))

    assert list((await opened(LATER)).records) == ["2" * 26, "3" * 26]


@pytest.mark.parametrize(("size", "is_apart"), [(10, False), (100_000, True)])
async def test_large_chat_is_read_in_a_thread(size: int, is_apart: bool) -> None:
    """The loop answers others meanwhile; other chats are read at once."""
    thread = await run_work(size, threading.current_thread)

    assert (thread is not threading.current_thread()) == is_apart


async def test_large_chat_is_cleaned_in_a_thread(host: StandInHost) -> None:
    """Its first write signs and removes what many messages hold."""
    keys, threads = chat_keys(PLAIN, CALLER), set[threading.Thread]()
    sign = keys.sign

    def noted(value: object, is_sorted: bool) -> str:
        threads.add(threading.current_thread())
        return sign(value, is_sorted) if sign else ""

    keys.sign = noted
    history = {"messages": {f"m-{n}": {"role": "user"} for n in range(4000)}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history})
    store = await open_store(CALLER, PLAIN, keys)
    assert store is not None
    await store.write(record("1"))

    assert threads
    assert threading.current_thread() not in threads


async def test_store_knows_how_large_its_chat_is(host: StandInHost) -> None:
    """Outputs of answers and kept records count."""
    output = [{"type": "message"}] * 500
    history = {"messages": {"m-1": {"role": "assistant", "output": output}}}
    key = {message_key("m-0"): {"items": dict.fromkeys(map(str, range(300)))}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history, **key})

    store = await opened()

    assert store.size > 800
