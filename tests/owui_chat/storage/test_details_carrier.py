"""Turns in `reasoning_details`: given back by the real host, they are whole again."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chats.round_trip import ASKED, expected, sent_next
from hosts.servers.functions import HostFunctions
from openai_responses.items import Item, message_text
from openai_responses.requests.replay import Origin, replay_output
from owui_chat.input.history import build_input
from owui_chat.messages import AssistantText, parse_messages
from owui_chat.storage.details_carrier import (
    read_details,
    restore_from_details,
    write_details,
)
from owui_chat.storage.signature import sign_object
from runs.sample import (
    ORIGIN,
    call,
    message,
    output,
    reasoning,
    run_of,
    search,
    without,
)
from stand_in.signing import SIGN

Json = dict[str, Any]


def sent(messages: Sequence[Any], reader: Origin | None = ORIGIN) -> list[Item]:
    """What the next turn sends of the messages between two of the user."""
    whole = json.loads(json.dumps([ASKED, *messages, ASKED]))
    parts, records = restore_from_details(parse_messages(whole)[1], SIGN)
    return build_input(parts, records, reader)[1:-1]


def details_of(*pairs: tuple[Item, str], **notes: Any) -> list[Item]:
    return write_details("1", pairs, ORIGIN, notes, SIGN)


def carrying(text: str, details: object) -> Json:
    return {"role": "assistant", "content": text, "reasoning_details": details}


def called(text: str, details: object) -> list[Json]:
    """Such an answer that makes a call, and what the host's tool returned for it."""
    function = {"name": "get_weather", "arguments": "{}"}
    tool_call = {"id": "call_1", "type": "function", "function": function}
    return [
        {**carrying(text, details), "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ]


LOOK = message("1", "I look.\n\nTwo lines.", "commentary")
LED = (reasoning("1"), LOOK, reasoning("2"))


@pytest.mark.parametrize(
    "responses",
    [
        pytest.param(
            [
                [*LED, search("1"), message("2", "Then."), call("1"), call("2")],
                [reasoning("4"), message("3", "Rain.")],
            ],
            id="the host forgets between which texts a thought was",
        ),
        pytest.param([[*LED, message("2", "Snow.", "final_answer")]], id="two texts"),
        pytest.param([[*LED, message("2", "Done.", "commentary")]], id="only remarks"),
        pytest.param(
            [[reasoning("1"), LOOK, call("1")]],
            id="the host has no text of the remark before a call",
        ),
    ],
)
def test_place_of_each_item_survives(
    responses: list[list[Item]], host_functions: HostFunctions
) -> None:
    rounds = [run_of(*items) for items in responses]

    assert sent_next(host_functions, rounds, "details") == expected(rounds, "details")


def test_deleted_call_takes_its_reasoning_along() -> None:
    details = details_of((reasoning("1"), ""), (call("1"), ""))

    assert sent([carrying("", details)]) == []


TWO_TEXTS = [
    *(reasoning("1"), message("1", "One."), reasoning("2"), message("2", "Two."))
]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param(
            "One.\nThree.",
            ["reasoning", "One.", "reasoning", "Three."],
            id="behind the last place",
        ),
        pytest.param(
            "Something else.",
            ["reasoning", "Something else."],
            id="the places have moved: a thought that led to what is gone goes, too",
        ),
    ],
)
def test_edit_is_the_persons_text(text: str, left: list[str]) -> None:
    details = details_of(*((item, message_text(item)) for item in TWO_TEXTS))

    items = sent([carrying(text, details)])

    assert [message_text(item) or item["type"] for item in items] == left


def test_text_that_is_not_the_model_s_gives_its_own_back() -> None:
    """Unless a person changed it."""
    item = message("1", "<think>Hm.</think> Rain. ")
    details = details_of((reasoning("1"), ""), (item, "Rain. "))

    kept = sent([carrying("Rain.", details)])
    changed = sent([carrying("Snow.", details)])

    assert kept == replay_output([reasoning("1"), item], with_reasoning=True)
    assert message_text(changed[1]) == "Snow."


def test_text_that_is_shown_as_a_thought_goes_with_its_call() -> None:
    """The host has no text of it."""
    turn = [reasoning("1"), message("1", "I look."), call("1")]

    items = sent(called("", details_of(*((item, "") for item in turn))))
    without_call = sent([carrying("", details_of(*((i, "") for i in turn[:2])))])

    assert items == [*replay_output(turn, with_reasoning=True), output("1")]
    assert without_call == replay_output(turn[:2], with_reasoning=True)


def test_text_stands_only_where_the_host_does_not_have_it() -> None:
    shown = message("1", "Rain.")
    stripped = message("2", "Snow. ")

    entries = details_of((shown, "Rain."), (stripped, "Snow. "), a=1)

    assert "Rain." not in json.dumps(entries)
    assert "Snow. " in json.dumps(entries)
    assert entries[0]["notes"] == {"a": 1}
    assert {entry["turn"] for entry in entries} == {"1"}


def test_reasoning_without_its_content_is_not_carried() -> None:
    entries = details_of((without(reasoning("1"), "encrypted_content"), ""))

    assert [entry["type"] for entry in entries] == ["openai_responses.turn"]


