"""Code in the host's words, taken out again."""

import json
from typing import Any

import pytest

from hosts.servers.functions import HostFunctions
from openai_responses.items import Item
from openai_responses.requests.replay import strip_for_replay
from owui_chat.code import code_host_item, code_text, take_out_code
from owui_chat.input.history import build_input
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
    parse_messages,
)
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import Record, read_records
from runs.sample import ORIGIN, message, reasoning
from stand_in.signing import SIGN, signed_items

A = "A" * 26


def logs(*texts: str) -> list[Item]:
    return [{"type": "logs", "logs": text} for text in texts]


def code(**more: Any) -> Item:
    """Code as the wire ends it."""
    return {
        **{"type": "code_interpreter_call", "id": "ci_1", "status": "completed"},
        **{"code": "print(6 * 7)", "container_id": "cntr_1", "outputs": logs("42\n")},
        **more,
    }


CODES = {
    "printed": code(),
    "outputs not included": code(outputs=None),
    "no outputs": code(outputs=[]),
    "failed": code(status="failed", outputs=None),
    "closing tag": code(code="a = '''\n</code_interpreter>'''\n", outputs=None),
    "printed twice": code(outputs=logs("4", "2")),
    "fence in the output": code(outputs=logs("```\n")),
}


def removed(text: str, item: Item) -> str | None:
    """A text without what the host made of code; None if that is not in it."""
    (rest,), deleted = take_out_code([text], [item])
    return None if deleted else rest


def test_codes_of_a_run_are_taken_out_one_after_the_other() -> None:
    one, two = code(code="1", outputs=None), code(code="2", outputs=None)
    first, second = (code_text(item["code"]) for item in (one, two))
    run = [f"A {first} B", f" C {second}{first} "]

    assert take_out_code(run, [one, two]) == (["A  B", f"C {first}"], [])
    assert take_out_code(run, [two, one]) == ([f"A {first} B", "C"], [])
    assert take_out_code([" A ", second], [one, two]) == ([" A ", ""], [one])
    assert take_out_code([" A "], [one, two]) == ([" A "], [one, two])
    empty = code(code=None, outputs=None)  # the host puts nothing there
    assert take_out_code(run, [empty, one]) == (["A  B", run[1]], [])


@pytest.mark.parametrize(("deleted", "is_found"), [(19, True), (20, False)])
def test_after_many_deleted_cards_no_more_are_searched_for(
    deleted: int, is_found: bool
) -> None:
    """For each all texts of the run are read."""
    gone = [code(code=f"gone {number}", outputs=None) for number in range(deleted)]
    there = code(code="1", outputs=None)

    [text], left_out = take_out_code([code_text("1")], [*gone, there])

    assert text == ("" if is_found else code_text("1"))
    assert (there in left_out) is not is_found


@pytest.mark.parametrize("letter", ["\0", "\ud83d"], ids=["NUL", "half a character"])
def test_code_is_found_in_the_text_that_the_host_has_stored(letter: str) -> None:
    """It stores neither, and code prints the bytes of a file."""
    printed = code(outputs=logs(f"PK{letter}3"))
    odd = code(code=f"print({letter!r}, '{letter}')")

    for item in (printed, odd):
        shown = code_text(code_host_item(item)["code"])
        assert removed(shown.replace(letter, ""), item) == ""
        assert removed(shown, item) == ""


def test_code_is_not_found_across_two_texts() -> None:
    split = code(code="1\0", outputs=None)
    texts = ["<code_interpreter>\n1", "\n</code_interpreter>"]

    assert take_out_code(texts, [split]) == (texts, [split])


def host_text(host: HostFunctions, *output: Item) -> str:
    (answer,) = host.convert(list(output))
    text: str = answer["content"]
    return text


@pytest.mark.parametrize("item", CODES.values(), ids=CODES)
def test_code_block_added_by_the_host_is_removed(
    host_functions: HostFunctions, item: Item
) -> None:
    around = [message("1", "Before."), code_host_item(item), message("2", "After.")]
    shown = host_text(host_functions, *around)

    assert "<code_interpreter>" in shown
    assert (removed(shown, item) or "").split() == ["Before.", "After."]


@pytest.mark.parametrize(
    ("item", "below"),
    [
        (code(), "\n```\n```text\n42"),
        (code(outputs=None), ""),
        (code(status="failed"), "\n```\n```text\nThe code did not run to its end."),
        (code(outputs=logs("```")), "\n```\n```text\n'''"),
    ],
    ids=["printed", "outputs not included", "failed", "fence in the output"],
)
def test_output_is_drawn_below_the_code(item: Item, below: str) -> None:
    """Between the fences that the host puts around the code."""
    assert code_host_item(item)["code"] == f"print(6 * 7){below}"


