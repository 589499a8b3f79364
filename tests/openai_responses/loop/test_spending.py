"""What a run may take: at a limit the model answers once more, without tools."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from event_loops.skipping_loop import run_skipping
from openai_responses.causes import MISALIGNMENT
from openai_responses.endings import ending_of_failure
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput, Trace
from openai_responses.loop.run import RoundEvent, RoundStarted, run_rounds
from openai_responses.loop.spending import Budget, EarlierSpending, Spending
from openai_responses.loop.tools import (
    Approver,
    AskedCall,
    CallLimits,
    CallTexts,
    Judgment,
    Toolset,
    Verdict,
)
from openai_responses.models.usage import Usage
from openai_responses.requests.build import ResponsesRequest
from runs.against_server import asking
from runs.sample import call, message
from runs.scripted import ScriptedProvider
from runs.tools import CITY, Json, MemoryTools

TOOLS: list[Item] = [{"type": "function", "name": "get_weather", "parameters": CITY}]
REQUEST = asking("Weather?").model_copy(update={"tools": TOOLS})
SAID = message("9", "It rains.")
TEXTS = CallTexts("failed {tool}", "rounds {tool}", "calls", "seconds {tool}", "tokens")


async def seconds_long(_: Json) -> str:
    await asyncio.sleep(2)
    return "Rain."


class Spender:
    """A run within a budget; `started` says in which rounds a call was allowed."""

    def __init__(
        self,
        budget: Budget,
        *answers: Sequence[Item],
        earlier: EarlierSpending | None = None,
        **toolset: Any,
    ) -> None:
        self.tools = MemoryTools(get_weather=seconds_long)
        self.model = ScriptedProvider(*answers)
        self.outputs: list[object] = []
        self.started: list[bool] = []
        self._toolset = Toolset(self.tools, texts=TEXTS, **toolset)
        self._budget = budget
        self._earlier = earlier

    def run(self, spending: Spending | None = None) -> RunDone:
        return run_skipping(self.spend(spending))

    async def spend(
        self,
        spending: Spending | None = None,
        request: ResponsesRequest = REQUEST,
    ) -> RunDone:
        """Return how the run ended, in a loop that runs."""
        ended: RunEvent | RoundEvent | None = None
        if spending is None:
            spending = Spending(self._budget)
            if self._earlier:
                spending.add_earlier(self._earlier)
        events = run_rounds(request, self.model, self._toolset, spending)
        async with aclosing(events):
            async for event in events:
                ended = event
                if isinstance(event, ToolOutput):
                    self.outputs.append(event.item["output"])
                if isinstance(event, RoundStarted):
                    self.started.append(event.may_call)
        assert isinstance(ended, RunDone)
        return ended


STOPPED = "Error: get_weather was stopped: the tools took over 1 s."


@pytest.mark.parametrize(
    ("limit", "most", "outputs"),
    [
        ("rounds", 2, ["Rain.", "rounds get_weather"]),
        ("rounds", 1, ["Rain."]),
        ("calls", 1, ["Rain.", "calls"]),
        # An answer of the script counts 15.
        ("tokens", 30, ["Rain.", "tokens"]),
        ("tokens", 1, ["tokens"]),
        # A tool is stopped, and no time is left.
        ("seconds", 1, [STOPPED]),
        ("seconds", 3, ["Rain.", STOPPED]),
    ],
)
def test_at_a_limit_the_model_answers_without_tools(
    limit: str, most: int, outputs: list[str]
) -> None:
    rounds = [[call(str(number))] for number in range(len(outputs))]
    spender = Spender(Budget(**{limit: most}), *rounds, [SAID])

    ended = spender.run()

    assert spender.outputs == outputs
    assert spender.started == [True] * len(rounds) + [False]
    choices = [request.tool_choice for request in spender.model.requests]
    assert choices == [None] * len(rounds) + ["none"]
    assert all(request.tools == TOOLS for request in spender.model.requests)
    assert ended.limit == limit
    assert ended.ending.kind == "completed"


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (EarlierSpending(), ["Rain.", "Rain."]),
        (EarlierSpending(rounds=1), ["Rain.", "rounds get_weather"]),
        (EarlierSpending(rounds=2), ["rounds get_weather"]),
        (EarlierSpending(calls=3), ["calls"]),
        (EarlierSpending(calls=2), ["Rain.", "calls"]),
    ],
)
def test_what_earlier_runs_took_counts(
    earlier: EarlierSpending, said: list[str]
) -> None:
    """They belong to the same answer: the host made their calls and asked again."""
    budget = Budget(rounds=3, calls=3)
    rounds = [[call(str(number))] for number in range(len(said))]
    spender = Spender(budget, *rounds, [SAID], earlier=earlier)

    spender.run()

    assert spender.outputs == said


def test_last_answer_that_calls_all_the_same_ends_the_run() -> None:
    spender = Spender(Budget(rounds=1), [call("1")], [call("2")])

    ended = spender.run()

    assert spender.outputs == ["Rain.", "rounds get_weather"]
    assert len(spender.model.requests) == 2
    assert ended.ending.kind == "completed"


@pytest.mark.parametrize(
    ("tools", "most", "choice"),
    [(TOOLS, 60, "none"), (None, 60, None), (None, 600, None)],
)
def test_earlier_rounds_count_toward_the_budget(
    tools: list[Item] | None, most: float, choice: str | None
) -> None:
    """The host has called again: the limit is reached before the first response.

    A choice without tools would be refused; without them nothing can be called.
    """

    async def work() -> Spending:
        spending = Spending(Budget(seconds=most))
        usages = (Usage(1, 1, 2), Usage(0, 1, 1))
        spending.add_earlier(EarlierSpending(4, 7, usages, seconds=60.0))
        await spender.spend(spending, REQUEST.model_copy(update={"tools": tools}))
        return spending

    spender = Spender(Budget(), [SAID])

    spending = run_skipping(work())

    assert spender.started == [False]
    [request] = spender.model.requests
    assert (request.tools, request.tool_choice) == (tools, choice)
    assert (spending.rounds, spending.calls) == (5, 7)
    assert (spending.own_rounds, spending.own_calls) == (1, 0)
    assert spending.total_usage.total == 18
    assert spending.own_usages == [spending.last_usage]
    assert [usage.total for usage in spending.usages] == [2, 1, 15]
    assert spending.seconds == 60.0


def test_time_of_people_does_not_count() -> None:
    """A pause stops the clock, not the limit; pauses at the same time count once."""

    async def work() -> list[float | None]:
        spending = Spending(Budget(seconds=10))
        seconds: list[float | None] = []

        async def decide(after: float, takes: float) -> None:
            await asyncio.sleep(after)
            with spending.pause():
                await asyncio.sleep(takes)
                seconds.append(spending.seconds)

        await asyncio.sleep(3)
        await asyncio.gather(decide(0, 100), decide(1, 50), decide(90, 20))
        await asyncio.sleep(1)
        return [*seconds, spending.seconds, spending.seconds_left]

    assert run_skipping(work()) == [3.0, 3.0, 3.0, 4.0, 6.0]


def test_time_of_people_who_are_asked_by_a_task_counts_nowhere() -> None:
    """Neither for the task nor for the run above it, also while another task asks."""

    async def work() -> list[float]:
        above = Spending(Budget(seconds=10))
        tasks = [Spending(Budget(), above) for _ in range(2)]

        async def decide(task: Spending, takes: float) -> None:
            with task.pause():
                await asyncio.sleep(takes)

        await asyncio.sleep(3)
        await asyncio.gather(decide(tasks[0], 100), decide(tasks[1], 50))
        return [above.seconds, *(task.seconds for task in tasks)]

    assert run_skipping(work()) == [3.0, 3.0, 53.0]


async def decided_by_person(_: Json) -> str:
    """Take a hundred seconds, as a person does."""
    await asyncio.sleep(100)
    return "Yes."


async def approve(calls: Sequence[AskedCall]) -> list[bool]:
    await asyncio.sleep(100)
    return [True for _ in calls]


class AskingJudge:
    """Puts the calls to a person, who allows them."""

    holds_calls = False

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        await asyncio.sleep(100)
        return Judgment([Verdict(call) for call in calls])


ASK_USER = {**call("9"), "name": "ask_user"}
REMOTE: Item = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "look"}
ASKING = {"approver": Approver(default_rule="ask", ask=approve)}
OF_WEATHER = {"approver": Approver([("get_weather", "ask")], ask=approve)}


@pytest.mark.parametrize(
    ("calls", "decides", "seconds"),
    [
        ([call("1")], ASKING, 2),
        ([call("1"), call("2")], ASKING, 2),
        ([REMOTE], ASKING, 0),
        ([call("1")], {"judge": AskingJudge()}, 2),
        ([ASK_USER], {}, 0),
        ([call("1"), ASK_USER], OF_WEATHER, 2),
    ],
    ids=[
        "approval",
        "two approvals",
        "remote call",
        "judge",
        "question",
        "question beside an approval",
    ],
)
def test_run_counts_no_time_while_a_person_decides(
    calls: list[Item], decides: dict[str, Any], seconds: float
) -> None:
    """However it is asked; `seconds` are those that the tools themselves take."""
    spender = Spender(Budget(seconds=1000), calls, [SAID], **decides)
    spender.tools.functions["ask_user"] = decided_by_person
    spender.tools.peoples = {"ask_user"}

    async def work() -> float:
        spending = Spending(Budget(seconds=1000))
        await spender.spend(spending)
        return spending.seconds

    assert run_skipping(work()) == seconds


def test_task_counts_for_the_run_above_it() -> None:
    """Its tokens are the run's, and the run's limit is its own."""

    async def work() -> tuple[Spending, Spending]:
        above = Spending(Budget(tokens=20))
        task = Spending(Budget(rounds=3), above)
        task.begin_round()
        task.add_response([Usage(total=15), Usage(total=5)], Usage(total=5))
        return above, task

    above, task = run_skipping(work())

    assert above.total_usage.total == task.total_usage.total == 20
    assert task.limit_of_calls() == above.limit_of_calls() == "tokens"
    assert (above.rounds, task.rounds) == (0, 1)
    assert above.last_usage is None
    assert above.take_delegated() == Usage(total=20)
    assert above.take_delegated() is None


def test_stop_ends_the_run_and_its_tasks() -> None:
    """The model is not asked again, and the reason is that of the stop."""
    error = ApiError(MISALIGNMENT)
    stopped = RunDone(ending_of_failure("failed", error), trace=Trace(error=error))

    async def work() -> RunDone:
        above = Spending(Budget())
        task = Spending(Budget(), above)

        async def stop(_: Json) -> str:
            task.stop(stopped)
            return "stopped"

        spender.tools.functions["get_weather"] = stop
        ended = await spender.spend(above)
        assert task.stopped == above.stopped == stopped
        return ended

    spender = Spender(Budget(), [call("1")])

    ended = run_skipping(work())

    assert spender.outputs == ["stopped"]
    assert (ended.ending, ended.trace) == (stopped.ending, stopped.trace)
    assert len(spender.model.requests) == 1


def test_limit_of_a_batch_is_the_shorter_one() -> None:
    limits = CallLimits(batch_seconds=1)
    spender = Spender(Budget(seconds=100), [call("1")], [SAID], limits=limits)

    spender.run()

    assert spender.outputs == [STOPPED]