def test_plain_reasoning_goes_back_with_a_run_that_goes_on() -> None:
    """Its server wants it in front of the calls that the host has made."""
    words = [{"type": "reasoning_text", "text": "Rain, I think."}]
    thought: Item = {"type": "reasoning", "summary": [], "content": words}
    look = message("1", "I look.")
    turn = [(thought, ""), (look, "I look."), (call("1"), "")]
    details = write_details("1", turn, ORIGIN, {}, SIGN, continues=True)
    parts = parse_messages(called("I look.", details))[1]

    items = build_input(*restore_from_details(parts, SIGN), ORIGIN)

    said = replay_output([look, call("1")], with_reasoning=True)
    assert items == [thought, *said, output("1")]
    assert len(write_details("1", turn, ORIGIN, {}, SIGN)) == len(details) - 1


def test_message_without_a_text_comes_back_as_it_was_sent_in_its_run() -> None:
    """After the reasoning that led to it; each request begins as the last one did."""
    turn = [reasoning("1"), message("1", ""), call("1")]
    [response] = read_details(details_of(*((item, "") for item in turn)), SIGN)

    items = [item for item, _ in response.items]

    assert items == replay_output(turn, with_reasoning=True)
    assert len(items) == 3


def test_encrypted_content_is_where_others_look_for_it() -> None:
    _, entry = details_of((reasoning("1"), ""))

    assert entry["type"] == "reasoning.encrypted"
    assert entry["data"] == "sealed-1"
    assert "sealed-1" not in json.dumps(entry["item"])


@pytest.mark.parametrize("other", [Origin("gpt-6", "api.openai.com"), None])
def test_reasoning_goes_only_to_its_own_model(other: Origin | None) -> None:
    details = details_of((reasoning("1"), ""), (message("1", "Rain."), "Rain."))

    items = sent([carrying("Rain.", details)], other)

    assert [item["type"] for item in items] == ["message"]


def test_notes_come_back() -> None:
    details: list[Item] = []
    for name in ("b", "a"):
        pairs = [(reasoning(name), "")]
        details += write_details(name, pairs, ORIGIN, {"n": name}, SIGN)

    turns = read_details(details[::-1], SIGN)

    read = [(turn.notes, turn.origin, len(turn.items)) for turn in turns]
    assert read == [({"n": "a"}, ORIGIN, 1), ({"n": "b"}, ORIGIN, 1)]


OWN = {"format": "openai-responses-v1"}
HIDDEN = {"type": "reasoning"}
BROKEN: list[object] = [
    None,
    "text",
    [None, "text", {}],
    [{"type": "reasoning.encrypted", "data": "x"}],
    [{**OWN, "type": "surprise", "turn": "1", "index": 0}],
    [{**OWN, "turn": 1, "index": 0}],
    [{**OWN, "type": "openai_responses.turn", "turn": 1, "index": 0}],
    [{"type": "openai_responses.turn", "turn": "1", "index": 0}],
    [{**OWN, "turn": "1", "index": None}],
    [{**OWN, "type": "openai_responses.item", "turn": "1", "index": 0, "item": {}}],
    [{**OWN, "type": "reasoning.encrypted", "turn": "1", "index": 0, "item": HIDDEN}],
]


@pytest.mark.parametrize("details", BROKEN)
def test_reasoning_details_of_others_are_ignored(details: object) -> None:
    answered = carrying("Rain.", details)

    parts, records = restore_from_details(parse_messages([answered])[1], SIGN)

    assert (parts, records) == ([AssistantText("Rain.")], {})
    assert read_details(details, SIGN) == []


def test_unsigned_details_give_only_reasoning_and_shown_text() -> None:
    details = details_of(
        (reasoning("1"), ""),
        (message("1", "Obey.", "commentary"), ""),
        (reasoning("2"), ""),
        (message("2", "Obey."), "Hello."),
        (reasoning("3"), ""),
        (call("1"), ""),
        style="lean",
    )
    details[0]["signature"] = details[0]["signature"][::-1]

    [response] = read_details(details, SIGN)
    items = sent([carrying("Hello.", details)])

    assert response.notes == {}
    assert "Obey" not in str(response)
    assert "arguments" not in str(response)
    assert [item.get("encrypted_content") or message_text(item) for item in items] == [
        *("sealed-2", "Hello."),
    ]


def test_one_signature_holds_for_a_response() -> None:
    """It is made once; an entry that was changed, taken away or added breaks it."""
    details = details_of((reasoning("1"), ""), (call("1"), ""), style="lean")
    changed = [*details[:2], {**details[2], "item": call("2")}]
    forms = [changed, details[:2], [*details, {**details[2], "index": 3}]]

    assert ["signature" in entry for entry in details] == [True, False, False]
    assert read_details(details[::-1], SIGN)[0].notes
    for form in forms:
        [response] = read_details(form, SIGN)
        assert response.notes == {}
        assert "arguments" not in str(response)


def test_entries_that_were_signed_one_by_one_are_read() -> None:
    """Earlier versions signed each entry on its own."""
    entries = details_of((reasoning("1"), ""), (call("1"), ""), style="lean")
    details = [sign_object(without(entry, "signature"), SIGN) for entry in entries]
    details[1]["data"] = "changed"

    [response] = read_details(details, SIGN)
    [headless] = read_details(details[1:], SIGN)

    assert response.notes == {"style": "lean"}
    assert (headless.notes, headless.items) == ({}, response.items)
    assert response.items[1][0]["arguments"]
    assert response.items[0][0] == {
        **{"type": "reasoning", "summary": []},
        "encrypted_content": "changed",
    }
