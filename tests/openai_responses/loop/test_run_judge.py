"""Calls that a judge refuses, leaves to the host, or puts to a person."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import pytest

from event_loops.skipping_loop import run_skipping
from openai_responses.items import Item, is_call
from openai_responses.loop.events import (
    GIVEN_UP,
    ModelAnswer,
    ResponseDone,
    RunDone,
    RunEvent,
    ToolOutput,
)
from openai_responses.loop.run import (
    RoundDone,
    RoundEvent,
    RoundStarted,
    run_rounds,
)
from openai_responses.loop.spending import Budget, EarlierSpending, Spending
from openai_responses.loop.tools import (
    Judgment,
    ToolResult,
    Toolset,
    Verdict,
    output_item,
)
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from runs.against_server import asking
from runs.sample import call, message, reasoning
from runs.scripted import ScriptedProvider
from runs.tools import CITY, MemoryTools

TOOLS: list[Item] = [{"type": "function", "name": "get_weather", "parameters": CITY}]
REQUEST = asking("Weather?").model_copy(update={"tools": TOOLS})
SAID = message("9", "It rains.")
CALLS = [call("1"), call("2"), call("3")]
REFUSED = ToolResult("no", failed=True)
QUESTION = {**call("question"), "name": "ask_user"}

Decide = Callable[[Item], Verdict]


class Judge:
    """Decides by a function; `judged` are the calls that it was asked about."""

    def __init__(
        self, decide: Decide = Verdict, *, holds: bool = False, asks: bool = False
    ) -> None:
        self.holds_calls = holds
        self.judged: list[Item] = []
        self._decide = decide
        self._asks = asks

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        self.judged += calls
        verdicts = [self._decide(call) for call in calls]
        return Judgment(verdicts, QUESTION if self._asks else None)


def by_number(**verdicts: str) -> Decide:
    """Refuse or leave the calls with these ids, make the others."""

    def decide(call: Item) -> Verdict:
        match verdicts.get(str(call["call_id"])):
            case "refuse":
                return Verdict(call, REFUSED)
            case "leave":
                return Verdict(call, is_left=True)
        return Verdict(call)

    return decide


class Round:
    """A run of rounds with a scripted model and tools in memory."""

    def __init__(
        self, judge: Judge, *answers: Sequence[Item], left_calls: Sequence[Item] = ()
    ) -> None:
        self.tools = MemoryTools()
        self.model = ScriptedProvider(*answers)
        self.counted = 0
        """Calls, as the budget counts them."""
        self._toolset = Toolset(self.tools, judge=judge)
        self._left_calls = left_calls

    def report(self) -> list[RunEvent | RoundEvent]:
        """Return all that the run reports."""

        async def work() -> list[RunEvent | RoundEvent]:
            spending = Spending(Budget())
            if self._left_calls:
                spending.add_earlier(EarlierSpending(rounds=1, seconds=60.0))
            events = run_rounds(
                REQUEST, self.model, self._toolset, spending, self._left_calls
            )
            async with aclosing(events):
                reported = [event async for event in events]
            self.counted = spending.calls
            return reported

        return run_skipping(work())


def outputs(events: Sequence[object]) -> dict[str, object]:
    """What the calls got, by their ids and in order."""
    return {
        event.item["call_id"]: event.item["output"]
        for event in events
        if isinstance(event, ToolOutput)
    }


def shown_calls(events: Sequence[object]) -> list[str]:
    """The ids of the calls that are shown, in order."""
    return [
        event.item["call_id"]
        for event in events
        if isinstance(event, ItemDone) and is_call(event.item)
    ]


def test_refused_calls_are_answered_in_their_order() -> None:
    """Between those that are made; the model reads why."""
    judge = Judge(by_number(call_2="refuse"))
    round_ = Round(judge, CALLS, [SAID])

    events = round_.report()

    assert outputs(events) == {
        "call_1": "Rain in Bern.",
        "call_2": "no",
        "call_3": "Rain in Bern.",
    }
    assert list(outputs(events)) == ["call_1", "call_2", "call_3"]
    assert (len(round_.tools.called), round_.counted) == (2, 3)
    sent, _ = round_.model.asked[1]
    assert [item.get("output") for item in sent[-3:]] == list(outputs(events).values())


class AskingAgain(ScriptedProvider):
    """A model whose first stream breaks after a call."""

    has_ended = False

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield the call, its end, and what follows."""
        yield ItemAdded(first_index, call("0"))
        yield ItemDone(first_index, GIVEN_UP)
        async with aclosing(super().generate(request, first_index + 1)) as parts:
            async for part in parts:
                self.has_ended = isinstance(part, ModelAnswer)
                yield part


def test_nothing_waits_for_the_judgment_of_a_call_that_was_given_up() -> None:
    """The text of the next attempt is read as it grows."""
    toolset = Toolset(MemoryTools(), judge=Judge(holds=True))
    model = AskingAgain([SAID])

    async def work() -> list[bool]:
        rounds = run_rounds(REQUEST, model, toolset, Spending(Budget()))
        async with aclosing(rounds) as events:
            return [model.has_ended async for e in events if isinstance(e, TextDelta)]

    assert not any(run_skipping(work()))


