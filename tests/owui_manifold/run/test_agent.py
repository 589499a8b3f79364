"""What is shown between an agent's tools."""

from contextlib import aclosing
from typing import Any

import pytest

from calls.sample import TOOL, call_of, chat, host_context, valves_for
from openai_responses.endings import COMPLETED
from openai_responses.items import Item, item_type, message_text
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
)
from openai_responses.loop.run import RoundEvent, RoundStarted
from openai_responses.loop.spending import EarlierSpending
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_manifold.call.context import Caller
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run.agent import IntermediateTexts, run_agent
from simulator import Simulator
from stand_in.host import StandInHost, host_callable

Json = dict[str, Any]

THOUGHT: Item = {"type": "reasoning", "summary": []}
CALL: Item = {"type": "function_call", "call_id": "c", "name": "look"}


def model_message(text: str, phase: str = "") -> Item:
    """A message of the model."""
    part = {"type": "output_text", "text": text}
    item: Item = {"type": "message", "role": "assistant", "content": [part]}
    return {**item, "phase": phase} if phase else item


def response(
    *items: Item, may_call: bool = True, first: int = 0
) -> list[RunEvent | RoundEvent]:
    """The events of one response, whose items are numbered from `first` on."""
    events: list[RunEvent | RoundEvent] = [RoundStarted(1, may_call)]
    for index, item in enumerate(items, first):
        events.append(ItemAdded(index, {**item, "content": []}))
        if item_type(item) == "message":
            events.append(TextDelta(index, "text", 0, message_text(item)))
        events.append(ItemDone(index, item))
    return [*events, ResponseDone("completed")]


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
    "nothing but commentary": ([STEP], ["Step."]),
}


@pytest.mark.parametrize("case", CASES)
def test_only_the_answer_is_shown(case: str) -> None:
    """What is hidden keeps its place."""
    items, shown = CASES[case]
    texts = IntermediateTexts(are_shown=False)

    assert (
        outline([e for event in response(*items) for e in texts.show(event)]) == shown
    )


@pytest.mark.parametrize(
    "events",
    [response(ANSWER), response(STEP, may_call=False)],
    ids=["an answer", "a round without tools"],
)
def test_an_answer_is_not_held_back(events: list[RunEvent | RoundEvent]) -> None:
    """It streams as it comes."""
    texts = IntermediateTexts(are_shown=False)

    *begun, _, _ = events
    assert [e for event in begun for e in texts.show(event)] == begun[1:]


def test_everything_is_shown_if_wanted() -> None:
    """But for the rounds, which are no events of the page."""
    events = response(STEP, CALL)
    texts = IntermediateTexts(are_shown=True)

    assert [e for event in events for e in texts.show(event)] == events[1:]


def test_texts_of_each_round_are_its_own() -> None:
    """That an earlier one called a tool says nothing about the answer."""
    texts = IntermediateTexts(are_shown=False)
    rounds = [*response(PLAIN, CALL), *response(model_message("Last."), first=2)]

    shown = outline([e for event in rounds for e in texts.show(event)])

    assert shown == ["(Text.)", "function_call", "Last."]


@pytest.mark.asyncio
@pytest.mark.parametrize("shows_cost", [True, False])
@pytest.mark.parametrize("is_stopped", [True, False])
async def test_only_a_stopped_run_reports_itself_to_the_page(
    is_stopped: bool,
    shows_cost: bool,
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
) -> None:
    """One that ends tells what it took as its end, without what came before it."""
    told: list[Json] = []

    async def emit(event: Json) -> None:
        told.append(event)

    valves = valves_for(sim, SHOW_COST=shows_cost)

    def get_weather(city: str) -> str:
        return f"Rain in {city}."

    tool = {"callable": host_callable(get_weather), "spec": TOOL["function"]}
    call = call_of(
        chat("sim:tool", model="my_pipe.gpt5_function_calling", tools=[TOOL]),
        valves,
        Caller(
            "my_pipe.gpt5_function_calling", "user-1", "chat-1", "m-1", streams=True
        ),
        host=host_context({"get_weather": tool}, event_emitter=emit),
    )
    prepared = await build_chat_request(call)
    assert prepared.toolset
    ended: list[RunEvent] = []
    toolset = prepared.toolset._replace(earlier=EarlierSpending(rounds=3, calls=2))
    run = run_agent(prepared, toolset, prepared.limits, connections)
    async with aclosing(run) as events:
        async for event in events:
            ended.append(event)
            is_text = isinstance(event, TextDelta) and event.kind == "text"
            if is_stopped and is_text:
                break
    await connections.close()

    assert len(told) == is_stopped
    for line in told:
        metadata = line["data"]["execution_metadata"]
        assert (metadata["rounds"], metadata["tool_calls"]) == (2, 1)
        assert bool(metadata["total_price"]) == shows_cost
    works = [event.work for event in ended if isinstance(event, RunDone)]
    took = [(work.rounds, work.tool_calls) for work in works if work]
    assert took == [(2, 1)] * (not is_stopped)


def test_hidden_text_that_goes_on_after_its_end_stays_hidden() -> None:
    """A gateway may end a message too early; what is sent again is the longer one."""
    texts = IntermediateTexts(are_shown=False)
    longer = model_message("Text and more.")
    *events, end = response(PLAIN, CALL)
    late: list[RunEvent] = [
        TextDelta(0, "text", 0, " and more."),
        ItemDone(0, longer),
    ]

    shown = [e for event in (*events, *late, end) for e in texts.show(event)]

    assert outline(shown) == ["(Text.)", "function_call", "(Text and more.)"]
    ended = RunDone(COMPLETED, output=(longer, CALL))
    assert [e.output for e in texts.show(ended) if isinstance(e, RunDone)] == [(CALL,)]
