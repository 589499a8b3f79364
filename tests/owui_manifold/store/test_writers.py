"""Kept items go to the key of their own message and nowhere else."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterable
from math import inf

import pytest

from openai_responses.repairs.chat_repairs import LeaveOutItem, LeaveOutReasoning
from owui_chat.events import StoredRecord
from owui_chat.input.prefix import SentContext
from owui_chat.render.items import OutputItems
from owui_chat.storage.recorder import NewRecord
from owui_chat.storage.records import (
    MAX_STORED_KB,
    Record,
    message_key,
    read_records,
    write_records,
)
from owui_manifold.call.context import Caller
from owui_manifold.call.log import RunLog
from owui_manifold.call.valves import Valves
from owui_manifold.store.keys import ChatKeys, chat_keys
from owui_manifold.store.stored_chat import StoredChat, read_stored_chat
from owui_manifold.store.writers import OutputWriter, RowWriter, StoredAnswer
from runs.sample import ORIGIN, call, reasoning
from stand_in.host import SERVER_SECRET, Row, StandInHost
from stand_in.signing import KEYS, SIGN

pytestmark = pytest.mark.asyncio

CALLER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-1", streams=True)
LATER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-2", streams=True)
PLAIN = Valves(HISTORY_CARRIER="markers")
KEYED = Valves(HISTORY_CARRIER="markers", STORE_ENCRYPTION_KEY=" a key of its own ")
FIRST = message_key("m-1")
SECOND = message_key("m-2")


def record(name: str, message_id: str = "m-1") -> Record:
    ulid = name * 26
    return Record(ulid, (reasoning(name),), message_id, ORIGIN)


LOG = RunLog("DEBUG", (), "7N4M6T9R1W")


def new(name: str) -> NewRecord:
    return NewRecord(record(name), 0)


async def stored_for(caller: Caller = LATER, valves: Valves = PLAIN) -> StoredChat:
    """What is stored of the chat of a caller who has one."""
    stored = await read_stored_chat(caller, chat_keys(valves, caller))
    assert stored is not None
    return stored


async def answer_of(
    caller: Caller, valves: Valves = PLAIN, sent: SentContext | None = None
) -> StoredAnswer:
    chat = await stored_for(caller, valves)
    keys = chat_keys(valves, caller)
    return StoredAnswer(caller.chat_id, caller.message_id, chat, keys, sent)


async def row_writer(
    caller: Caller = CALLER, valves: Valves = PLAIN, sent: SentContext | None = None
) -> RowWriter:
    return RowWriter(await answer_of(caller, valves, sent), LOG)


async def output_writer(
    caller: Caller = CALLER, sent: SentContext | None = None
) -> OutputWriter:
    return OutputWriter(await answer_of(caller, sent=sent))


async def test_records_of_a_message_are_written_together(host: StandInHost) -> None:
    """The host replaces a key whole. The end of a message may tell more of a record."""
    writer = await row_writer()
    changed = record("1")._replace(payload=(reasoning("9"),))

    for each in (record("1"), record("2"), changed):
        await writer.write(each)

    both = write_records({"1" * 26: changed, "2" * 26: record("2")}, SIGN)
    assert host.kept == {FIRST: both}


async def test_record_is_signed_as_the_host_stores_it(host: StandInHost) -> None:
    """Without NUL and halves of characters: code prints the bytes of a file."""
    logs = [{"type": "logs", "logs": "PK\0\ud83d3"}]
    code = {"type": "code_interpreter_call", "id": "ci_1", "outputs": logs}
    printed = record("1")._replace(payload=(reasoning("1"), code))
    writer = await row_writer()

    await writer.write(printed)
    text = json.dumps(host.kept).replace(r"\u0000", "").replace(r"\ud83d", "")

    [read] = read_records(json.loads(text), SIGN).values()
    assert read.payload[1]["outputs"] == [{"type": "logs", "logs": "PK3"}]


async def test_many_records_are_written_less_often(host: StandInHost) -> None:
    """Each write has all of them; the end of the answer stores what is left."""
    writer = await row_writer()
    records = {f"{n:026d}": record("1")._replace(ulid=f"{n:026d}") for n in range(200)}

    written = 0
    for number, kept in enumerate(records.values(), 1):
        await writer.write(kept)
        if len(host.chats.writes) > written:
            written = len(host.chats.writes)
            assert len(host.kept[FIRST]["items"]) == number
        assert number > 32 or written == number
    assert written < 120
    await writer.finish()

    assert host.kept == {FIRST: write_records(records, SIGN)}


async def test_records_of_an_earlier_round_are_kept_on(host: StandInHost) -> None:
    """Each round reads the chat anew."""
    await (await row_writer()).write(record("1"))

    assert (await stored_for()).records == {"1" * 26: record("1")}
    again = await row_writer()
    await again.write(record("2"))

    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "2" * 26]


async def test_answers_at_once_lose_nothing(host: StandInHost) -> None:
    """Two models, two copies of the pipe or two workers in one chat."""
    first = await row_writer()
    second = await row_writer(LATER)

    await asyncio.gather(
        first.write(record("1")),
        second.write(record("2", "m-2")),
        first.write(record("3")),
        second.write(record("4", "m-2")),
    )

    assert list(host.kept[FIRST]["items"]) == ["1" * 26, "3" * 26]
    assert list(host.kept[SECOND]["items"]) == ["2" * 26, "4" * 26]
    again = await stored_for()
    assert {ulid[0] for ulid in again.records} == set("1234")


async def test_writes_wait_for_each_other(host: StandInHost) -> None:
    """Else a late one would put back what it knew when it began."""
    locked = host.chats.unlocked = asyncio.Event()
    writer = await row_writer()
    writer.add(new("1"))
    await ticks()
    host.chats.unlocked = None

    writer.add(new("2"))
    repairing = asyncio.create_task(writer.add_repair(REPAIR))
    await ticks()
    assert host.chats.writes == []
    locked.set()
    await repairing

    numbers = [len(write[FIRST]["items"]) for write in host.chats.writes]
    assert numbers == [1, 2, 2]
    assert "repairs" in host.kept[FIRST]


async def test_stop_ends_no_write(host: StandInHost) -> None:
    """What has begun is stored, although no one waits for it any more."""
    host.chats.unlocked = asyncio.Event()
    writer = await row_writer()
    writer.add(new("1"))
    finishing = asyncio.create_task(writer.finish())
    await ticks()

    finishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finishing
    host.chats.unlocked.set()
    await ticks()

    assert list(host.kept[FIRST]["items"]) == ["1" * 26]


async def ticks() -> None:
    """Let others run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_refused_write_is_tried_again_at_the_end(host: StandInHost) -> None:
    """A few times; then the answer ends without. A locked database is back soon."""
    sent = SentContext(instructions="Be brief.")
    log = RunLog("DEBUG", (), "7N4M6T9R1W")
    writer = RowWriter(await answer_of(CALLER, sent=sent), log)
    host.chats.refusing = inf
    await writer.write(record("1"))
    assert await writer.finish() == []
    assert "Open WebUI could not store" in log.text()

    warnings = log.text()
    host.chats.refusing = 2
    await writer.finish()
    await writer.finish()
    assert log.text() == warnings

    assert len(host.chats.writes) == 1
    assert list(host.kept[FIRST]["items"]) == ["1" * 26]
    assert (await stored_for(LATER)).sent == {"m-1": sent}


