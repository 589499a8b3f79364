"""A whole request against a real server, from the first byte to the last event."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from openai_responses.endings import COMPLETED, CUT
from openai_responses.endpoint import Endpoint
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunDone, RunEvent, Trace
from openai_responses.loop.run import run
from openai_responses.models.usage import Usage
from openai_responses.transport.connections import Connections
from runs.against_server import (
    AT_ONCE,
    CANARY,
    asking,
    end_of,
    report,
    report_of,
    simulated,
)
from runs.joining import joined
from runs.log import log_of
from simulator import Simulator
from upstream import wire
from upstream.server import (
    Answerer,
    Upstream,
    breaking,
    replying,
    silence,
    stalling,
    streaming,
    until,
)

pytestmark = pytest.mark.asyncio

HELLO = wire.whole_stream(wire.reasoning(["Hm"], at=0), wire.message("Hel", "lo", at=1))
HELLO_LOG = [
    "0 started reasoning",
    "0 summary 0: Hm",
    "0 ended reasoning",
    "1 started message",
    "1 text 0: Hello",
    "1 ended message",
    "turn completed",
    "run completed",
]


async def test_run_reports_events_then_output_and_usage(
    connections: Connections,
) -> None:
    """Events come in order, deltas joined, the items and the usage at the end."""
    events = await report_of(connections, streaming(wire.on_the_wire(*HELLO)))
    assert log_of(events) == HELLO_LOG
    usage = Usage(30, 12, 42, 20, 4, 5)
    output = tuple(wire.items_of(HELLO))
    trace = Trace(model="gpt-5.6-sol", status=200, response_id="resp_1")
    ended = RunDone(COMPLETED, usage, usage, output, trace, usages=(usage,))
    assert end_of(events) == ended


async def test_tier_of_a_response(connections: Connections) -> None:
    """What served it is billed, not what was asked for."""
    last = wire.response("completed", *wire.items_of(HELLO), service_tier="priority")
    events = [*HELLO[:-1], {"type": "response.completed", "response": last}]
    reported = await report_of(connections, streaming(wire.on_the_wire(*events)))
    assert [answer.tier for answer in end_of(reported).usages] == ["priority"]


async def test_json_answer_to_a_stream_request(connections: Connections) -> None:
    """A server that does not stream tells the same."""
    body = json.dumps(HELLO[-1]["response"])
    events = await report_of(connections, replying(body))
    assert log_of(events) == HELLO_LOG


async def test_request_that_is_not_streamed(
    connections: Connections, sim: Simulator
) -> None:
    """The same server tells the same both ways."""
    streamed, whole = [
        await report(connections, simulated(sim), asking("sim:short", stream=stream))
        for stream in (True, False)
    ]
    assert [r.body["stream"] for r in sim.requests] == [True, False]
    assert log_of(whole) == log_of(joined(streamed))


@pytest.mark.parametrize(
    ("spec", "kind", "code"),
    [
        ("chat", "completed", None),
        ("parallel,unknown,keepalive=3", "completed", None),
        ("big-line", "completed", None),
        ("incomplete", "incomplete", "max_output_tokens"),
        ("failed", "failed", "server_error"),
        ("misaligned", "failed", "misalignment_policy_violation"),
        ("misaligned,chunks=1", "failed", "misalignment_policy_violation"),
        ("misaligned-first", "refused", "misalignment_policy_violation"),
        ("cyber-400", "refused", "cyber_policy"),
        ("too-large-first", "refused", "request_above_rate_limit"),
        ("xai-key", "refused", "invalid_api_key"),
        ("flex-unavailable", "completed", None),
        ("error-flat", "error", "server_error"),
        ("error-first", "error", "server_is_overloaded"),
        ("cut", "cut", None),
        ("drop", "cut", None),
        ("json-error-200", "refused", "server_error"),
        ("detail-error", "refused", None),
        ("quota", "refused", "insufficient_quota"),
        ("500", "refused", "server_error"),
    ],
)
async def test_each_scenario_has_its_ending(
    connections: Connections, sim: Simulator, spec: str, kind: str, code: str | None
) -> None:
    """Every way to end is told, with a message unless all went well."""
    tools = [
        {"type": "function", "name": "get_weather", "parameters": None, "strict": False}
    ]
    request = asking(f"sim:{spec}").model_copy(update={"tools": tools})
    events = await report(connections, simulated(sim), request)
    ending = end_of(events).ending
    assert (ending.kind, ending.code) == (kind, code)
    assert bool(ending.message) == (kind != "completed")


UNFINISHED = wire.numbered([wire.created(), *wire.message("Hello ", "world")[:3]])


async def test_closing_the_generator_closes_the_connection(
    connections: Connections,
) -> None:
    async with Upstream(stalling(wire.on_the_wire(*UNFINISHED))) as upstream:
        events = run(asking(), upstream.endpoint, connections, Limits())
        async with aclosing(events):
            assert log_of([await anext(events)]) == ["0 started message"]
        async with asyncio.timeout(60):
            await upstream.left.wait()


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(
            stalling(wire.on_the_wire(*UNFINISHED)),
            ["0 started message", "0 text 0: Hello "],
            id="in the middle of the answer",
        ),
        pytest.param(silence, [], id="before the answer"),
    ],
)
async def test_cancelled_task_closes_the_connection(
    connections: Connections, answer: Answerer, shown: list[str]
) -> None:
    reported: list[RunEvent] = []

    async def watch(endpoint: Endpoint) -> None:
        async for event in run(asking(), endpoint, connections, AT_ONCE):
            reported.append(event)

    async with Upstream(answer) as upstream:
        task = asyncio.create_task(watch(upstream.endpoint))
        await until(lambda: len(upstream.requests) == 1 and len(reported) == len(shown))
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
            await upstream.left.wait()
    assert log_of(reported) == shown


@pytest.mark.parametrize("answer", [streaming, breaking])
async def test_cut_stream_keeps_what_arrived(
    connections: Connections, answer: Any
) -> None:
    """What arrived is kept, whether the stream just ends or the connection breaks."""
    first = wire.reasoning(["Hm"], at=0)
    second = wire.message("Hello", at=1)[:3]
    text = wire.on_the_wire(*first, *second)
    events = await report_of(connections, answer(text))
    assert log_of(events)[-3:] == [
        "1 started message",
        "1 text 0: Hello",
        "run cut",
    ]
    assert end_of(events) == RunDone(
        CUT, None, None, tuple(wire.items_of(first)), Trace(status=200)
    )


UNREADABLE = "did not answer like the Responses API"


async def test_last_event_without_a_blank_line(connections: Connections) -> None:
    """A stream that is complete but for its last byte is no cut one."""
    text = wire.on_the_wire(*HELLO).rstrip(b"\n")
    events = await report_of(connections, streaming(text))
    assert log_of(events) == HELLO_LOG


def error_body(**fields: str) -> str:
    """Return an error body that holds a secret wherever it can."""
    error = {"message": CANARY, "code": CANARY, "type": CANARY, "param": CANARY}
    return json.dumps({"error": {**error, **fields}})


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (200, "unreadable", UNREADABLE),
        (400, "refused", "A firewall or proxy"),
        (500, "refused", "A gateway"),
    ],
)
async def test_page_says_that_the_api_did_not_answer(
    connections: Connections, status: int, kind: str, words: str
) -> None:
    """Its title is for administrators alone."""
    page = f"<html><title>{CANARY}</title></html>"
    answer = replying(page, status, content_type="text/html")
    events = await report_of(connections, answer)
    ended = end_of(events)
    assert ended.ending.kind == kind
    assert words in ended.ending.message
    assert ended.trace.error.message == (CANARY if status >= 400 else "")


@pytest.mark.parametrize(
    "event",
    [
        wire.ended("failed", error={"code": CANARY, "message": CANARY}),
        wire.error_flat(CANARY, CANARY),
        wire.ended("incomplete", incomplete_details={"reason": CANARY}),
    ],
)
async def test_secrets_in_events(connections: Connections, event: wire.Event) -> None:
    """Nothing that a server says of an error reaches the end of a run."""
    events = await report_of(connections, streaming(wire.on_the_wire(event)))
    ending = end_of(events).ending
    assert ending.is_failure
    assert CANARY not in repr(ending)


@pytest.mark.parametrize(
    ("base_url", "kind", "words"),
    [
        ("nowhere", "invalid", "is not an http or https address"),
        (f"http://user:{CANARY}@127.0.0.1/v1", "invalid", "user name or a password"),
        ("http://127.0.0.1:1/v1", "unreachable", "127.0.0.1 cannot be reached"),
    ],
)
async def test_address_that_does_not_work(
    connections: Connections, base_url: str, kind: str, words: str
) -> None:
    """That is an ending as well."""
    events = await report(connections, Endpoint(base_url, CANARY))
    assert log_of(events) == [f"run {kind}"]
    assert words in end_of(events).ending.message
    assert CANARY not in repr(events)


async def test_trace_identifies_response_and_refusal(connections: Connections) -> None:
    """The log learns what it needs of an answer, and of a refusal."""
    named = {"x-request-id": "req_1"}
    body = json.dumps(HELLO[-1]["response"])
    answer = replying(body, headers=named)
    trace = end_of(await report_of(connections, answer)).trace
    assert trace == Trace("req_1", "gpt-5.6-sol", 200, response_id="resp_1")
    answer = replying(error_body(code="odd"), 400, headers=named)
    trace = end_of(await report_of(connections, answer)).trace
    assert (trace.request_id, trace.status, trace.error.code) == ("req_1", 400, "odd")
