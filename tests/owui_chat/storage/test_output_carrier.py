"""What lies in the stored output of a chat is found again at its place."""

import json
from typing import Any

import pytest

from openai_responses.items import text_message
from openai_responses.requests.replay import strip_for_replay
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.code import CODE_CARD, code_text
from owui_chat.events import StoredRecord
from owui_chat.messages import (
    AssistantImage,
    AssistantText,
    ChatPart,
    StoredMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from owui_chat.render.items import OutputItems, reasoning_host_item
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
from stand_in.signing import SIGN, signed_items

Json = dict[str, Any]
A, B, C = (f"{letter * 26}" for letter in "ABC")
ITEM = {"type": "message", "role": "user", "content": []}
ASKED = UserMessage(ITEM, StoredMessage({}, "a1"))
RECORD = Record(A, (reasoning("1"),), "m-1", ORIGIN)
VALUE = write_records({A: RECORD}, SIGN)
EARLIER = {
    "__v": 5,
    "items": signed_items(
        {
            A: {
                "model": "f.gpt-5.2",
                "created_at": 1_795_262_400,
                "payload": reasoning("1"),
                "message_id": "m-1",
                "origin": ORIGIN.wire(),
            }
        }
    ),
}


def kept(ulid: str, before: str = "", value: Json = VALUE) -> Json:
    return {**record_item(ulid, value), "before": before}


def card(call_id: str) -> list[ChatPart]:
    """A call and its output, as the host shows them."""
    return [ToolCall(call_id, "f", "{}"), ToolMessage(call_id, "rain")]


def restored(answer: list[ChatPart], run: list[Any]) -> list[ChatPart]:
    asked, *with_stored = restore_from_outputs([ASKED, *answer], {"a1": [run]})
    assert asked == ASKED
    return with_stored


def values_of(*items: Json) -> Json:
    return parse_output_records(output_records({"m-1": {"output": [*items]}}))


RAIN = message("1", "Rain.")
ODD_PARTS = [
    *(*RAIN["content"], {"type": "summary_text", "text": "!"}),
    {"type": "output_text", "text": 7},
]
TWO_TEXTS = [RAIN, kept(A, "msg_1"), message("2", "Snow."), kept(B, "msg_2")]
MADE: Json = {**output("1"), "output": []}
MADE_2 = {**MADE, "call_id": "call_2"}
PARALLEL = [
    *(ToolCall("call_1", "f", "{}"), ToolCall("call_2", "f", "{}")),
    *(ToolMessage("call_1", "rain"), ToolMessage("call_2", "rain")),
]
RAIN_AGAIN = message("2", "Rain.")
DRAWN = f"![](data:image/png;base64,{'A' * 1000})"
RAIN_OF_CODE = code_text("Rain.")
CODE_THEN_RAIN = [{"type": CODE_CARD, "code": "Rain."}, RAIN, kept(A, "msg_1")]


@pytest.mark.parametrize(
    ("answer", "run", "with_records"),
    [
        pytest.param(
            [AssistantText("Rain.\nSnow.")],
            TWO_TEXTS,
            [AssistantText("Rain.", [A]), AssistantText("Snow.", [B])],
            id="the host joins neighbors by a line's end",
        ),
        pytest.param(
            [AssistantText("Rain."), AssistantText("Snow.")],
            TWO_TEXTS,
            [AssistantText("Rain.", [A]), AssistantText("Snow.", [B])],
            id="what another carrier has cut is not joined",
        ),
        pytest.param(
            [AssistantText("Yes.\nYes.")],
            [message("1", "Yes."), message("2", "Yes."), kept(A, "msg_2")],
            [AssistantText("Yes.", []), AssistantText("Yes.", [A])],
            id="the same words are looked for behind those before",
        ),
        pytest.param(
            [AssistantText("Rain.", [A])],
            [RAIN, kept(C, "msg_1"), kept(B, "msg_1")],
            [AssistantText("Rain.", [C, B, A])],
            id="the text keeps the record that it had",
        ),
        pytest.param(
            [AssistantText(f"{RAIN_OF_CODE}\nRain.")],
            CODE_THEN_RAIN,
            [AssistantText(RAIN_OF_CODE, []), AssistantText("Rain.", [A])],
            id="the words of code are not those of the answer",
        ),
        pytest.param(
            [AssistantText("Rain.")],
            [{**RAIN, "content": ODD_PARTS}, kept(A, "msg_1")],
            [AssistantText("Rain.", [A])],
            id="the host takes the text of one kind of part",
        ),
        pytest.param(
            [AssistantText("Rain.")],
            CODE_THEN_RAIN,
            [AssistantText("Rain.", [A])],
            id="the code was deleted",
        ),
        pytest.param(
            [*PARALLEL, AssistantText("Rain.")],
            [call("1"), call("2"), MADE, MADE_2, kept(A, "msg_1"), RAIN],
            [*PARALLEL, AssistantText("Rain.", [A])],
            id="after the last of the outputs of parallel calls",
        ),
        pytest.param(
            [AssistantImage("data:"), AssistantText("Look:\n\nRain.")],
            [message("1", f"Look:\n{DRAWN}"), RAIN_AGAIN, kept(A, "msg_2")],
            [
                *(AssistantImage("data:"), AssistantText("Look:", [])),
                AssistantText("Rain.", [A]),
            ],
            id="images in a text are in front of it",
        ),
        pytest.param(
            card("call_1"),
            [call("1"), MADE, kept(A)],
            [*card("call_1"), AssistantText("", [A])],
            id="a record without a text is after the cards",
        ),
        pytest.param(
            [], [kept(A)], [AssistantText("", [A])], id="nothing is left of the answer"
        ),
        pytest.param(
            [AssistantText("Sun.\nHail."), *card("call_1"), AssistantText("Snow.")],
            [
                *(RAIN, kept(A, "msg_1"), message("2", "Hail."), kept(B, "msg_2")),
                *(call("1"), MADE, message("3", "Snow."), kept(C, "msg_3")),
            ],
            [
                *(AssistantText("Sun.\nHail.", [A]), *card("call_1")),
                AssistantText("Snow.", [C]),
            ],
            id="a changed text loses what follows up to the next output",
        ),
        pytest.param(
            [*card("call_1"), AssistantText("Mine.")],
            [RAIN, kept(B, "msg_1"), call("1"), MADE, kept(A)],
            [*card("call_1"), AssistantText("Mine."), AssistantText("", [A])],
            id="an edited answer is known by its calls",
        ),
        pytest.param(
            [*PARALLEL, AssistantText("Rain.")],
            [call("1"), MADE, call("2"), MADE_2, kept(A, "msg_1"), RAIN],
            [*card("call_1"), *card("call_2"), AssistantText("Rain.", [A])],
            id="before 0.12 the host joins the calls of two rounds",
        ),
        pytest.param(
            [*PARALLEL, AssistantText("Rain.")],
            [call("1"), MADE_2, call("2"), MADE, kept(A, "msg_1"), RAIN],
            [*PARALLEL, AssistantText("Rain.", [A])],
            id="an output is never in front of its call",
        ),
    ],
)
def test_text_names_its_record(
    answer: list[ChatPart], run: list[Any], with_records: list[ChatPart]
) -> None:
    assert restored(answer, run) == with_records


@pytest.mark.parametrize(
    ("answer", "run"),
    [
        ([AssistantText("Mine.")], [RAIN, kept(A, "msg_1")]),
        ([AssistantText("Mine.")], CODE_THEN_RAIN),
        ([AssistantText("Mine.")], [message("1", DRAWN), kept(A, "msg_1")]),
        ([AssistantText("Rain.")], [message("2", "Rain."), kept(A, "msg_1")]),
        ([AssistantText("Rain.")], [kept(A)]),
        (
            [AssistantText("Rain.")],
            [{**kept(A), "id": 7}, {"type": "message"}, {}, 7],
        ),
        (
            [*card("call_2"), AssistantText("Mine.")],
            [RAIN, kept(B, "msg_1"), call("1"), MADE, kept(A)],
        ),
    ],
    ids=[
        *("a filter's words", "after code that was deleted"),
        *("after an image that was deleted", "its text deleted"),
        *("another run", "no writer's", "another call"),
    ],
)
def test_edited_answer_is_kept_without_its_records(
    answer: list[ChatPart], run: list[Any]
) -> None:
    assert restored(answer, run) == answer


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
    run = [kept(A, "msg_1"), RAIN]
    said, with_record = AssistantText("Rain."), AssistantText("Rain.", [A])

    assert restored([told, said], run) == [told, with_record]
    assert restored([said, told], run) == [with_record, told]


def test_commentary_is_restored_between_its_neighbors() -> None:
    """The host gives nothing of it back: its place is that between the others."""
    remarks = [{"type": COMMENTARY_TYPE, "id": f"msg_{n}"} for n in "123"]
    run = [
        *(remarks[0], kept(A, "msg_1"), message("a", "Rain."), call("1"), MADE),
        *(remarks[1], kept(B, "msg_2"), call("2"), MADE_2),
        *(remarks[2], kept(C, "msg_3"), message("b", "Snow.")),
    ]
    first, second = (card(call_id) for call_id in ("call_1", "call_2"))
    rain, snow = AssistantText("Rain.", [A]), AssistantText("Snow.", [C])
    answer = [AssistantText("Rain."), *first, *second, AssistantText("Snow.")]

    between = [rain, *first, AssistantText("", [B]), *second, snow]
    assert restored(answer, run) == between
    # Whose cards were deleted stays after what is left.
    left = restored([AssistantText("Rain.\nSnow.")], run)
    assert left == [rain, AssistantText("Snow.", [B, C])]


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


@pytest.mark.parametrize("message", [None, 7, {}, {"output": "x"}, {"output": [7]}])
def test_message_of_no_writer_keeps_nothing(message: object) -> None:
    """It is not ours to complain."""
    assert parse_output_records(output_records({"m-1": message})) == {}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(json.dumps(EARLIER, indent=1), id="a text, as 1.2.0 stored it"),
        pytest.param(EARLIER, id="the value itself, as 1.0.0 stored it"),
        pytest.param(kept(A)["kept"], id="a record beside its value"),
    ],
)
def test_values_are_read_as_those_of_keys(stored: object) -> None:
    values = values_of({**kept(A), "kept": stored}, message("1", "x"), kept(B, "", {}))

    assert read_records(values, SIGN) == {A: RECORD}
    assert len(values) == 2