@pytest.mark.parametrize(
    "caller",
    [
        CALLER._replace(chat_id="temporary:1"),
        CALLER._replace(message_id=""),
        CALLER._replace(user_id="user-2"),
        CALLER._replace(chat_id="chat-2"),
    ],
    ids=["temporary", "plain HTTP", "another user's", "no row"],
)
async def test_chat_without_a_row_of_its_own_has_no_store(
    caller: Caller, host: StandInHost
) -> None:
    assert await read_stored_chat(caller, KEYS) is None


SENT = SentContext(instructions="The secret plan.")


@pytest.mark.parametrize("carrier", ["markers", "output"])
async def test_sent_context_is_encrypted_in_the_row(
    carrier: str, host: StandInHost
) -> None:
    """Whoever gets the chat as shared gets its row."""
    if carrier == "output":
        answered(host, (await output_writer(sent=SENT)).add(new("1")))
    else:
        await (await row_writer(sent=SENT)).write(record("1"))

    assert "secret plan" not in str(host.chats.rows["chat-1"].chat)
    assert (await stored_for(LATER)).sent == {"m-1": SENT}


async def test_sent_context_goes_when_nothing_more_is_sent(host: StandInHost) -> None:
    """An answer that is written again replaces what its first run sent."""
    await (await row_writer(sent=SENT)).write(record("1"))

    await (await row_writer(sent=SentContext())).finish()

    later = await stored_for(LATER)
    assert later.sent == {}
    assert later.records == {"1" * 26: record("1")}