def test_code_without_code_is_no_text(host_functions: HostFunctions) -> None:
    """The host then puts nothing there."""
    empty = code(code=None, outputs=None)

    assert host_functions.convert([code_host_item(empty)]) == []
    assert removed("It is 42.", empty) == "It is 42."


@pytest.mark.parametrize("text", ["", "It is 42.", "<code_interpreter>\n1\n</code_in"])
def test_text_without_the_code_has_lost_its_card(text: str) -> None:
    """Somebody has deleted the card, and its code with it."""
    assert removed(text, code()) is None


def built(text: str, *payload: Item) -> list[Item]:
    """The input of a chat with one kept record."""
    wire = {"model": "m", "created_at": 0, "payload": list(payload)}
    whole = {**wire, "message_id": "m-1", "origin": ORIGIN.wire()}
    items = signed_items({A: whole})
    records = read_records({"openai_responses_pipe:m-1": {"items": items}}, SIGN)
    _, parts = parse_messages([{"role": "assistant", "content": text}])
    assert isinstance(parts[0], AssistantText)
    return build_input(parts, records, ORIGIN)


def test_code_may_be_next_to_a_call_of_the_host() -> None:
    card: list[ChatPart] = [ToolCall("call_1", "f", "{}"), ToolMessage("call_1", "")]
    shown = code_text(code_host_item(code())["code"])
    text = f"{format_marker('items', A)}{shown}It is 42."
    records = {A: Record(A, (strip_for_replay(code()),), "m-1", ORIGIN)}

    items = build_input([*card, AssistantText(text)], records, ORIGIN)

    kinds = ["function_call", "function_call_output"] * 2
    assert [item["type"] for item in items] == [*kinds, "message"]
    assert items[-1]["content"][0]["text"] == "It is 42."


def past(host: HostFunctions, item: Item) -> list[Item]:
    """The input of a chat whose only answer ran `item`."""
    answered = message("1", f"{format_marker('items', A)}It is 42.")
    return built(host_text(host, code_host_item(item), answered), reasoning("1"), item)


def test_code_goes_back_as_a_call_with_its_output(
    host_functions: HostFunctions,
) -> None:
    """The container is dead by then; the text is without what the host made of it."""
    items = past(host_functions, code())

    assert [item["type"] for item in items] == [
        *("reasoning", "function_call", "function_call_output", "message")
    ]
    assert items[1]["name"] == "code_interpreter"
    assert items[1]["call_id"] == items[2]["call_id"]
    assert json.loads(items[1]["arguments"]) == {"code": "print(6 * 7)"}
    assert items[2]["output"].startswith("42\n")
    assert items[3]["content"][0]["text"] == "It is 42."
    assert "cntr_1" not in json.dumps(items)


@pytest.mark.parametrize(
    "item",
    [*CODES.values(), code(id=None), code(code="1", id="c" * 90)],
    ids=[*CODES, "no id", "long id"],
)
def test_past_code_is_always_alike_and_bounded(
    host_functions: HostFunctions, item: Item
) -> None:
    """Byte for byte, with ids that the API takes."""
    first = past(host_functions, item)
    again = past(host_functions, item)

    assert json.dumps(first) == json.dumps(again)
    call, output, *_ = [sent for sent in first if "call_id" in sent]
    assert 0 < len(call["call_id"]) <= 64
    assert call["call_id"] == output["call_id"]


def test_very_long_code_is_cut(host_functions: HostFunctions) -> None:
    """It is sent with every later turn."""
    long = code(code="#" * 1_000_000, outputs=logs("x" * 1_000_000))

    assert len(json.dumps(past(host_functions, long))) < 50_000


def test_code_whose_card_was_deleted_does_not_go_back() -> None:
    """The host decides what exists."""
    items = built(f"{format_marker('items', A)}It is 42.", reasoning("1"), code())

    assert [item["type"] for item in items] == ["reasoning", "message"]
    shown = code_text(code_host_item(code())["code"])
    text = f"{format_marker('items', A)}{shown}It is 42."
    items = built(text, reasoning("1"), code(), code())  # one of two that are equal
    assert "function_call" in [item["type"] for item in items]


def test_code_that_nobody_kept_stays_text(host_functions: HostFunctions) -> None:
    """So the model knows at least what it did."""
    text = host_text(host_functions, code_host_item(code()), message("1", "It is 42."))

    (item,) = built(text)

    assert "print(6 * 7)" in item["content"][0]["text"]
