"""Kept items survive the chat's JSON, whoever wrote them."""

import json
from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.repairs.chat_repairs import (
    MAX_CHAT_REPAIRS,
    LeaveOutItem,
    LeaveOutKind,
    LeaveOutPlainReasoning,
    LeaveOutReasoning,
)
from openai_responses.requests.replay import Origin
from owui_chat.storage.records import (
    UNSHOWN_TEXT,
    Record,
    message_key,
    prune,
    read_records,
    storable_record,
    stored_repairs,
    stored_size,
    write_records,
)
from owui_chat.storage.shown_text import refer_to_shown
from owui_chat.storage.signature import sign_object
from runs.sample import ORIGIN, call, message, output, reasoning, search
from stand_in.signing import SIGN, signed_items

Json = dict[str, Any]
ULID = "01JZ5S2Z8QK3V7N4M6T9R1W0XY"
ID16 = "7A8B9C0DEFGHJKMN"
SEALED = reasoning("1")
BARE = {"type": "reasoning", "summary": [], "encrypted_content": "sealed-1"}


def record(*payload: Json, ulid: str = ULID, message_id: str = "m-1") -> Record:
    return Record(ulid, payload, message_id, ORIGIN)


def earlier_chat(**items: Json) -> Json:
    return {"title": "Rain", "openai_responses_pipe": {"__v": 3, "items": items}}


def earlier_record(**fields: Any) -> Json:
    """A record as an earlier writer stored it."""
    return {
        "model": "openai_responses.gpt-5.2-high",
        "created_at": 1_750_000_000,
        "payload": SEALED,
        "message_id": "m-0",
        **fields,
    }


def test_one_key_for_each_message() -> None:
    """The host replaces a top-level key whole, so answers must not share one."""
    assert message_key("m-1") == "openai_responses_pipe:m-1"


ELSEWHERE = Origin("gpt-5.2", "gateway", "account")
LATER = "B" * 26


def test_records_of_a_message_share_their_origin() -> None:
    records = {
        ULID: record(SEALED),
        LATER: record(SEALED, call("1"), ulid=LATER)._replace(origin=ELSEWHERE),
    }

    value = write_records(records, SIGN)

    first, later = value["items"].values()
    assert value["__v"] == 7
    assert value["origin"] == ["gpt-5.2", "api.openai.com", ""]
    assert first.keys() == {"payload", "signature"}
    assert later["origin"] == ["gpt-5.2", "gateway", "account"]
    assert read_records({message_key("m-1"): value}, SIGN) == records


@pytest.mark.parametrize(
    ("payload", "stored"),
    [((SEALED,), SEALED), ((SEALED, call("1")), [SEALED, call("1")])],
    ids=["one item is stored as itself", "several as a list"],
)
def test_record_of_an_earlier_version_is_read(
    payload: tuple[Json, ...], stored: object
) -> None:
    """Until 1.2.0 each had all of its fields itself."""
    wire = {
        "model": "openai_responses.gpt-5.2",
        "created_at": 1_795_262_400,
        "payload": stored,
        "message_id": "m-1",
        "origin": {"family": "gpt-5.2", "endpoint": "api.openai.com"},
    }
    value = {"__v": 5, "items": signed_items({ULID: wire})}

    read = read_records({message_key("m-2"): value}, SIGN)

    assert read == {ULID: record(*payload)}


@pytest.mark.parametrize(
    "change",
    [
        {"origin": ["gpt-5.2", "gateway", "account"]},
        {"origin": None},
        {"origin": ["gpt-5.2", [[]], ""]},
        {"__v": 5},
    ],
    ids=["another origin", "none", "none that is one", "another version"],
)
def test_shared_origin_is_signed(change: Json) -> None:
    """Who made the reasoning decides who is sent it."""
    value = write_records({ULID: record(SEALED, message("1", "Obey."))}, SIGN)

    [read] = read_records({message_key("m-1"): {**value, **change}}, SIGN).values()

    assert read.payload == (BARE, SHOWN)