async def test_sent_context_stays_when_a_run_says_nothing_of_it(
    host: StandInHost,
) -> None:
    await (await row_writer(sent=SENT)).write(record("1"))
    await (await row_writer()).write(record("2"))
    assert (await stored_for(LATER)).sent == {"m-1": SENT}


@pytest.mark.parametrize(
    ("valves", "secret"), [(PLAIN, SERVER_SECRET), (KEYED, "a key of its own")]
)
async def test_key_is_that_of_the_valve_or_of_the_server(
    valves: Valves, secret: str, host: StandInHost
) -> None:
    """The valve wins, without the white space of a copy and paste."""
    await (await row_writer(valves=valves)).write(record("1"))

    records = read_records(host.kept, ChatKeys(secret, "user-1", "chat-1").sign)

    assert records == {"1" * 26: record("1")}


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
    first = await row_writer(caller, valves, SENT)
    await first.write(with_call("1"))
    host.chats.rows["chat-1"].user_id = "user-1"

    writer = await row_writer(LATER)
    await writer.write(with_call("2", "m-2"))

    again = await stored_for(LATER)
    bare, stub = again.records["1" * 26].payload
    assert set(bare) == {"type", "summary", "encrypted_content"}
    assert set(stub) == {"type", "call_id"}
    assert again.records["2" * 26] == with_call("2", "m-2")
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
    await (await row_writer(sent=SENT)).write(with_call("1"))

    assert "sent" not in host.kept[FIRST]
    again = await stored_for(LATER)
    assert again.sent == {}
    is_signed = lacks == "cryptography"
    assert (again.records["1" * 26] == with_call("1")) is is_signed


def with_call(name: str, message_id: str = "m-1") -> Record:
    return record(name, message_id)._replace(payload=(reasoning(name), call(name)))


REPAIR = LeaveOutReasoning("b" * 32)
OTHER = LeaveOutItem("a" * 32)


async def test_repair_is_stored_with_the_message_that_needed_it(
    host: StandInHost,
) -> None:
    await (await row_writer()).write(record("1"))
    refused = await row_writer(LATER)

    await refused.add_repair(REPAIR)

    assert host.kept[SECOND]["repairs"] == [["reasoning", "b" * 32]]
    assert host.kept[FIRST] == write_records({"1" * 26: record("1")}, SIGN)
    await refused.write(record("2", "m-2"))
    await (await row_writer(LATER)).write(record("3", "m-2"))
    for caller in (CALLER, LATER):
        stored_chat = await stored_for(caller)
        assert stored_chat.repairs == (REPAIR,)
        assert sorted(ulid[0] for ulid in stored_chat.records) == ["1", "2", "3"]


