"""The loop of a run: turn, calls, turn; against a strict server."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openai_responses.items import Item, drop_orphans, is_call, is_call_output
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.loop.run import run
from openai_responses.loop.spending import Budget, Spending
from openai_responses.loop.tools import (
    Approval,
    Approver,
    AskedCall,
    CallLimits,
    Toolset,
)
from openai_responses.models.usage import add_usage
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import replay_output
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone
from runs.against_server import (
    Runs,
    Told,
    asking,
    assert_output_holds,
    end_of,
    limits,
    simulated,
)
from runs.tools import (
    CITY,
    Json,
    MemoryTools,
    breaking,
    cancelling,
    endless,
    exiting,
    stubborn,
    weather,
)
from simulator import Simulator
from upstream import wire
from upstream.server import Answerer, replying, streaming, until
from upstream.server import breaking as breaking_off

pytestmark = pytest.mark.asyncio

LOOK = {"type": "function", "name": "get_weather"}
FUNCTION = {**LOOK, "parameters": CITY, "strict": False}
NOTE = {"type": "custom", "name": "take_note"}
SEALED = ["reasoning.encrypted_content"]


def offering(text: str, *tools: Item, **more: Any) -> ResponsesRequest:
    update = {"tools": [*(tools or (FUNCTION,))], "include": SEALED, **more}
    return asking(text).model_copy(update=update)


def outputs(told: Told) -> list[Any]:
    return [event.item["output"] for event in told.of(ToolOutput)]


def received(sim: Simulator, index: int) -> list[Item]:
    response = sim.requests[index].response
    assert response is not None
    return list(response["output"])


def assert_prefixes(sim: Simulator, *, with_reasoning: bool = True) -> None:
    """Each request begins with the one before and what came of it; only that grows."""
    bodies = [request.body for request in sim.requests]
    for index, (before, after) in enumerate(pairwise(bodies)):
        back = replay_output(received(sim, index), with_reasoning=with_reasoning)
        expected = [*before["input"], *back]
        assert after["input"][: len(expected)] == expected
        rest = after["input"][len(expected) :]
        asked = [item["call_id"] for item in back if is_call(item)]
        assert [item["call_id"] for item in rest] == asked
        assert all(is_call_output(item) for item in rest)
        for key in (before.keys() | after.keys()) - {"input", "tool_choice"}:
            assert after.get(key) == before.get(key)


def assert_all_answered(ended: RunDone) -> None:
    """Each call of a run has one output, after it, of its kind."""
    calls = [item["call_id"] for item in ended.output if is_call(item)]
    given = [item["call_id"] for item in ended.output if is_call_output(item)]
    assert given == calls
    assert len(set(calls)) == len(calls)


async def test_call_is_answered_and_the_answer_goes_on(
    runs: Runs, sim: Simulator
) -> None:
    told = await runs.of(sim, offering("sim:tool"), toolset=Toolset(MemoryTools()))

    assert told.called == [("get_weather", {"city": "Zürich"})]
    assert told.text == "I called `get_weather`. It said: Rain in Zürich."
    kinds = ("started", "ended", "completed", "answered:")
    assert [line for line in told.log if line.split()[1] in kinds] == [
        "0 started reasoning",
        "0 ended reasoning",
        "1 started function_call",
        "1 ended function_call",
        "turn ended",
        "2 answered: Rain in Zürich.",
        "3 started reasoning",
        "3 ended reasoning",
        "4 started message",
        "4 ended message",
        "turn ended",
        "run completed",
    ]
    assert_prefixes(sim)
    assert_all_answered(told.end)


@pytest.mark.parametrize("persists", [True, False])
@pytest.mark.parametrize(("scenario", "requests"), [("tool-twice", 3), ("parallel", 2)])
async def test_every_request_begins_with_the_one_before(
    runs: Runs, sim: Simulator, scenario: str, requests: int, persists: bool
) -> None:
    """Reasoning goes back between the rounds, or none of it."""
    toolset = Toolset(MemoryTools(), carries_reasoning=persists)
    told = await runs.of(sim, offering(f"sim:{scenario}"), toolset=toolset)

    assert (told.kind, len(told.sent)) == ("completed", requests)
    assert_prefixes(sim, with_reasoning=persists)
    assert_all_answered(told.end)
    kinds = {item.get("type") for item in told.sent[-1]["input"]}
    assert ("reasoning" in kinds) is persists


async def test_without_a_toolset_calls_stay_open(runs: Runs, sim: Simulator) -> None:
    """They are for the caller to answer."""
    told = await runs.of(sim, offering("sim:tool"))

    assert [item["type"] for item in told.output] == ["reasoning", "function_call"]
    assert (outputs(told), len(told.sent)) == ([], 1)


async def test_custom_tool_is_run_and_answered(runs: Runs, sim: Simulator) -> None:
    tools = MemoryTools(take_note=lambda given: weather({"city": given["input"]}))
    tools.schemas["take_note"] = {"type": "object", "properties": {"input": {}}}

    request = offering("sim:custom-tool", NOTE)
    told = await runs.of(sim, request, toolset=Toolset(tools))

    assert told.called == [("take_note", {"input": "note: Zürich is at 408 m\n"})]
    [answered] = told.of(ToolOutput)
    assert answered.item["type"] == "custom_tool_call_output"
    assert told.kind == "completed"


async def test_usage_is_added_up_and_the_last_turns_is_known(
    runs: Runs, sim: Simulator
) -> None:
    """Sums are for billing, the last one is the size of the chat."""
    toolset = Toolset(MemoryTools())
    ended = (await runs.of(sim, offering("sim:tool-twice"), toolset=toolset)).end

    first, second, third = ended.usages
    assert ended.usage == add_usage(add_usage(first, second), third)
    assert ended.last_usage == third != ended.usage


ALLOWED = {"type": "allowed_tools", "mode": "required", "tools": [LOOK]}


@pytest.mark.parametrize(
    ("choice", "later"),
    [
        ("required", None),
        (LOOK, None),
        # Tools that were not allowed stay so.
        (ALLOWED, {**ALLOWED, "mode": "auto"}),
    ],
)
async def test_tool_that_has_to_be_called_is_called_once(
    runs: Runs, sim: Simulator, choice: Any, later: Any
) -> None:
    """A choice that stayed would call it for ever."""
    request = offering("sim:tool-twice", tool_choice=choice)
    told = await runs.of(sim, request, toolset=Toolset(MemoryTools()))
    choices = [body.get("tool_choice") for body in told.sent]
    assert choices == [choice, later, later]


CALL = wire.function_call("get_weather", '{"city":', '"Bern"}', at=0)
[CALL_ITEM] = wire.items_of(CALL)
BEGUN = [wire.created(), *CALL]
FAILED = wire.ended("failed", CALL_ITEM, error={"code": "server_error"})
INCOMPLETE = wire.ended(
    "incomplete", CALL_ITEM, incomplete_details={"reason": "max_output_tokens"}
)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (streaming(wire.on_the_wire(*BEGUN, FAILED)), "failed"),
        (streaming(wire.on_the_wire(*BEGUN, INCOMPLETE)), "incomplete"),
        (breaking_off(wire.on_the_wire(*BEGUN)), "cut"),
    ],
    ids=["failed", "incomplete", "cut"],
)
async def test_calls_of_an_answer_that_ended_badly_are_not_run(
    runs: Runs, answer: Answerer, kind: str
) -> None:
    """But answered, so that the chat can go on; the model may have wanted to say more."""
    toolset = Toolset(MemoryTools())
    told = await runs.against(answer, request=offering("Hi"), toolset=toolset)

    assert (told.kind, len(told.sent), told.called) == (kind, 1, [])
    [output] = outputs(told)
    assert "interrupted" in output
    assert_output_holds(told.events)
    assert_all_answered(told.end)


@pytest.mark.parametrize(
    ("recovers", "kind"), [(True, "completed"), (False, "refused")]
)
async def test_request_after_a_tool_is_sent_again_and_repeats_no_tool(
    runs: Runs, recovers: bool, kind: str
) -> None:
    """What a tool did cannot be undone; its output is in the request."""
    call = streaming(wire.on_the_wire(*wire.whole_stream(CALL)))
    text = streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Done"))))
    soon = {"Retry-After-Ms": "1"}
    busy = replying('{"error": {"message": "x"}}', 503, headers=soon)

    told = await runs.against(
        *(busy, call, busy, text if recovers else busy),
        request=offering("Hi"),
        within=limits(retries=3),
        toolset=Toolset(MemoryTools()),
    )

    # Each response of the run has attempts of its own.
    again = told.sent[2:]
    assert again == [again[0]] * (2 if recovers else 4)
    assert (told.kind, len(told.called)) == (kind, 1)
    assert_output_holds(told.events)
    assert_all_answered(told.end)


async def test_what_a_compaction_stands_for_is_not_sent_again(runs: Runs) -> None:
    """The API may compact at the end of a response that calls a tool."""
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    compacted = wire.whole_stream(CALL, [wire.done(sealed, at=1)])
    done = wire.whole_stream(wire.message("Done"))
    answers = [streaming(wire.on_the_wire(*stream)) for stream in (compacted, done)]

    toolset = Toolset(MemoryTools())
    told = await runs.against(*answers, request=offering("Hi"), toolset=toolset)

    types = [item["type"] for item in told.sent[1]["input"]]
    assert types == ["compaction", "function_call", "function_call_output"]


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        """Return the seconds of the machine, and those that were jumped over."""
        return super().time() + self.ahead


async def test_total_limit_counts_neither_tools_nor_people() -> None:
    """It is a limit for the server; they take an hour each time."""
    loop = JumpingLoop()

    async def ask(calls: Sequence[AskedCall]) -> list[bool]:
        loop.ahead += 3_600
        return [True for _ in calls]

    async def look(arguments: Json) -> str:
        loop.ahead += 3_600
        return await weather(arguments)

    async def work() -> Told:
        connections = Connections()
        toolset = Toolset(
            MemoryTools(get_weather=look),
            Approver(default_rule="ask", ask=ask),
            CallLimits(seconds=1e6, batch_seconds=1e6),
        )
        request, within = offering("sim:tool-twice"), limits(total=1_800.0)
        async with Simulator() as sim:
            told = await Runs(connections).of(sim, request, within, toolset)
        await connections.close()
        return told

    def run_there() -> Told:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(work())

    told = await asyncio.to_thread(run_there)

    assert outputs(told) == ["Rain in Zürich."] * 2
    assert told.kind == "completed"


def tool_tasks() -> list[asyncio.Task[Any]]:
    """The tasks that run tools at this moment."""
    names = {
        task: getattr(task.get_coro(), "__qualname__", "")
        for task in asyncio.all_tasks()
    }
    return [task for task, name in names.items() if name == "_Batch.answer"]


async def test_cancelled_run_cancels_its_tools(runs: Runs, sim: Simulator) -> None:
    tools = MemoryTools(get_weather=endless)
    asked = runs.of(sim, offering("sim:parallel"), toolset=Toolset(tools))
    task = asyncio.create_task(asked)
    await until(lambda: len(tools.called) == 2)
    assert len(tool_tasks()) == 2

    task.cancel()

    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not tool_tasks())
    assert tools.left == ["get_weather"] * 2


DOINGS = {
    "breaking": breaking,
    "cancelling": cancelling,
    "endless": endless,
    "exiting": exiting,
    "stubborn": stubborn,
    "weather": weather,
}
SCENARIOS = (
    *("tool", "tool-twice", "tool-forever", "tool-after-text", "parallel"),
    *("bad-arguments", "unknown-tool", "custom-tool"),
)
FAULTS = ("", ",cut=8", ",cut=14", ",drop=12", ",status=500", ",stall=10")


@dataclass(frozen=True)
class Story:
    """What happens to a run: its scenario, its tools, its people, its limits."""

    prompt: str
    doing: str
    rule: Approval
    yes: bool | None
    rounds: int
    most_calls: int
    batch_seconds: float
    stops_after: int | None

    def toolset(self, tools: MemoryTools) -> Toolset:
        """What answers the calls; the person says yes, no, or is not there."""

        async def ask(calls: Sequence[AskedCall]) -> list[bool]:
            await asyncio.sleep(0)
            if self.yes is None:
                raise ConnectionError("the person has left")
            return [self.yes for _ in calls]

        within = CallLimits(2, 0.02, self.batch_seconds)
        approver = Approver(default_rule=self.rule, ask=ask)
        return Toolset(tools, approver, within)


STORIES = st.builds(
    Story,
    st.builds("sim:{}{}".format, st.sampled_from(SCENARIOS), st.sampled_from(FAULTS)),
    st.sampled_from(sorted(DOINGS)),
    st.sampled_from(get_args(Approval)),
    st.sampled_from([True, False, None]),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([0.01, 600.0]),
    st.none() | st.integers(0, 30),
)


@settings(max_examples=60, deadline=None)
@given(STORIES)
async def test_every_call_is_answered_on_every_path_out(story: Story) -> None:
    """At a limit, an error, a stop, a timeout, a no: what goes on from there is valid."""
    connections = Connections()
    tools = MemoryTools(get_weather=DOINGS[story.doing], take_note=weather)
    tools.schemas["take_note"] = {"type": "object", "properties": {"input": {}}}
    request = offering(story.prompt, FUNCTION, NOTE)
    async with Simulator() as sim:
        within = limits(idle=0.1, first_event=20.0)
        toolset = story.toolset(tools)
        spending = Spending(Budget(story.rounds + 1, story.most_calls))
        stream = run(request, simulated(sim), connections, within, toolset, spending)
        events: list[RunEvent] = []
        async with aclosing(stream):
            async for event in stream:
                events.append(event)
                if len(events) == story.stops_after:
                    break
        await until(lambda: not tool_tasks())
        refused = [sent for sent in sim.requests if sent.status not in (200, 500)]
        assert refused == []
        await assert_goes_on(connections, sim, request, events)
    await connections.close()

    assert len(tools.called) <= story.most_calls
    if events and isinstance(events[-1], RunDone):
        assert_all_answered(end_of(events))
    else:
        assert story.stops_after is not None


async def assert_goes_on(
    connections: Connections,
    sim: Simulator,
    request: ResponsesRequest,
    events: list[RunEvent],
) -> None:
    """The next turn, built from what was told of this one, is accepted."""
    output = [e.item for e in events if isinstance(e, ItemDone | ToolOutput)]
    asked = {"role": "user", "content": "sim:chat go on"}
    items = [*request.input, *replay_output(output, with_reasoning=True)]
    after = request.model_copy(update={"input": [*drop_orphans(items), asked]})

    told = await Runs(connections).of(sim, after)

    assert told.kind == "completed"
    answered = [item for item in items if is_call_output(item)]
    assert [item for item in after.input if is_call_output(item)] == answered
