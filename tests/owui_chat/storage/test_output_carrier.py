"""What lies in the stored output of a chat is found again at its place."""

import json
from typing import Any

import pytest

from openai_responses.items import text_message
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.code import CODE_CARD, code_text
from owui_chat.events import StoredRecord
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    StoredMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from owui_chat.render.items import OutputItems
from owui_chat.storage.output_carrier import (
    output_records,
    parse_output_records,
    record_item,
    restore_from_outputs,
    stored_outputs,
)
from owui_chat.storage.records import (
    Record,
    message_key,
    read_records,
    write_records,
)
from runs.sample import ORIGIN, call, message, output, reasoning
from stand_in.signing import SIGN

Json = dict[str, Any]
A, B, C = (f"{letter * 26}" for letter in "ABC")
ITEM = {"type": "message", "role": "user", "content": []}
ASKED = UserMessage(ITEM, StoredMessage({}, "a1"))
VALUE = write_records(
    {A: Record(A, "f.gpt-5.2", 0, (reasoning("1"),), "m-1", ORIGIN)}, SIGN
)


def kept(ulid: str, before: str = "", value: Json = VALUE) -> Json:
    """An item that keeps something."""
    head = {"type": "openai_responses:kept", "id": f"kept_{ulid}"}
    return {**head, "before": before, "kept": json.dumps(value, separators=(",", ":"))}


def card(call_id: str) -> list[ChatPart]:
    """A call and its output, as the host shows them."""
    return [ToolCall(call_id, "f", "{}"), ToolMessage(call_id, "rain")]


def restored(answer: list[ChatPart], run: list[Any]) -> list[ChatPart]:
    """An answer with what is stored for it."""
    asked, *with_stored = restore_from_outputs([ASKED, *answer], {"a1": [run]})
    assert asked == ASKED
    return with_stored


ODD_PARTS = [*message("1", "Rain.")["content"], {"type": "summary_text", "text": "!"}]
RAIN_OF_CODE = code_text("Rain.")
CODE_THEN_RAIN = [
    {"type": CODE_CARD, "code": "Rain."},
    message("1", "Rain."),
    kept(A, "msg_1"),
]


@pytest.mark.parametrize(
    ("shown", "run", "texts"),
    [
        pytest.param(
            AssistantText("Rain.\nSnow."),
            [
                *(message("1", "Rain."), kept(A, "msg_1")),
                *(message("2", "Snow."), kept(B, "msg_2")),
            ],
            [AssistantText("Rain.", [A]), AssistantText("Snow.", [B])],
            id="the host joins neighbors by a line's end",
        ),
        pytest.param(
            AssistantText("Yes.\nYes."),
            [message("1", "Yes."), message("2", "Yes."), kept(A, "msg_2")],
            [AssistantText("Yes.", []), AssistantText("Yes.", [A])],
            id="the same words are looked for behind those before",
        ),
        pytest.param(
            AssistantText("Rain.", [A]),
            [message("1", "Rain."), kept(C, "msg_1"), kept(B, "msg_1")],
            [AssistantText("Rain.", [C, B, A])],
            id="the text keeps the record that it had",
        ),
        pytest.param(
            AssistantText(f"{RAIN_OF_CODE}\nRain."),
            CODE_THEN_RAIN,
            [AssistantText(RAIN_OF_CODE, []), AssistantText("Rain.", [A])],
            id="the words of code are not those of the answer",
        ),
        pytest.param(
            AssistantText("Rain."),
            [{**message("1", "Rain."), "content": ODD_PARTS}, kept(A, "msg_1")],
            [AssistantText("Rain.", [A])],
            id="the host takes the text of one kind of part",
        ),
        pytest.param(
            AssistantText("Rain."),
            CODE_THEN_RAIN,
            [AssistantText("Rain.", [A])],
            id="the code was deleted",
        ),
    ],
)
def test_text_names_its_record(
    shown: AssistantText, run: list[Any], texts: list[ChatPart]
) -> None:
    assert restored([shown], run) == texts


def test_texts_that_were_parted_before_have_their_records() -> None:
    """What another carrier has cut is not joined by a line's end."""
    run = [
        *(message("1", "Rain."), kept(A, "msg_1")),
        *(message("2", "Snow."), kept(B, "msg_2")),
    ]

    with_stored = restored([AssistantText("Rain."), AssistantText("Snow.")], run)

    assert with_stored == [AssistantText("Rain.", [A]), AssistantText("Snow.", [B])]