async def test_repairs_add_up(host: StandInHost) -> None:
    first = await row_writer()
    for repair in (REPAIR, OTHER, REPAIR):
        await first.add_repair(repair)
    await (await row_writer(LATER)).add_repair(OTHER)

    assert host.kept[FIRST]["repairs"] == [["reasoning", "b" * 32], ["item", "a" * 32]]
    assert host.kept[SECOND]["repairs"] == [["item", "a" * 32]]
    assert sorted((await stored_for()).repairs, key=repr) == [OTHER, REPAIR]


@pytest.mark.parametrize("carrier", ["row", "output"])
async def test_newest_hundred_repairs_are_stored(
    carrier: str, host: StandInHost
) -> None:
    """Each turn of a chat may bring another one."""
    writer = await (row_writer() if carrier == "row" else output_writer())
    for number in range(105):
        shown = await writer.add_repair(LeaveOutItem(f"{number:032x}"))

    value = host.kept[FIRST] if carrier == "row" else json.loads(shown[0].item["kept"])
    assert [row[1] for row in value["repairs"]] == [f"{n:032x}" for n in range(5, 105)]


def answered(host: StandInHost, records: Iterable[StoredRecord]) -> None:
    """Let the host store an answer with these records."""
    shown = OutputItems()
    for stored in records:
        [*_] = shown.add_record(stored, None)
    history = {"messages": {"m-1": {"output": shown.items}}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history})


async def test_output_carrier_writes_nothing_to_the_row(host: StandInHost) -> None:
    """The answer itself holds the records, for the next turn."""
    writer = await output_writer()

    answered(host, writer.add(new("1")))

    assert await writer.finish() == []
    assert host.chats.writes == []
    later = await stored_for(LATER)
    assert later.records == {"1" * 26: record("1")}
    assert later.row_values == {}  # in the answer nothing is tidied up


async def test_repair_is_noted_in_the_answer(host: StandInHost) -> None:
    """At once, for an answer that may keep nothing more."""
    answered(host, (await output_writer()).add(new("1")))
    refused = await output_writer(LATER)

    [noted] = await refused.add_repair(REPAIR)

    kept = json.loads(noted.item["kept"])
    assert kept["repairs"] == [["reasoning", "b" * 32]]
    assert "payload" not in kept
    assert host.chats.writes == []
    answered(host, [noted])
    assert (await stored_for(LATER)).repairs == (REPAIR,)


async def test_replaced_record_keeps_its_sent_context(host: StandInHost) -> None:
    writer = await output_writer(sent=SENT)
    amended = record("1")._replace(shown="x" * 32)

    added = [new("1"), new("2"), NewRecord(amended, 0)]
    answered(host, [stored for record in added for stored in writer.add(record)])

    assert (await stored_for(LATER)).sent == {"m-1": SENT}


@pytest.mark.parametrize("records", [(), (new("1"), new("2"))], ids=["alone", "with"])
async def test_sent_context_is_stored_once_in_the_answer(
    records: tuple[NewRecord, ...], host: StandInHost
) -> None:
    writer = await output_writer(sent=SENT)

    stored = [item for each in records for item in writer.add(each)]
    stored += await writer.finish()
    stored += await writer.finish()
    answered(host, stored)

    assert host.chats.writes == []
    assert str(host.chats.rows["chat-1"].chat).count('"sent"') == 1
    later = await stored_for(LATER)
    assert later.sent == {"m-1": SENT}
    assert len(later.records) == len(records)