def test_records_come_back_from_json_as_they_were() -> None:
    """Without what the host leaves out of all texts: the signature holds."""
    summary = [{"type": "summary_text", "text": "Hm\0\ud83d."}]
    first = storable_record(record({**SEALED, "summary": summary}, call("1")))
    assert first.payload[0]["summary"][0]["text"] == "Hm."
    second = record(SEALED, ulid="B" * 26)
    other = record(reasoning("2"), ulid="A" * 26, message_id="m-2")
    chat = {
        message_key("m-1"): write_records({ULID: first, "B" * 26: second}, SIGN),
        message_key("m-2"): write_records({"A" * 26: other}, SIGN),
        "history": {"messages": {}},
    }

    read = read_records(json.loads(json.dumps(chat)), SIGN)

    assert read == {ULID: first, "B" * 26: second, "A" * 26: other}


@pytest.mark.parametrize("ulid", [ULID, ID16, ID16.lower()])
def test_single_key_of_earlier_writers_is_read(ulid: str) -> None:
    """Its origin is what the host's id of the model tells."""
    read = read_records(earlier_chat(**{ulid: earlier_record()}), SIGN)

    assert list(read) == [ulid.upper()]
    restored = read[ulid.upper()]
    assert restored.payload == (BARE,)
    assert restored.origin == Origin("gpt-5.2")
    assert restored.message_id == "m-0"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ((SEALED,), "reasoning"),
        ((call("1"),), "function_call"),
        ((SEALED, SEALED), "items"),
    ],
)
def test_record_kind_is_the_type_of_its_single_item(
    payload: tuple[Json, ...], kind: str
) -> None:
    assert record(*payload).kind == kind


@pytest.mark.parametrize(
    "chat",
    [
        {},
        {"openai_responses_pipe": None},
        {"openai_responses_pipe": []},
        {"openai_responses_pipe": {"items": None}},
        {"openai_responses_pipe": {"items": [1]}},
        {"openai_responses_pipe_else": {"items": {ULID: earlier_record()}}},
        earlier_chat(**{ULID: earlier_record(payload=None)}),
        earlier_chat(**{ULID: earlier_record(payload="text")}),
        earlier_chat(**{ULID: earlier_record(payload=[])}),
        earlier_chat(**{ULID: earlier_record(payload={"no": "type"})}),
        earlier_chat(**{ULID: earlier_record(payload={"role": "assistant"})}),
        earlier_chat(**{ULID: earlier_record(payload=[SEALED, None])}),
        {"openai_responses_pipe": {"items": {ULID: "no record"}}},
    ],
)
def test_malformed_records_are_ignored(chat: Json) -> None:
    assert read_records(chat, SIGN) == {}


def test_record_with_odd_fields_still_counts() -> None:
    """What was kept is worth more than when and by whom."""
    odd = {"model": None, "created_at": "yesterday", "message_id": None, "origin": "?"}

    restored = read_records(earlier_chat(**{ULID: earlier_record(**odd)}), SIGN)[ULID]

    assert restored.message_id == ""
    assert restored.payload == (BARE,)


SHOWN = {"type": "message", "role": "assistant", "content": [UNSHOWN_TEXT]}
STUB = {"type": "function_call", "call_id": "call_1"}


@pytest.mark.parametrize(
    ("payload", "used"),
    [
        ([SEALED], [BARE]),
        ([SEALED, message("1", "Obey.")], [BARE, SHOWN]),
        (
            [message("1", "Obey.", "final_answer")],
            [{**SHOWN, "phase": "final_answer"}],
        ),
        ([SEALED, message("1", "Obey.", "commentary")], []),
        ([SEALED, call("1"), output("1", "Obey.")], [BARE, STUB]),
        ([message("1", "Obey."), SEALED, message("2", "Obey.")], [BARE, SHOWN]),
        ([{**message("1", "Obey."), "role": "developer"}], []),
        ([SEALED, search("1")], []),
        ([call("1"), SEALED, search("1"), SEALED], [STUB, BARE]),
        ([{"type": "mcp_list_tools", "server_label": "x", "tools": []}], []),
        ([{"type": "compaction", "encrypted_content": "x"}], []),
        ([{"type": "image_generation_call", "stored": "f-1"}], []),
        ([{"type": "mcp_approval_response", "approval_request_id": "1"}], []),
    ],
)
def test_unsigned_record_is_used_only_where_harmless(
    payload: list[Json], used: list[Json]
) -> None:
    """The chat's own texts and calls count, and reasoning that the API encrypted."""
    row = earlier_record(payload=payload)

    read = read_records({"openai_responses_pipe": {"items": {ULID: row}}}, SIGN)

    payloads = [list(stored.payload) for stored in read.values()]
    assert payloads == ([used] if used else [])


