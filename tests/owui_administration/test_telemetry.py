"""What a server's traces and metrics learn of a run: names and numbers, no text."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from call_sample import TOOL, call_of, chat, host_context, valves_for
from openai_responses.endings import Ending
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.tools import ToolResult
from openai_responses.models.usage import Usage
from openai_responses.requests.repairs import Repair
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from owui_administration.account import Account
from owui_administration.filter import Filter
from owui_manifold.answer import answer_events
from owui_manifold.chat import PreparedRequest, build_chat_request
from owui_manifold.report import event_facts
from owui_manifold.valves import Valves
from simulator import Simulator
from spans import Memory, remember
from stand_in_host import StandInHost, host_callable

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

RUN = {"model": "gpt-5.6-sol", "address": "api.openai.com"}
CALL = {"task": "", "has_own_key": False}
USAGE = Usage(10, 5, 15, cached=4, reasoning=2)
DONE = RunDone(Ending("completed"), USAGE, usages=(USAGE,))
FIRST = "openai_responses.time_to_first_text"
DURATION = "gen_ai.client.operation.duration"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandInHost:
    """Open WebUI's names, in memory."""
    return StandInHost(monkeypatch, tmp_path)


@pytest.fixture
def memory(host: StandInHost, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """What a collector gets."""
    return remember(monkeypatch)


@pytest_asyncio.fixture
async def prepared(host: StandInHost) -> PreparedRequest:
    """A chat with OpenAI; SHOW_COST is off."""
    valves = Valves(API_KEY="sk-canary")
    return await build_chat_request(call_of(chat("canary"), valves))


async def told(*events: RunEvent) -> AsyncGenerator[RunEvent, None]:
    """A run that says these."""
    for event in events:
        yield event


async def account(**facts: Any) -> Account:
    """What a new filter makes of a call."""
    return await Filter().begin({**CALL, **facts})


async def observe(
    prepared: PreparedRequest, *events: RunEvent, **facts: Any
) -> AsyncGenerator[RunEvent, None]:
    """The events of a run, as the filter gives them back."""
    one = await account(**facts)

    def describe(event: RunEvent) -> Any:
        return event_facts(prepared, event)

    return one.observe_run(told(*events), RUN, describe)


async def observed(
    prepared: PreparedRequest, *events: RunEvent, **facts: Any
) -> list[RunEvent]:
    """What comes through of a run."""
    return [event async for event in await observe(prepared, *events, **facts)]


def ask_nothing(_: Any) -> Any:
    """Where nothing is measured, nothing is asked."""
    raise AssertionError


async def test_nothing_is_imported_or_measured_where_it_is_off() -> None:
    """The events are not even looked at."""
    events, one = told(DONE), await account()

    assert one.observe_run(events, {}, ask_nothing) is events
    assert await one.observe_tool("a", asyncio.sleep(0, "b"), ask_nothing) == "b"
    assert not [name for name in vars(sys.modules["open_webui.env"]) if "OTEL" in name]
    await events.aclose()


async def test_run_is_a_span_with_its_tokens_and_cost(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """And its numbers go into counters and histograms."""
    texts: list[RunEvent] = [
        TextDelta(0, "summary", 0, "…"),
        *[TextDelta(1, "text", 0, "canary")] * 2,
    ]
    fixed = Status("Without canary.", Repair("drop", "metadata"))

    events: list[RunEvent] = [Status("Again."), fixed, *texts, DONE]
    assert await observed(prepared, *events) == events

    [span] = memory.spans
    assert (span.name, span.ended, span.failed) == ("chat gpt-5.6-sol", True, False)
    assert span.told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.6-sol",
        "server.address": "api.openai.com",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.response.finish_reasons": ["completed"],
    }
    assert memory.values("gen_ai.client.token.usage") == [10, 5]
    assert memory.values("openai_responses.cost") == [pytest.approx(125.6e-6)]
    assert memory.values("openai_responses.retries") == [1]
    assert memory.values("openai_responses.recoveries") == [1]
    assert len(memory.values(FIRST)) == len(memory.values(DURATION)) == 1
    assert "canary" not in str((span.told, memory.measured))


async def test_task_and_own_key_are_told_apart(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """A title is no answer; who pays with a key of their own, pays no bill of ours."""
    facts = {"task": "title_generation", "has_own_key": True, "user": {"id": "ada"}}
    await observed(prepared, DONE, **facts)

    for _, _, attributes in memory.measured:
        assert attributes["openai_responses.task"] == "title_generation"
        assert attributes["openai_responses.own_key"] is True
    assert "ada" not in str(memory.measured)


async def test_azure_is_named_as_the_conventions_want_it(memory: Memory) -> None:
    """By the address."""
    facts = {**RUN, "address": "a.openai.azure.com"}
    events = (await account()).observe_run(told(DONE), facts, lambda _: ("", {}))
    assert [event async for event in events] == [DONE]

    [span] = memory.spans
    assert span.told["gen_ai.provider.name"] == "azure.ai.openai"
    assert span.told["server.address"] == "a.openai.azure.com"


async def test_end_at_a_limit_is_no_failure(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """It is the reason why the answer ended."""
    await observed(prepared, RunDone(Ending("incomplete", "max_output_tokens")))

    [span] = memory.spans
    assert span.told["gen_ai.response.finish_reasons"] == ["max_output_tokens"]
    assert (span.failed, "error.type" in span.told) == (False, False)


async def test_failure_has_its_type_and_none_of_its_words(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """As the conventions want it: a word with few values."""
    failed = RunDone(Ending("failed", "rate_limit_exceeded", "canary"))
    await observed(prepared, failed)

    [span] = memory.spans
    assert span.failed
    assert span.told["error.type"] == "rate_limit_exceeded"
    assert memory.measured[-1][0] == DURATION
    assert memory.measured[-1][2]["error.type"] == "rate_limit_exceeded"
    assert "canary" not in str((span.told, memory.measured))


async def test_words_of_servers_are_bounded(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """A server that has a new word for each failure makes no series for each."""
    one = await account()
    for code in ["it is a sentence", *map("e{}".format, range(60)), "e7"]:
        ended = RunDone(Ending("failed", code))
        events = one.observe_run(
            told(ended),
            RUN,
            lambda event: event_facts(prepared, event),
        )
        assert [event async for event in events] == [ended]

    types = [span.told["error.type"] for span in memory.spans]
    assert (types[0], types[1], types[-2], types[-1]) == (
        "_OTHER",
        "e0",
        "_OTHER",
        "e7",
    )
    assert len(set(types)) == 51


async def test_stop_ends_the_span(memory: Memory, prepared: PreparedRequest) -> None:
    """Whoever leaves early closes the run as well, maybe in another task."""
    events = await observe(prepared, TextDelta(0, "text", 0, "Hi"), DONE)

    await asyncio.create_task(anext(events))
    await asyncio.create_task(events.aclose())

    [span] = memory.spans
    assert (span.ended, span.told["error.type"]) == (True, "cancelled")


async def test_error_inside_is_named_and_raised(
    memory: Memory, prepared: PreparedRequest
) -> None:
    """What is no ending, but a mistake."""

    async def breaking() -> AsyncGenerator[RunEvent, None]:
        yield Status("Again.")
        raise ValueError("canary")

    events = (await account()).observe_run(
        breaking(), RUN, lambda event: event_facts(prepared, event)
    )
    with pytest.raises(ValueError, match="canary"):
        assert [event async for event in events] == []

    [span] = memory.spans
    assert (span.ended, span.told["error.type"]) == (True, "ValueError")


def look(city: str) -> str:
    """The weather."""
    return f"canary of {city}"


async def test_tools_are_spans_inside_that_of_their_run(memory: Memory) -> None:
    """Nothing of what was said, given or returned is in them."""
    tool = {"callable": host_callable(look), "spec": TOOL["function"]}
    body = chat("sim:tool canary", tools=[TOOL])
    connections = Connections()
    async with Simulator() as sim:
        call = call_of(body, valves_for(sim), host=host_context({"get_weather": tool}))
        call = call._replace(account=await account(**call.facts))
        async for _ in answer_events(await build_chat_request(call), connections):
            pass
        await connections.close()

    run, inner = memory.spans
    assert run.name == "chat gpt-5.6-sol"
    assert (inner.name, inner.inside) == ("execute_tool get_weather", run.name)
    assert run.ended is inner.ended is True
    assert run.told["gen_ai.response.model"] == "gpt-5.6-sol"
    everything = str([one.told for one in memory.spans]) + str(memory.measured)
    assert not [w for w in ("canary", "Zürich", "user-1", "chat-1") if w in everything]


async def test_tool_that_fails_or_is_cut(memory: Memory) -> None:
    """The type of what happened, never its text."""
    one, begun = await account(), asyncio.Event()

    async def failing() -> ToolResult:
        return ToolResult("Error: canary", failed=True)

    async def breaking() -> ToolResult:
        raise ValueError("canary")

    async def hanging() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def observe_tool(name: str, work: Any) -> None:
        await one.observe_tool(name, work, attrgetter("failed"))

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