def test_calls_that_are_left_end_the_run() -> None:
    """Those that are ours are made first; the model is not asked again."""
    judge = Judge(by_number(call_1="leave", call_3="refuse"))
    round_ = Round(judge, CALLS)

    events = round_.report()

    assert outputs(events) == {"call_2": "Rain in Bern.", "call_3": "no"}
    assert len(round_.model.asked) == 1
    [done] = [event for event in events if isinstance(event, RoundDone)]
    assert done.judgment.is_open
    ended = events[-1]
    assert isinstance(ended, RunDone)
    assert ended.ending.kind == "completed"
    assert [item for item in ended.output if is_call(item)] == CALLS


def test_round_that_breaks_off_is_told_as_a_failure() -> None:
    """What came before it is kept."""
    events = Round(Judge(), CALLS[:1], []).report()

    rounds = [event for event in events if isinstance(event, RoundDone)]
    assert [(done.number, done.is_failure) for done in rounds] == [
        (1, False),
        (2, True),
    ]
    assert [done.usage and done.usage.total for done in rounds] == [15, 15]
    ended = events[-1]
    assert isinstance(ended, RunDone)
    assert "everything received so far is kept" in ended.ending.message


def test_repeated_call_is_not_judged() -> None:
    """It is refused at its place, and the judge sees each id once."""
    judge = Judge()
    round_ = Round(judge, [call("1"), call("1", id="fc_again"), call("2")], [SAID])

    events = round_.report()

    assert judge.judged == [call("1"), call("2")]
    answered = [event for event in events if isinstance(event, ToolOutput)]
    assert [event.failed for event in answered] == [False, True, False]


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        (False, ["reasoning", "function_call", "judged", "message"]),
        (True, ["reasoning", "judged", "function_call", "message"]),
    ],
)
def test_calls_are_shown_when_they_are_judged_or_as_they_come(
    holds: bool, expected: list[str]
) -> None:
    """What comes before the first call is never held back."""
    seen: list[str] = []

    def note(call: Item) -> Verdict:
        seen.append("judged")
        return Verdict(call)

    async def watch() -> None:
        toolset = Toolset(MemoryTools(), judge=Judge(note, holds=holds))
        model = ScriptedProvider([reasoning("1"), call("1")], [SAID])
        async with aclosing(run_rounds(REQUEST, model, toolset)) as events:
            async for event in events:
                if isinstance(event, ItemAdded):
                    seen.append(event.item["type"])

    run_skipping(watch())

    assert seen == expected


def test_question_takes_the_place_of_the_calls() -> None:
    """None of them is made or shown; the end of the response comes last."""
    judge = Judge(by_number(call_2="refuse"), holds=True, asks=True)
    round_ = Round(judge, [message("1", "May I?"), *CALLS])

    events = round_.report()

    assert round_.tools.called == []
    assert outputs(events) == {}
    assert shown_calls(events) == ["call_question"]
    kinds = [type(event) for event in events]
    assert kinds[-3:] == [ResponseDone, RoundDone, RunDone]
    [done] = [event for event in events if isinstance(event, RoundDone)]
    assert [item for _, item in done.items if is_call(item)] == CALLS
    assert len(round_.model.asked) == 1


def test_run_takes_up_the_calls_of_an_earlier_one() -> None:
    judge = Judge(by_number(call_2="refuse"), holds=True)
    round_ = Round(judge, [SAID], left_calls=CALLS[:2])

    events = round_.report()

    assert judge.judged == CALLS[:2]
    kinds = [type(event) for event in events[:8]]
    shown = [ItemAdded, ItemDone]
    assert kinds == [*shown, *shown, RoundDone, ToolOutput, ToolOutput, RoundStarted]
    assert outputs(events) == {"call_1": "Rain in Bern.", "call_2": "no"}
    [(sent, _)] = round_.model.asked
    first = output_item(CALLS[0], ToolResult("Rain in Bern."))
    assert sent == [*REQUEST.input, first, output_item(CALLS[1], REFUSED)]
    numbers = [event.number for event in events if isinstance(event, RoundStarted)]
    assert numbers == [2]
    indexes = [event.output_index for event in events if isinstance(event, ItemAdded)]
    assert indexes == [0, 1, 4]


def test_call_that_is_taken_up_may_be_asked_about_again() -> None:
    """As when a card holds fewer questions than there are calls."""
    round_ = Round(Judge(holds=True, asks=True), left_calls=CALLS)

    events = round_.report()

    assert shown_calls(events) == ["call_question"]
    assert (round_.tools.called, round_.model.asked, round_.counted) == ([], [], 0)


class PausedProvider(ScriptedProvider):
    """Notes whether its time counts."""

    is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.is_paused = True
        yield
        self.is_paused = False


@pytest.mark.parametrize("open_calls", [[], CALLS[:1]])
def test_time_of_judges_and_tools_is_not_the_model_s(open_calls: list[Item]) -> None:
    """Of calls that are taken up, too; the model's own time counts."""
    rounds = [] if open_calls else [CALLS[:1]]
    model = PausedProvider(*rounds, [SAID])
    paused: list[bool] = []

    async def note(arguments: Any) -> str:
        paused.append(model.is_paused)
        return "Rain."

    def note_judge(call: Item) -> Verdict:
        paused.append(model.is_paused)
        return Verdict(call)

    async def work() -> None:
        toolset = Toolset(MemoryTools(get_weather=note), judge=Judge(note_judge))
        events = run_rounds(REQUEST, model, toolset, left_calls=open_calls)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RoundStarted):
                    assert not model.is_paused

    run_skipping(work())

    assert paused == [True, True]
    assert not model.is_paused