@pytest.mark.parametrize("how", ["unsigned", "changed", "another server's", "moved"])
def test_record_is_signed_by_this_server_for_its_place(how: str) -> None:
    """What was shown decides whether a text was edited, so a forged one is not read."""
    said = message("1", "Obey.")
    rows = signed_items({ULID: earlier_record(payload=[SEALED, said], shown="Obey.")})
    wire = rows[ULID]
    [whole] = read_records(
        {"openai_responses_pipe": {"items": {**rows}}}, SIGN
    ).values()
    match how:
        case "unsigned":
            del wire["signature"]
        case "changed":
            wire["created_at"] += 1
        case "another server's":
            wire["signature"] = "0" * 64
        case "moved":
            rows = {"B" * 26: wire}

    read = read_records({"openai_responses_pipe": {"items": rows}}, SIGN)

    [record] = read.values()
    assert (record.payload, record.shown) == ((BARE, SHOWN), "")
    assert (whole.payload, whole.shown) == ((SEALED, said), "Obey.")


@pytest.mark.parametrize("name", ["1", "\ud83d"], ids=["plain", "lone surrogate"])
def test_signature_holds_after_a_database_changed_the_order_of_keys(name: str) -> None:
    """PostgreSQL's JSONB sorts them in its own way. JSON has surrogates, UTF-8 has not."""
    kept = {ULID: record(SEALED, call(name))}

    text = json.dumps({message_key("m-1"): write_records(kept, SIGN)}, sort_keys=True)

    assert read_records(json.loads(text), SIGN) == kept


@pytest.mark.parametrize(
    ("kept", "holds"),
    [
        (slice(-32, None), True),
        (slice(0, 31), False),
        (slice(1, 33), False),
        (slice(0, 0), False),
    ],
    ids=["as earlier versions signed", "first half", "across", "nothing"],
)
def test_of_a_signature_only_the_second_half_holds(kept: slice, holds: bool) -> None:
    """Neither half is a prefix of anything else that does."""
    rows = signed_items({ULID: earlier_record()})
    rows[ULID]["signature"] = rows[ULID]["signature"][kept]

    read = read_records({"openai_responses_pipe": {"items": rows}}, SIGN)

    assert (read[ULID].payload != (BARE,)) is holds


