"""Of what is kept, the oldest goes first, and only of messages that are over."""

from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.repairs.chat_repairs import LeaveOutReasoning
from owui_chat.storage.records import (
    Record,
    message_key,
    prune,
    stored_size,
    write_records,
)
from runs.sample import ORIGIN, reasoning
from stand_in.signing import SIGN

Json = dict[str, Any]
ROOMY = 1_000_000
LOGS = "line\n" * 400


def code(name: str, logs: str = LOGS) -> Item:
    """Code that ran, as it is kept."""
    rows = [{"type": "logs", "logs": logs}]
    return {"type": "code_interpreter_call", "container_id": name, "outputs": rows}


REPAIRS = (LeaveOutReasoning("b" * 32),)


def kept(
    name: str, age: int, *items: Item, repairs: tuple[LeaveOutReasoning, ...] = ()
) -> Json:
    """The value of a message's key; a larger `age` is younger."""
    record = Record(name * 26, "f.gpt-5.2", age, items, f"m-{name}", ORIGIN)
    return write_records({record.ulid: record}, SIGN, repairs)


def chat_of(*names: str, **more: Json) -> Json:
    """The messages of a chat, all of them over."""
    return {f"m-{name}": {"done": True} for name in names} | more


A, B, C, D = map(message_key, ("m-A", "m-B", "m-C", "m-D"))


def test_records_of_deleted_messages_are_emptied() -> None:
    """What refusals showed stays, also of earlier pipes; what is empty is left alone."""
    values = {
        A: kept("A", 1, reasoning("1"), repairs=REPAIRS),
        B: kept("B", 2, reasoning("2")),
        C: {"__v": 5},
        D: {**kept("D", 3, reasoning("4")), "dead": ["X" * 26]},
    }

    assert prune(values, chat_of("B"), B, ROOMY) == {
        A: {"__v": 5, "repairs": [["reasoning", "b" * 32]]},
        D: {"__v": 5, "dead": ["X" * 26]},
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
        A: kept("A", 1, long, repairs=REPAIRS),
        B: kept("B", 2, code("2")),
        C: kept("C", 3, {**long, "id": "rs_3"}),
    }

    most = sum(map(stored_size, values.values())) - 1

    changed = prune(values, chat_of("A", "B", "C"), "", most)

    assert changed == {A: {"__v": 5, "repairs": [["reasoning", "b" * 32]]}}
    assert sum(map(stored_size, {**values, **changed}.values())) <= most * 0.75


def test_age_counts_and_not_the_place_in_the_chat() -> None:
    """A value that was written again is at the end; of no age is the oldest."""
    values = {A: kept("A", 3, code("1")), B: kept("B", 1, code("2"))}
    values |= {C: kept("C", 2, code("3"))}
    most = sum(map(stored_size, values.values()))
    names = chat_of("A", "B", "C")

    assert prune(values, names, "", most) == {}
    assert list(prune(values, names, "", most - 1)) == [B]
    del values[C]["items"]["C" * 26]["created_at"]
    assert list(prune(values, names, "", most - 99)) == [C]
    half = stored_size(values[A])
    assert list(prune(values, names, "", half)) == [C, B, A]


def test_growing_answers_are_left_alone() -> None:
    """Another call of the pipe writes them at this moment."""
    values = {A: kept("A", 1, code("1")), B: kept("B", 2, code("2"))}
    messages = chat_of("B", **{"m-A": {"done": False}})

    assert list(prune(values, messages, "", 100)) == [B]


@pytest.mark.parametrize(
    "value",
    [{"items": {"A" * 26: 7}}, {"items": {"A" * 26: {"payload": 7}}}, {"items": 7}, 7],
)
def test_strange_values_break_nothing(value: Any) -> None:
    """Somebody else may have written there."""
    changed = prune({A: value}, chat_of("A"), "", 0)

    assert changed in ({}, {A: {}})
