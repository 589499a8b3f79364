"""Kept items survive the chat's JSON, whoever wrote them."""

import json
from typing import Any

import pytest

from openai_responses.requests.replay import Origin
from owui_chat.storage.records import (
    Record,
    invalid_ids,
    message_key,
    read_records,
    write_records,
)
from run_sample import ORIGIN, call, reasoning

Json = dict[str, Any]
ULID = "01JZ5S2Z8QK3V7N4M6T9R1W0XY"
ID16 = "7A8B9C0DEFGHJKMN"
SEALED = reasoning("1")


def record(*payload: Json, ulid: str = ULID, message_id: str = "m-1") -> Record:
    """A record of ours."""
    model = "openai_responses.gpt-5.2"
    return Record(ulid, model, 1_795_262_400, payload, message_id, ORIGIN)


def earlier_chat(**items: Json) -> Json:
    """A chat with the single key of earlier writers."""
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


def test_one_item_is_stored_as_itself() -> None:
    """As earlier writers did."""
    assert write_records({ULID: record(SEALED)}) == {
        "__v": 4,
        "items": {
            ULID: {
                "model": "openai_responses.gpt-5.2",
                "created_at": 1_795_262_400,
                "payload": SEALED,
                "message_id": "m-1",
                "origin": {"family": "gpt-5.2", "endpoint": "api.openai.com"},
            }
        },
    }


def test_several_items_are_stored_as_a_list() -> None:
    """One marker names them all."""
    written = write_records({ULID: record(SEALED, call("1"))})
    assert written["items"][ULID]["payload"] == [SEALED, call("1")]


def test_records_come_back_from_json_as_they_were() -> None:
    """Byte for byte, over several messages of one chat."""
    first, second = record(SEALED, call("1")), record(SEALED, ulid="B" * 26)
    other = record(reasoning("2"), ulid="A" * 26, message_id="m-2")
    chat = {
        message_key("m-1"): write_records({ULID: first, "B" * 26: second}),
        message_key("m-2"): write_records({"A" * 26: other}),
        "history": {"messages": {}},
    }

    read = read_records(json.loads(json.dumps(chat)))

    assert read == {ULID: first, "B" * 26: second, "A" * 26: other}


@pytest.mark.parametrize("ulid", [ULID, ID16, ID16.lower()])
def test_single_key_of_earlier_writers_is_read(ulid: str) -> None:
    """Its origin is what the host's id of the model tells."""
    read = read_records(earlier_chat(**{ulid: earlier_record()}))

    assert list(read) == [ulid.upper()]
    found = read[ulid.upper()]
    assert found.payload == (SEALED,)
    assert found.origin == Origin("gpt-5.2")
    assert (found.message_id, found.created_at) == ("m-0", 1_750_000_000)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ((SEALED,), "reasoning"),
        ((call("1"),), "function_call"),
        ((SEALED, SEALED), "items"),
        ((SEALED, call("1")), "items"),
    ],
)
def test_kind_is_what_the_marker_shows(payload: tuple[Json, ...], kind: str) -> None:
    """The type of one item, or `items`."""
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
        earlier_chat(**{ULID: earlier_record(payload=[SEALED, None])}),
        {"openai_responses_pipe": {"items": {ULID: "no record"}}},
    ],
)
def test_what_no_writer_writes_is_no_record(chat: Json) -> None:
    """Its marker resolves to nothing; the rest of the chat is none of our business."""
    assert read_records(chat) == {}


def test_record_with_odd_fields_still_counts() -> None:
    """What was kept is worth more than when and by whom."""
    odd = earlier_record(
        model=None, created_at="yesterday", message_id=None, origin="?"
    )

    found = read_records(earlier_chat(**{ULID: odd}))[ULID]

    assert (found.model, found.created_at, found.message_id) == ("", 0, "")
    assert found.payload == (SEALED,)


# ---------------------------------------------------------------- dead reasoning


def test_dead_records_are_written_in_order() -> None:
    """The same list always has the same text."""
    value = write_records({ULID: record(SEALED)}, {"B" * 26, "A" * 26})

    assert value["dead"] == ["A" * 26, "B" * 26]
    assert invalid_ids(value) == ["A" * 26, "B" * 26]
    assert "dead" not in write_records({ULID: record(SEALED)}, set())


def test_dead_record_has_no_reasoning_whichever_key_says_so() -> None:
    """The rest of it is sent as before; others are left alone."""
    buried, alive = record(SEALED, call("1")), record(SEALED, ulid="B" * 26)
    chat = {
        **earlier_chat(**{ID16: earlier_record()}),
        message_key("m-1"): write_records({ULID: buried, "B" * 26: alive}),
        message_key("m-2"): write_records({}, [ULID, ID16]),
    }

    read = read_records(chat)

    assert read[ULID].payload == (call("1"),)
    assert read["B" * 26].payload == (SEALED,)
    assert read[ID16].payload == ()


@pytest.mark.parametrize("value", [None, [], {}, {"dead": "A"}, {"dead": None}])
def test_value_without_a_list_has_no_dead(value: object) -> None:
    """Whoever wrote it."""
    assert invalid_ids(value) == []