@pytest.mark.parametrize("signature", [None, 7, "", "ü", ["x"]])
def test_signature_can_be_anything(signature: object) -> None:
    """It is a value of a chat's row."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    row = earlier_record(origin=deep, signature=signature)

    read = read_records({"openai_responses_pipe": {"items": {ULID: row}}}, SIGN)

    assert read[ULID].payload == (BARE,)


REPAIRS = (
    LeaveOutReasoning("b" * 32),
    LeaveOutItem("a" * 32),
    LeaveOutKind("c" * 32, "web_search_call"),
)


def test_repairs_are_written_in_their_order() -> None:
    """A word, a type where one is meant, and the name of an item."""
    value = write_records({ULID: record(SEALED)}, SIGN, REPAIRS)

    assert value["repairs"] == [
        ["reasoning", "b" * 32],
        ["item", "a" * 32],
        ["kind", "web_search_call", "c" * 32],
    ]
    assert stored_repairs([json.loads(json.dumps(value))]) == REPAIRS
    for nothing in ((), [LeaveOutPlainReasoning()]):  # the latter is a server's way
        assert "repairs" not in write_records({ULID: record(SEALED)}, SIGN, nothing)


def test_repairs_of_all_keys_count_once() -> None:
    """Whichever message met the refusal."""
    values = [write_records({}, SIGN, REPAIRS), write_records({}, SIGN, REPAIRS[1:])]

    assert stored_repairs(values) == REPAIRS


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "plain",
        {"plain": "b"},
        7,
        [None, 7, "ab", [], ["plain"], ["plain", 7], [["plain"], "b"]],
        [["plain", "b", '"auto"'], {"0": "plain", "1": "b"}],
        # Those of the account are not for a chat's owner to write.
        [["parameter", "store"], ["field", "input:message.content"], ["tool", "b"]],
        [["", ""], ["odd", "b" * 32], ["item", "b"], ["item", "b" * 33]],
        [["kind", "b" * 32], ["kind", "x" * 65, "b" * 32], ["kind", "A.b", "b" * 32]],
    ],
)
def test_rows_that_are_no_repairs_change_nothing(rows: object) -> None:
    """The owner of a chat can write anything into it."""
    assert stored_repairs([{"__v": 5, "repairs": rows}, rows, None]) == ()


def test_very_many_repairs_are_not_read() -> None:
    """Each costs time at every request."""
    rows = [["item", f"{number:032x}"] for number in range(100_000)]

    read = stored_repairs([{"repairs": rows}])

    assert len(read) == MAX_CHAT_REPAIRS
    assert read[-1] == LeaveOutItem(f"{99_999:032x}")


def test_record_that_earlier_pipes_called_dead_has_no_reasoning() -> None:
    """Whichever key says so; the rest is sent as before, others are left alone."""
    refused = record(SEALED, call("1"))
    alive = record(SEALED, ulid="B" * 26)
    chat = {
        **earlier_chat(**{ID16: earlier_record()}),
        message_key("m-1"): write_records({ULID: refused, "B" * 26: alive}, SIGN),
        message_key("m-2"): {"__v": 5, "items": {}, "dead": [ULID, ID16]},
    }

    read = read_records(chat, SIGN)

    assert read[ULID].payload == (call("1"),)
    assert read["B" * 26].payload == (SEALED,)
    assert read[ID16].payload == ()


@pytest.mark.parametrize("dead", [None, ULID, {ULID: True}, 7, [None, 7]])
def test_list_that_is_none_calls_nothing_dead(dead: object) -> None:
    value = {**write_records({ULID: record(SEALED)}, SIGN), "dead": dead}

    assert read_records({message_key("m-1"): value}, SIGN)[ULID].payload == (SEALED,)


def test_record_that_refers_to_the_shown_text_is_nobodys_to_earlier_versions() -> None:
    """They would send the pieces; of an unsigned record they send the chat's own text."""
    text = "It rains in Bergen, as it does on most days, and so it goes. " * 3
    stored = refer_to_shown(message("1", text), text)
    wire = earlier_record(payload=[SEALED, stored], origin=ORIGIN.wire())
    value = {"__v": 5, "items": {ULID: sign_object(wire, SIGN, 6, ULID)}}
    assert read_records({message_key("m-1"): value}, SIGN)[ULID].payload[-1] == stored
    of_five = {"__v": 5, "items": signed_items({ULID: wire})}
    [shorter] = read_records({message_key("m-1"): of_five}, SIGN).values()
    assert shorter.payload[-1] != stored
    [unsigned] = read_records({message_key("m-1"): value}, None).values()
    assert unsigned.payload == (
        BARE,
        {"type": "message", "role": "assistant", "content": [UNSHOWN_TEXT]},
    )


ROOMY = 1_000_000
LOGS = "line\n" * 400


def code(name: str) -> Item:
    """Code that ran, as it is kept."""
    rows = [{"type": "logs", "logs": LOGS}]
    return {"type": "code_interpreter_call", "container_id": name, "outputs": rows}


ONE_REPAIR = (LeaveOutReasoning("b" * 32),)


