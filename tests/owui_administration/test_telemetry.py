"""What a server's traces and metrics learn of a run: names and numbers, no text."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from opentelemetry.trace import SpanKind

from calls.facts import call_facts
from calls.sample import TOOL, call_of, chat, host_context, valves_for
from openai_responses.endings import Ending
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.tools import ToolResult
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from owui_administration.account import Account
from owui_administration.filter import Filter
from owui_administration.host import exports_telemetry
from owui_chat.events import AnswerEvent
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run.answer import answer_events
from owui_manifold.run.spending import event_words
from shells.administration import EventWords, ResponseCounts
from simulator import Simulator
from stand_in.host import StandInHost, host_callable
from stand_in.telemetry import Memory, remember

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

RUN = ("gpt-5.6-sol", "api.openai.com")
DONE = RunDone(Ending("completed"))
FIRST = "openai_responses.time_to_first_text"
DURATION = "gen_ai.client.operation.duration"


@pytest.fixture
def memory(host: StandInHost, monkeypatch: pytest.MonkeyPatch) -> Memory:
    return remember(monkeypatch)


async def run_of(*events: RunEvent) -> AsyncGenerator[RunEvent, None]:
    for event in events:
        yield event


async def account(**facts: Any) -> Account:
    return await Filter().begin(call_facts(**facts))


async def observed(*events: RunEvent, **facts: Any) -> list[RunEvent]:
    """What comes through of a run whose responses are counted at its beginning."""
    telemetry = await account(**facts)
    observing = telemetry.observe_run(run_of(*events), *RUN, event_words)
    telemetry.count_responses("gpt-5.6-sol", ResponseCounts(1, 10, 4, 5), 0.25)
    telemetry.count_responses("gpt-5.6-sol", ResponseCounts(1, 1, 0, 1), None)
    return [event async for event in observing]


async def run_to_end(of: Account, ended: RunDone = DONE, host: str = RUN[1]) -> None:
    """Let a run of nothing but its end come through."""
    events = of.observe_run(run_of(ended), RUN[0], host, event_words)
    assert [event async for event in events] == [ended]


def ask_nothing(_: Any) -> Any:
    raise AssertionError


async def test_nothing_is_imported_or_measured_where_it_is_off() -> None:
    """The events are not even looked at."""
    events = run_of(DONE)
    telemetry = await account()

    assert telemetry.observe_run(events, *RUN, ask_nothing) is events
    assert await telemetry.observe_tool("a", asyncio.sleep(0, "b"), ask_nothing) == "b"
    assert not [name for name in vars(sys.modules["open_webui.env"]) if "OTEL" in name]
    await events.aclose()


async def test_run_is_a_span_with_its_tokens_and_cost(memory: Memory) -> None:
    texts: list[RunEvent] = [
        TextDelta(0, "summary", 0, "…"),
        *[TextDelta(1, "text", 0, "canary")] * 2,
    ]
    fixed = Status("Without canary.", TriedRepair(LeaveOutParameter("metadata")))

    events: list[RunEvent] = [Status("Again."), fixed, *texts, DONE]
    assert await observed(*events) == events

    [span] = memory.spans
    assert (span.name, span.ended, span.failed) == ("chat gpt-5.6-sol", True, False)
    assert span.kind is SpanKind.CLIENT
    assert span.told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.6-sol",
        "server.address": "api.openai.com",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.response.finish_reasons": ["completed"],
    }
    assert memory.values("gen_ai.client.token.usage") == [11, 6]
    assert memory.values("openai_responses.cost") == [0.25]
    assert memory.values("openai_responses.retries") == [1]
    assert memory.values("openai_responses.recoveries") == [1]
    assert len(memory.values(FIRST)) == len(memory.values(DURATION)) == 1
    assert memory.values(FIRST) + memory.values(DURATION) >= [0, 0]
    assert memory.bounds[FIRST] == memory.bounds[DURATION]
    seconds, tokens = memory.bounds[FIRST], memory.bounds["gen_ai.client.token.usage"]
    for bounds, begin, end in ((seconds, [0.01, 0.02], 81.92), (tokens, [1, 4], 4**13)):
        assert (len(bounds), bounds[:2], bounds[-1]) == (14, begin, end)
    assert "canary" not in str((span.told, memory.measured))


@pytest.mark.parametrize(
    ("requests", "told"), [(1, {"input": 0, "output": 0}), (0, {})]
)
async def test_tokens_are_told_of_runs_with_a_response(
    memory: Memory, requests: int, told: dict[str, int]
) -> None:
    """None at all is a count, too; of a run that was refused none is known."""
    telemetry = await account()
    observing = telemetry.observe_run(run_of(DONE), *RUN, event_words)
    telemetry.count_responses("gpt-5.6-sol", ResponseCounts(requests, 0, 0, 0), 0)
    assert [event async for event in observing] == [DONE]

    [span] = memory.spans
    counted = {
        name.split(".")[2].removesuffix("_tokens"): count
        for name, count in span.told.items()
        if name.startswith("gen_ai.usage.") and "cache" not in name
    }
    assert counted == told
    assert memory.values("gen_ai.client.token.usage") == list(told.values())
    assert memory.values("openai_responses.cost") == []


@pytest.mark.parametrize(
    ("names", "is_on"),
    [
        ({"": True, "_TRACES": True, "_METRICS": True}, True),
        ({"": True, "_TRACES": True, "_METRICS": False}, True),
        ({"": True, "_TRACES": False, "_METRICS": True}, True),
        ({"": True, "_TRACES": False, "_METRICS": False}, False),
        ({"": False, "_TRACES": True, "_METRICS": True}, False),
        ({"": True, "_TRACES": True}, False),
    ],
)
async def test_host_says_whether_it_exports(
    names: dict[str, bool], host: StandInHost, *, is_on: bool
) -> None:
    """Spans or metrics; one that does not know the words exports nothing."""
    host.provide("env", **{f"ENABLE_OTEL{name}": on for name, on in names.items()})

    assert exports_telemetry() is is_on


async def test_task_and_own_key_are_told_apart(memory: Memory) -> None:
    facts = {"task": "title_generation", "user_pays": True, "user_id": "ada"}
    await observed(DONE, **facts)

    for _, _, attributes in memory.measured:
        assert attributes["openai_responses.task"] == "title_generation"
        assert attributes["openai_responses.own_key"] is True
    assert "ada" not in str(memory.measured)


async def test_failure_has_its_type_and_none_of_its_words(memory: Memory) -> None:
    """As the conventions want it: a word with few values. A limit is no failure."""
    failed = RunDone(Ending("failed", "rate_limit_exceeded", "canary"))
    limited = RunDone(Ending("incomplete", "max_output_tokens"))
    await observed(failed)
    assert memory.measured[-1][0] == DURATION
    assert memory.measured[-1][2]["error.type"] == "rate_limit_exceeded"

    for host in ("a.openai.azure.com", "fd00::5"):  # that of IPv6 has colons
        await run_to_end(await account(), limited, host)

    span, ended, by_number = memory.spans
    assert span.failed
    assert span.told["error.type"] == "rate_limit_exceeded"
    assert "canary" not in str((span.told, memory.measured))
    assert ended.told["gen_ai.response.finish_reasons"] == ["max_output_tokens"]
    assert (ended.failed, "error.type" in ended.told) == (False, False)
    assert ended.told["gen_ai.provider.name"] == "azure.ai.openai"
    assert ended.told["server.address"] == "a.openai.azure.com"
    assert by_number.told["gen_ai.provider.name"] == "openai"
    assert by_number.told["server.address"] == "fd00::5"


async def test_words_of_servers_are_bounded(memory: Memory) -> None:
    """A server that has a new word for each failure makes no series for each."""
    telemetry = await account()
    for code in ["it is a sentence", *map("e{}".format, range(60)), "e7"]:
        await run_to_end(telemetry, RunDone(Ending("failed", code)))

    types = [span.told["error.type"] for span in memory.spans]
    assert (types[:2], types[-2:]) == (["_OTHER", "e0"], ["_OTHER", "e7"])
    assert len(set(types)) == 51


async def test_names_can_be_exported(memory: Memory) -> None:
    """Half a character would end the export of what waits with it."""
    telemetry = await account()
    half = "gpt\ud83d" * 50
    end = EventWords("end", "completed", None, half)
    events = telemetry.observe_run(run_of(DONE), half, "api.openai.com", lambda _: end)
    assert [event async for event in events] == [DONE]
    tool = telemetry.observe_tool(half, asyncio.sleep(0, "b"), lambda _: False)
    assert await tool == "b"

    assert len(memory.spans) == 2
    for span in memory.spans:
        assert f"{span.name}{span.told}".encode()
        assert "gpt?" * 25 in span.told.values()


async def test_stop_ends_the_span(memory: Memory) -> None:
    """Whoever leaves early closes the run as well, maybe in another task."""
    source = run_of(TextDelta(0, "text", 0, "Hi"), DONE)
    events = (await account()).observe_run(source, *RUN, event_words)

    await asyncio.create_task(anext(events))
    await asyncio.create_task(events.aclose())

    [span] = memory.spans
    assert (span.ended, span.told["error.type"]) == (True, "cancelled")


async def test_error_inside_is_named_and_raised(memory: Memory) -> None:
    async def breaking() -> AsyncGenerator[RunEvent, None]:
        yield Status("Again.")
        raise ValueError("canary")

    events = (await account()).observe_run(breaking(), *RUN, event_words)
    with pytest.raises(ValueError, match="canary"):
        assert [event async for event in events] == []

    [span] = memory.spans
    assert (span.ended, span.told["error.type"]) == (True, "ValueError")
    assert "canary" not in str(span.told)


def look(city: str) -> str:
    return f"canary of {city}"


async def run_events(words: str, **more: Any) -> AsyncGenerator[AnswerEvent, None]:
    tool = {"callable": host_callable(look), "spec": TOOL["function"]}
    connections = Connections()
    async with Simulator() as sim:
        host = host_context({"get_weather": tool})
        call = call_of(chat(words, **more), valves_for(sim), host=host)
        call = replace(call, account=await account(model=call.caller.model))
        prepared = await build_chat_request(call)
        try:
            async with aclosing(answer_events(prepared, connections)) as events:
                async for event in events:
                    yield event
        finally:  # also where a test stops reading
            await connections.close()


async def test_tools_are_spans_inside_that_of_their_run(memory: Memory) -> None:
    """Nothing of what was said, given or returned is in them."""
    async for _ in run_events("sim:tool canary", tools=[TOOL]):
        pass

    run, inner = memory.spans
    assert run.name == "chat gpt-5.6-sol"
    assert (inner.name, inner.inside) == ("execute_tool get_weather", run.name)
    assert run.ended is inner.ended is True
    assert run.told["gen_ai.response.model"] == "gpt-5.6-sol"
    assert run.told["gen_ai.usage.input_tokens"] > 0
    assert memory.values("openai_responses.cost") != []
    everything = str([span.told for span in memory.spans]) + str(memory.measured)
    assert not [w for w in ("canary", "Zürich", "user-1", "chat-1") if w in everything]


async def test_stopped_answer_has_what_it_used(memory: Memory) -> None:
    async with aclosing(run_events("canary")) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    [run] = memory.spans
    assert (run.ended, run.told["error.type"]) == (True, "cancelled")
    assert len(memory.values("openai_responses.cost")) == 1


async def test_failed_or_stopped_tool_names_its_type_only(memory: Memory) -> None:
    telemetry = await account()
    begun = asyncio.Event()

    async def failing() -> ToolResult:
        return ToolResult("Error: canary", failed=True)

    async def breaking() -> ToolResult:
        raise ValueError("canary")

    async def hanging() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def observe_tool(name: str, work: Any) -> None:
        await telemetry.observe_tool(name, work, attrgetter("failed"))

    await observe_tool("one", failing())
    with pytest.raises(ValueError, match="canary"):
        await observe_tool("two", breaking())
    cut = asyncio.create_task(observe_tool("three", hanging()))
    await begun.wait()
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut

    types = [span.told.pop("error.type") for span in memory.spans]
    assert types == ["tool_error", "ValueError", "CancelledError"]
    assert all(span.failed and span.ended for span in memory.spans)
    assert "canary" not in str([span.told for span in memory.spans])