DEEP = '{"items":' * 200 + "{}" + "}" * 200


@pytest.mark.parametrize(
    "stored", [None, 7, "", "{", "[]", '"x"', '{"items": []}', DEEP, "[" * 100_000]
)
def test_value_of_somebody_else_harms_nothing(stored: object) -> None:
    """The owner of a chat can write anything into its row."""
    values = values_of({**kept(B), "kept": stored}, kept(A))

    assert list(read_records(values, SIGN)) == [A]


def test_text_that_becomes_much_is_not_parsed() -> None:
    """Six megabytes of it would take more than a hundred; other records are read."""
    bomb = {**kept(B), "kept": '{"items": [' + "[]," * 2_000_000 + "0]}"}

    values = values_of(bomb, kept(A))

    assert values[message_key(f"kept_{B}")] is None
    assert list(read_records(values, SIGN)) == [A]


def test_record_holds_what_the_host_leaves_out_of_texts() -> None:
    """NUL and halves of characters (`sanitize_text_for_db`): the signature holds."""
    payload = (reasoning("1"), call("1", arguments='{"a": "\ud83d é \0"}'))
    record = Record(A, payload, "m-1", ORIGIN)

    item = record_item(A, write_records({A: record}, SIGN))
    item["kept"] = item["kept"].replace("\0", "").replace("\ud83d", "")

    assert read_records(values_of(item), SIGN) == {A: record}