async def test_items_of_deleted_messages_go_with_the_next_write(
    host: StandInHost,
) -> None:
    for message_id, name in (("m-0", "0"), ("m-1", "1")):
        caller = CALLER._replace(message_id=message_id)
        await (await row_writer(caller)).write(record(name, message_id))
    row = host.chats.rows["chat-1"]
    messages = {"m-1": {"done": True}, "m-2": {"done": False}}
    row.chat = {**row.chat, "history": {"messages": messages}}
    writes = len(host.chats.writes)

    writer = await row_writer(LATER)
    await writer.write(record("2", "m-2"))
    await writer.write(record("3", "m-2"))

    assert [sorted(write) for write in host.chats.writes[writes:]] == [
        sorted([message_key("m-0"), SECOND]),
        [SECOND],
    ]
    left = (await stored_for(LATER)).records
    assert sorted(left) == ["1" * 26, "2" * 26, "3" * 26]


@pytest.mark.parametrize(("old", "new"), [(1, 0), (0.1, 0.95), (0, 1)])
async def test_chat_keeps_no_more_than_its_room(
    old: float, new: float, host: StandInHost
) -> None:
    """The oldest go; the answer's own, which count as well, never do."""

    def sized(name: str, share: float) -> Record:
        text = "x" * int(share * MAX_STORED_KB * 1024)
        sealed = {**reasoning(name), "encrypted_content": text}
        return record(name, f"m-{name}")._replace(payload=(sealed,))

    caller = CALLER._replace(message_id="m-0")
    await (await row_writer(caller)).write(sized("0", old))
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": {"m-0": {"done": True}}}}

    await (await row_writer(LATER)).write(sized("2", new))

    assert list((await stored_for(LATER)).records) == ["2" * 26]


async def test_refused_write_is_tidied_up_later(host: StandInHost) -> None:
    """Nothing is taken for done that was not."""
    await (await row_writer()).write(record("1"))
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": {"m-2": {}}}}
    writer = await row_writer(LATER)
    host.chats.refusing = 1
    await writer.write(record("2", "m-2"))

    await writer.write(record("3", "m-2"))

    assert list((await stored_for(LATER)).records) == ["2" * 26, "3" * 26]


async def test_large_chat_is_cleaned_in_a_thread(host: StandInHost) -> None:
    """Its first write signs and removes what many messages hold."""
    keys = chat_keys(PLAIN, CALLER)
    threads = set[threading.Thread]()
    sign = keys.sign

    def noted(value: object, is_sorted: bool) -> str:
        threads.add(threading.current_thread())
        return sign(value, is_sorted) if sign else ""

    keys.sign = noted
    history = {"messages": {f"m-{n}": {"role": "user"} for n in range(4000)}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history})
    chat = await read_stored_chat(CALLER, keys)
    assert chat is not None
    answer = StoredAnswer(CALLER.chat_id, CALLER.message_id, chat, keys)
    await RowWriter(answer, LOG).write(record("1"))

    assert threads
    assert threading.current_thread() not in threads


async def test_store_knows_how_large_its_chat_is(host: StandInHost) -> None:
    output = [{"type": "message"}] * 500
    history = {"messages": {"m-1": {"role": "assistant", "output": output}}}
    key = {message_key("m-0"): {"items": dict.fromkeys(map(str, range(300)))}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history, **key})

    assert (await stored_for()).size > 800


async def test_text_of_a_record_counts_as_long_as_it_is(host: StandInHost) -> None:
    """Two megabytes take as long to read as two thousand entries."""
    text = json.dumps({"items": {}, "sent": "x" * 2_048_000})
    kept = {"type": "openai_responses:kept", "id": "kept_1", "kept": text}
    history = {"messages": {"m-1": {"role": "assistant", "output": [kept]}}}
    host.chats.rows["chat-1"] = Row("user-1", {"history": history})

    assert (await stored_for()).size > 2000


async def test_both_carriers_of_a_chat_are_read(host: StandInHost) -> None:
    """An administrator may change the valve between two answers, and back."""
    answered(host, (await output_writer()).add(new("1")))
    await (await row_writer(LATER)).write(record("2", "m-2"))

    stored = await stored_for()

    assert stored.records == {"1" * 26: record("1"), "2" * 26: record("2", "m-2")}
    assert list(stored.row_values) == [SECOND]
