"""Messages of an agent that are steps are hidden, if thoughts are not shown (R14)."""

from collections.abc import Sequence

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.items import Item, item_type, message_text
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
)
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from strategies.thoughts import IntermediateTexts

THOUGHT: Item = {"type": "reasoning", "summary": []}
CALL: Item = {"type": "function_call", "call_id": "c", "name": "look"}


def model_message(text: str, phase: str = "") -> Item:
    part = {"type": "output_text", "text": text}
    item: Item = {"type": "message", "role": "assistant", "content": [part]}
    return {**item, "phase": phase} if phase else item


def response(*items: Item, first: int = 0) -> list[RunEvent]:
    """The events of one response, whose items are numbered from `first` on."""
    events = list[RunEvent]()
    for index, item in enumerate(items, first):
        events.append(ItemAdded(index, {**item, "content": []}))
        if item_type(item) == "message":
            events.append(TextDelta(index, "text", 0, message_text(item)))
        events.append(ItemDone(index, item))
    return [*events, ResponseDone()]


def hiding() -> IntermediateTexts:
    texts = IntermediateTexts(are_shown=False)
    texts.begin_round(may_call=True)
    return texts


def fed(texts: IntermediateTexts, events: Sequence[RunEvent]) -> list[RunEvent]:
    return [shown for event in events for shown in texts.feed(event)]


def outline(events: list[RunEvent]) -> list[str]:
    """What people see begin, hidden texts in brackets."""
    lines: list[str] = []
    for event in events:
        match event:
            case HiddenMessage():
                lines.append(f"({message_text(event.item)})")
            case TextDelta():
                lines.append(event.text)
            case ItemAdded() if item_type(event.item) != "message":
                lines.append(item_type(event.item))
    return lines


STEP = model_message("Step.", "commentary")
PLAIN = model_message("Text.")
ANSWER = model_message("Answer.", "final_answer")
CASES: dict[str, tuple[list[Item], list[str]]] = {
    "commentary before a call": (
        [THOUGHT, STEP, CALL],
        ["reasoning", "(Step.)", "function_call"],
    ),
    "text before a call": ([PLAIN, CALL], ["(Text.)", "function_call"]),
    "text after a call": ([CALL, PLAIN], ["function_call", "(Text.)"]),
    "text without a call": ([THOUGHT, PLAIN], ["reasoning", "Text."]),
    "commentary before an answer": ([STEP, ANSWER], ["(Step.)", "Answer."]),
    "commentary before a text": ([STEP, PLAIN], ["(Step.)", "Text."]),
    "commentary after an answer": ([ANSWER, STEP], ["Answer.", "(Step.)"]),
    "nothing but commentary": ([STEP], ["Step."]),
}


@pytest.mark.parametrize(("items", "shown"), CASES.values(), ids=CASES)
def test_only_the_answer_is_shown(items: list[Item], shown: list[str]) -> None:
    texts = hiding()
    waiting = Status("Trying again.")
    first, *events = fed(texts, [waiting, *response(*items)])
    [ended] = texts.feed(RunDone(COMPLETED, output=tuple(items)))

    assert (first, outline(events)) == (waiting, shown)
    hidden = [event.item for event in events if isinstance(event, HiddenMessage)]
    assert isinstance(ended, RunDone)
    assert [*ended.output] == [item for item in items if item not in hidden]


def test_texts_of_each_round_are_its_own() -> None:
    """That an earlier one called a tool says nothing about the answer."""
    texts = hiding()
    shown = fed(texts, response(PLAIN, CALL))
    texts.begin_round(may_call=True)
    shown += fed(texts, response(model_message("Last."), first=2))
    texts.begin_round(may_call=True)
    shown += fed(texts, response(STEP, first=3))

    assert outline(shown) == ["(Text.)", "function_call", "Last.", "Step."]


def test_hidden_text_that_goes_on_after_its_end_stays_hidden() -> None:
    """A gateway may end a message too early; what is sent again is the longer one."""
    texts = hiding()
    longer = model_message("Text and more.")
    *events, end = response(PLAIN, CALL)
    late: list[RunEvent] = [TextDelta(0, "text", 0, " and more."), ItemDone(0, longer)]

    shown = fed(texts, [*events, *late, end])

    assert outline(shown) == ["(Text.)", "function_call", "(Text and more.)"]
    [*_, ended] = texts.feed(RunDone(COMPLETED, output=(longer, CALL)))
    assert isinstance(ended, RunDone)
    assert ended.output == (CALL,)


def test_message_that_was_a_thought_is_nowhere() -> None:
    """Its text was in tags of a server that has no reasoning of its own."""
    begun, grown, _, end = response(PLAIN)

    assert fed(hiding(), [begun, grown, ItemDone(0, THOUGHT), end]) == [end]