def test_text_after_parallel_calls_has_its_record() -> None:
    """It is after the last of their outputs, which come one after the other."""
    made: Json = {**output("1"), "output": []}
    run = [call("1"), call("2"), made, {**made, "call_id": "call_2"}]
    run += [kept(A, "msg_1"), message("1", "Rain.")]
    (first, first_output), (second, second_output) = card("call_1"), card("call_2")
    cards = [first, second, first_output, second_output]

    with_stored = restored([*cards, AssistantText("Rain.")], run)

    assert with_stored == [*cards, AssistantText("Rain.", [A])]


def test_an_answer_belongs_to_the_stored_message_before_it() -> None:
    runs = {
        f"a{n}": [[message(n, "Yes.")], [kept(u, f"msg_{n}")]]
        for n, u in (("1", A), ("2", B), ("3", C))
    }
    second, third = (
        ASKED._replace(stored=StoredMessage({}, answer)) for answer in ("a2", "a3")
    )
    chat: list[ChatPart] = [second, AssistantText("No."), third]
    chat.append(AssistantText("Yes."))

    with_stored = restore_from_outputs([AssistantText("Yes."), *chat], runs)

    assert with_stored == [AssistantText("Yes."), *chat[:3], AssistantText("Yes.", [C])]


def test_an_answer_has_its_records_after_an_instruction_of_a_filter() -> None:
    """Some filters put one after each question; none comes in the middle of a run."""
    told = UserMessage(text_message("developer", "Be brief."))
    run = [kept(A, "msg_1"), message("1", "Rain.")]

    assert restored([told, AssistantText("Rain.")], run) == [
        told,
        AssistantText("Rain.", [A]),
    ]
    assert restored([AssistantText("Rain."), told], run) == [
        AssistantText("Rain.", [A]),
        told,
    ]


def test_record_without_text_is_restored_at_the_end() -> None:
    run = [call("1"), {**output("1"), "output": []}, kept(A)]

    assert restored(card("call_1"), run) == [*card("call_1"), AssistantText("", [A])]


def test_commentary_is_restored_between_its_neighbors() -> None:
    """The host gives nothing of it back: its place is that between the others."""
    remarks = [{"type": COMMENTARY_TYPE, "id": f"msg_{n}"} for n in "123"]
    made: Json = {**output("1"), "output": []}
    run = [
        *(remarks[0], kept(A, "msg_1"), message("a", "Rain."), call("1"), made),
        *(remarks[1], kept(B, "msg_2"), call("2"), {**made, "call_id": "call_2"}),
        *(remarks[2], kept(C, "msg_3"), message("b", "Snow.")),
    ]
    first, second = (card(call_id) for call_id in ("call_1", "call_2"))

    with_stored = restored(
        [AssistantText("Rain."), *first, *second, AssistantText("Snow.")], run
    )

    assert with_stored == [
        AssistantText("Rain.", [A]),
        *first,
        AssistantText("", [B]),
        *second,
        AssistantText("Snow.", [C]),
    ]
    # Whose cards were deleted stays after what is left.
    assert restored([AssistantText("Rain.\nSnow.")], run) == [
        AssistantText("Rain.", [A]),
        AssistantText("Snow.", [B, C]),
    ]


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("Mine.", [message("1", "Rain."), kept(A, "msg_1")]),
        ("Rain.", [message("2", "Rain."), kept(A, "msg_1")]),
        ("Rain.", [kept(A)]),
        ("Rain.", [{**kept(A), "id": 7}, {"type": "message"}, {}, 7]),
    ],
    ids=["a filter's words", "its text deleted", "another run", "no writer's"],
)
def test_edited_answer_is_kept_without_its_records(text: str, run: list[Any]) -> None:
    """And what was kept is lost silently."""
    assert restored([AssistantText(text)], run) == [AssistantText(text)]


@pytest.mark.parametrize(("call_id", "is_known"), [("call_1", True), ("call_2", False)])
def test_edited_answer_is_known_by_its_calls(call_id: str, is_known: bool) -> None:
    run = [
        *(message("1", "Rain."), kept(B, "msg_1"), call("1")),
        *({**output("1"), "output": []}, kept(A)),
    ]
    answer = [*card(call_id), AssistantText("Mine.")]

    end = [AssistantText("", [A])] if is_known else []
    assert restored(answer, run) == [*answer, *end]


