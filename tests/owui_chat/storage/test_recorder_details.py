"""Turns ride in the thoughts of a chat without a row, and are whole again."""

import json
from collections.abc import Sequence
from itertools import count

import pytest

from hosts.servers.functions import HostFunctions
from openai_responses.items import Item, is_reasoning
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
)
from openai_responses.requests.replay import replay_output
from openai_responses.transport.stream import ItemAdded, ItemDone
from owui_chat.events import AnswerEvent, TurnDetails
from owui_chat.input.history import build_input
from owui_chat.messages import parse_messages
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.recorder import NewRecord, Recorder
from runs.sample import (
    AUTHOR,
    ORIGIN,
    call,
    ended_items,
    message,
    output,
    reasoning,
    recorded,
    run_of,
    run_with_tools,
    shifted,
)
from stand_in.signing import SIGN

ASKED: Item = {"role": "user", "content": "Weather?"}
LOOK = message("1", "I look.", "commentary")
NO_ROUND = run_of(
    reasoning("1"), LOOK, reasoning("2"), message("2", "Snow.", "final_answer")
)
ONLY_REMARKS = run_of(
    reasoning("1"), LOOK, reasoning("2"), message("2", "Done.", "commentary")
)
ROUND_OF_REMARKS = run_of(reasoning("1"), LOOK, call("1"))


def details(events: Sequence[RunEvent]) -> list[AnswerEvent | NewRecord]:
    """What is recorded of a run."""
    scope = AUTHOR._replace(carrier="details", sign=SIGN)
    numbers = count()
    return list(recorded(events, Recorder(scope, lambda: (str(next(numbers)), 0))))


def shown(events: Sequence[RunEvent]) -> NativeRenderer:
    """The view of a run whose turns are carried."""
    view = NativeRenderer(lambda: 1.0, HostedItems)
    for event in details(events):
        assert not isinstance(event, NewRecord)
        list(view.render(event))
    return view


def sent(host: HostFunctions, items: list[Item]) -> list[Item]:
    """What the next turn sends of the output items that the host has."""
    whole = json.loads(json.dumps([ASKED, *host.convert(items), ASKED]))
    parts, records = restore_from_details(parse_messages(whole)[1], SIGN)
    return build_input(parts, records, ORIGIN)[1:-1]


@pytest.mark.parametrize(
    "events",
    [NO_ROUND, run_with_tools(), ONLY_REMARKS],
    ids=["two texts", "tools", "only remarks"],
)
def test_run_is_given_back_as_it_came(
    events: list[RunEvent], host_functions: HostFunctions
) -> None:
    """Every item in its order, although the host gives none of the thoughts back."""
    items = shown(events).shown.items

    expected = replay_output(ended_items(events), with_reasoning=True)
    assert sent(host_functions, items) == expected


def test_remark_goes_with_its_call(host_functions: HostFunctions) -> None:
    """The host has no text of it."""
    made = {**output("1"), "output": [{"type": "input_text", "text": "rain"}]}

    items = [*shown(ROUND_OF_REMARKS).shown.items, {**made, "status": "completed"}]

    received = ended_items(ROUND_OF_REMARKS)
    expected = [*replay_output(received, with_reasoning=True), output("1")]
    assert sent(host_functions, items) == expected


def test_each_turn_rides_in_a_thought_of_its_own() -> None:
    """The host binds a thought to the message that it precedes."""
    second: list[RunEvent] = [
        ItemAdded(2, reasoning("2")),
        ItemDone(2, reasoning("2")),
        ItemAdded(3, message("1", "")),
        ItemDone(3, message("1", "Rain.")),
        ResponseDone("completed"),
    ]

    items = shown([*run_of(reasoning("1"), call("1"))[:-1], *second]).shown.items

    thoughts = [item["reasoning_details"] for item in filter(is_reasoning, items)]
    turns = [{entry["turn"] for entry in thought} for thought in thoughts]
    assert turns == [{"0"}, {"1"}]


def test_turn_without_a_thought_is_not_carried() -> None:
    """There is nothing of it that the host would not give back."""
    [item] = shown(run_of(message("1", "Rain."))).shown.items

    assert "reasoning_details" not in item


def test_hidden_message_is_carried_without_a_text_of_the_chat() -> None:
    """It is the model's own; the one that is shown has its text."""
    *thought, _, _ = run_of(reasoning("1"))
    shown_again = [shifted(event, 2) for event in run_of(message("2", "Rain."))]
    hidden: RunEvent = HiddenMessage(1, message("1", "Rain."))

    [turn] = [
        event
        for event in details([*thought, hidden, *shown_again])
        if isinstance(event, TurnDetails)
    ]

    assert [entry.get("shown") for entry in turn.details[1:]] == [None, "", 5]


def test_turn_details_are_reported_once() -> None:
    """The end of the run has nothing to add."""
    kinds = [type(event) for event in details(NO_ROUND)]

    assert kinds.count(TurnDetails) == 1
    assert kinds[-1] == RunDone
    assert kinds[-2] != TurnDetails