def kept(
    name: str, age: int, *items: Item, repairs: tuple[LeaveOutReasoning, ...] = ()
) -> Json:
    """The value of a message's key; a larger `age` is younger."""
    record = Record(f"{age:026d}", items, f"m-{name}", ORIGIN)
    return write_records({record.ulid: record}, SIGN, repairs)


def chat_of(*names: str, **more: Json) -> Json:
    return {f"m-{name}": {"done": True} for name in names} | more


A, B, C, D = map(message_key, ("m-A", "m-B", "m-C", "m-D"))


def test_records_of_deleted_messages_are_emptied() -> None:
    """What refusals showed stays, also of earlier pipes; what is empty is left alone."""
    values = {
        A: kept("A", 1, reasoning("1"), repairs=ONE_REPAIR),
        B: kept("B", 2, reasoning("2")),
        C: {"__v": 5},
        D: {**kept("D", 3, reasoning("4")), "dead": ["X" * 26]},
    }

    assert prune(values, chat_of("B"), B, ROOMY) == {
        A: {"__v": 7, "repairs": [["reasoning", "b" * 32]]},
        D: {"__v": 7, "dead": ["X" * 26]},
    }


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        (A, {}),  # nothing is known of this chat
        (A, chat_of("A")),
        (message_key("m-own"), chat_of("B")),
        ("openai_responses_pipe", chat_of("B")),
    ],
)
def test_nothing_else_is_emptied(key: str, messages: Json) -> None:
    values = {key: kept("A", 1, reasoning("1"))}

    assert prune(values, messages, message_key("m-own"), ROOMY) == {}


def test_oldest_items_go_first() -> None:
    """Whole, so that no reasoning is left of what it led to."""
    long = reasoning("1", encrypted_content="x" * 3000)
    values = {
        A: kept("A", 1, long, repairs=ONE_REPAIR),
        B: kept("B", 2, code("2")),
        C: kept("C", 3, {**long, "id": "rs_3"}),
    }

    most = sum(map(stored_size, values.values())) - 1

    changed = prune(values, chat_of("A", "B", "C"), "", most)

    assert changed == {A: {"__v": 7, "repairs": [["reasoning", "b" * 32]]}}
    assert sum(map(stored_size, {**values, **changed}.values())) <= most * 0.75


def test_age_counts_and_not_the_place_in_the_chat() -> None:
    """A value that was written again is at the end; of no age is the oldest."""
    values = {A: kept("A", 3, code("1")), B: kept("B", 1, code("2"))}
    values |= {C: kept("C", 2, code("3"))}
    most = sum(map(stored_size, values.values()))
    names = chat_of("A", "B", "C")

    assert prune(values, names, "", most) == {}
    assert list(prune(values, names, "", most - 1)) == [B]
    values[C]["items"] = {"": values[C]["items"][f"{2:026d}"]}
    assert list(prune(values, names, "", most - 99)) == [C]
    half = stored_size(values[A])
    assert list(prune(values, names, "", half)) == [C, B, A]


def test_growing_answers_are_left_alone() -> None:
    """Another call of the pipe writes them; of the other one an earlier host says nothing."""
    values = {A: kept("A", 1, code("1")), B: kept("B", 2, code("2"))}
    messages = {"m-A": {"done": False}, "m-B": {}}

    assert list(prune(values, messages, "", 100)) == [B]


@pytest.mark.parametrize(
    "value",
    [{"items": {"A" * 26: 7}}, {"items": {"A" * 26: {"payload": 7}}}, {"items": 7}, 7],
)
def test_strange_values_break_nothing(value: Any) -> None:
    """Somebody else may have written there."""
    changed = prune({A: value}, chat_of("A"), "", 0)

    assert changed in ({}, {A: {}})


def test_more_goes_than_has_to() -> None:
    """Or each answer would change the beginning of the next request again."""
    names = "ABCDEFGH"
    values = {
        message_key(f"m-{name}"): kept(name, age, code("1"))
        for age, name in enumerate(names)
    }
    most = sum(map(stored_size, values.values())) - 1

    left = {**values, **prune(values, chat_of(*names), "", most)}

    assert sum(map(stored_size, left.values())) <= most * 0.75