def test_branch_is_followed_to_its_tip() -> None:
    messages: Json = {
        "u1": {"role": "user", "parentId": None},
        "a1": {"role": "assistant", "parentId": "u1", "output": [{"id": "1"}]},
        "other": {"role": "assistant", "parentId": "u1", "output": [{"id": "x"}]},
        "a1b": {"role": "assistant", "parentId": "a1", "output": [{"id": "2"}]},
        "u2": {"role": "user", "parentId": "a1b"},
        "a2": {"role": "assistant", "parentId": "u2", "output": []},
    }

    first = {"a1": [[{"id": "1"}], [{"id": "2"}]]}
    assert stored_outputs(messages, "a2") == {**first, "a2": [[], None]}
    other = {**first, "a2": [[], [{"id": "x"}]]}
    assert stored_outputs(messages, "a2", "other") == other
    ring = {"a": {"parentId": "a", "output": [{"id": "1"}]}}
    assert stored_outputs(ring, "a") == {"a": [[{"id": "1"}], None]}
    assert stored_outputs(messages, "nowhere") == {}


def test_changed_text_loses_what_follows_up_to_the_next_output() -> None:
    """A changed text keeps its own place if it begins a text of the host."""
    run = [
        *(message("1", "Rain."), kept(A, "msg_1"), message("2", "Hail.")),
        *(kept(B, "msg_2"), call("1"), {**output("1"), "output": []}),
        *(message("3", "Snow."), kept(C, "msg_3")),
    ]
    called = card("call_1")

    with_stored = restored(
        [AssistantText("Sun.\nHail."), *called, AssistantText("Snow.")], run
    )

    changed = AssistantText("Sun.\nHail.", [A])
    assert with_stored == [changed, *called, AssistantText("Snow.", [C])]


@pytest.mark.parametrize("message", [None, 7, {}, {"output": "x"}, {"output": [7]}])
def test_message_of_no_writer_keeps_nothing(message: object) -> None:
    """It is not ours to complain."""
    assert parse_output_records(output_records({"m-1": message})) == {}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(json.dumps(VALUE, indent=1), id="a text, however it is written"),
        pytest.param(VALUE, id="the value itself, as earlier versions stored it"),
    ],
)
def test_values_are_read_as_those_of_keys(stored: object) -> None:
    run = [{**kept(A), "kept": stored}, message("1", "x"), kept(B)]

    values = parse_output_records(output_records({"m-1": {"output": run}}))

    assert list(read_records(values, SIGN)) == [A]
    assert len(values) == 2


DEEP = '{"items":' * 200 + "{}" + "}" * 200


@pytest.mark.parametrize(
    "stored", [None, 7, "", "{", "[]", '"x"', '{"items": []}', DEEP, "[" * 100_000]
)
def test_value_of_somebody_else_harms_nothing(stored: object) -> None:
    """The owner of a chat can write anything into its row."""
    foreign = {**kept(B), "kept": stored}

    values = parse_output_records(
        output_records({"m-1": {"output": [foreign, kept(A)]}})
    )

    assert list(read_records(values, SIGN)) == [A]


def test_text_that_becomes_much_is_not_parsed() -> None:
    """Six megabytes of it would take more than a hundred; other records are read."""
    bomb = {**kept(B), "kept": '{"items": [' + "[]," * 2_000_000 + "0]}"}

    values = parse_output_records(output_records({"m-1": {"output": [bomb, kept(A)]}}))

    assert values[message_key(f"kept_{B}")] is None
    assert list(read_records(values, SIGN)) == [A]


def test_record_holds_what_the_host_leaves_out_of_texts() -> None:
    """NUL and halves of characters (`sanitize_text_for_db`): the signature holds."""
    payload = (reasoning("1"), call("1", arguments='{"a": "\ud83d é \0"}'))
    record = Record(A, "f.gpt-5.2", 0, payload, "m-1", ORIGIN)

    item = record_item(A, write_records({A: record}, SIGN))
    item["kept"] = item["kept"].replace("\0", "").replace("\ud83d", "")
    values = parse_output_records(output_records({"a1": {"output": [item]}}))

    assert read_records(values, SIGN) == {A: record}


def test_record_that_is_kept_again_replaces_itself() -> None:
    shown = OutputItems()
    [*_] = shown.add(message("1", "Rain."))

    for value in ({"__v": 4}, {"__v": 5}):
        [*_] = shown.add_record(StoredRecord(record_item(A, value), 3), 0)
    [*_] = shown.add_record(StoredRecord(record_item(B, {})), None)

    assert shown.items[1:] == [kept(A, "msg_1", {"__v": 5}), kept(B, "", {})]