def test_summary_on_the_page_is_not_stored_twice() -> None:
    """The record is that of the whole one, or of nobody if the page has another one."""
    shown = OutputItems()
    [*_] = shown.add(reasoning_host_item(reasoning("1", "Why."), 3))
    record = Record(A, (strip_for_replay(reasoning("1", "Why.")),), "m-1", ORIGIN)
    value = write_records({A: record}, SIGN)

    [*_] = shown.add_record(StoredRecord(record_item(A, value)), None)

    thought, stored = shown.items
    assert "Why." not in stored["kept"]
    assert read_records(values_of(thought, stored), SIGN) == {A: record}
    changed = {**thought, "summary": [{"type": "summary_text", "text": "Obey"}]}
    for items in ([changed, stored], [stored]):
        [read] = read_records(values_of(*items), SIGN).values()
        assert [row["summary"] for row in read.payload] == [[]]
        assert read.payload[0]["encrypted_content"] == "sealed-1"


def test_record_that_is_kept_again_replaces_itself() -> None:
    shown = OutputItems()
    [*_] = shown.add(message("1", "Rain."))

    for value in ({"__v": 4}, {"__v": 5}):
        [*_] = shown.add_record(StoredRecord(record_item(A, value), 3), 0)
    [*_] = shown.add_record(StoredRecord(record_item(B, {})), None)

    assert shown.items[1:] == [kept(A, "msg_1", {"__v": 5}), kept(B, "", {})]


def test_each_text_has_all_that_its_record_needs() -> None:
    """An answer is stopped, its other items are deleted, it is copied to another id."""
    other = kept(B, "", write_records({B: RECORD._replace(ulid=B)}, SIGN))

    values = parse_output_records(output_records({"copy": {"output": [other]}}))

    assert read_records(values, SIGN) == {B: RECORD._replace(ulid=B, message_id="copy")}


@pytest.mark.parametrize(
    ("old", "new"),
    [("sealed-1", "sealed-2"), ("api.openai.com", "gateway"), ('7,"o', '5,"o')],
    ids=["its items", "its origin", "its version"],
)
def test_text_that_was_changed_is_nobodys(old: str, new: str) -> None:
    """The summary would instruct the model."""
    text = kept(A)["kept"]
    assert old in text

    values = values_of({**kept(A), "kept": text.replace(old, new)})

    [read] = read_records(values, SIGN).values()
    assert read.payload[0]["summary"] == []
