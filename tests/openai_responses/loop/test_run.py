"""A whole request against a real server: its events, its ends, its limits of time."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from openai_responses.endings import COMPLETED, CUT
from openai_responses.endpoint import Endpoint
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunDone, RunEvent, Trace
from openai_responses.loop.run import run
from openai_responses.models.usage import Usage
from openai_responses.transport.connections import Connections
from runs.against_server import AT_ONCE, CANARY, Runs, asking, limits
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
    started,
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
    "turn ended",
    "run completed",
]


async def test_run_reports_events_then_output_and_usage(runs: Runs) -> None:
    told = await runs.against(streaming(wire.on_the_wire(*HELLO)))
    assert told.log == HELLO_LOG
    usage = Usage(30, 12, 42, 20, 4, 5)
    output = tuple(wire.items_of(HELLO))
    trace = Trace(model="gpt-5.6-sol", status=200, response_id="resp_1")
    assert told.end == RunDone(COMPLETED, usage, usage, output, trace, usages=(usage,))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            replying(json.dumps(HELLO[-1]["response"])), id="a server without streams"
        ),
        pytest.param(
            streaming(wire.on_the_wire(*HELLO).rstrip(b"\n")),
            id="a stream that is complete but for its last byte",
        ),
    ],
)
async def test_other_forms_tell_the_same(runs: Runs, answer: Answerer) -> None:
    assert (await runs.against(answer)).log == HELLO_LOG


@pytest.mark.parametrize(
    ("spec", "kind", "code"),
    [
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
    runs: Runs, sim: Simulator, spec: str, kind: str, code: str | None
) -> None:
    tool = {"type": "function", "name": "get_weather", "parameters": None}
    tools = {"tools": [{**tool, "strict": False}]}
    told = await runs.of(sim, asking(f"sim:{spec}").model_copy(update=tools))
    assert (told.kind, told.ending.code) == (kind, code)
    assert bool(told.ending.message) == (kind != "completed")


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
async def test_cut_stream_keeps_what_arrived(runs: Runs, answer: Any) -> None:
    """What arrived is kept, whether the stream just ends or the connection breaks."""
    first = wire.reasoning(["Hm"], at=0)
    text = wire.on_the_wire(*first, *wire.message("Hello", at=1)[:3])
    told = await runs.against(answer(text))
    assert told.log[-3:] == ["1 started message", "1 text 0: Hello", "run cut"]
    kept = tuple(wire.items_of(first))
    assert told.end == RunDone(CUT, None, None, kept, Trace(status=200))


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (200, "unreadable", "did not answer like the Responses API"),
        (400, "refused", "A firewall or proxy"),
        (500, "refused", "A gateway"),
    ],
)
async def test_page_says_that_the_api_did_not_answer(
    runs: Runs, status: int, kind: str, words: str
) -> None:
    """Its title is for administrators alone."""
    page = f"<html><title>{CANARY}</title></html>"
    told = await runs.against(replying(page, status, content_type="text/html"))
    assert told.kind == kind
    assert words in told.ending.message
    assert told.end.trace.error.message == (CANARY if status >= 400 else "")


@pytest.mark.parametrize(
    "event",
    [
        wire.ended("failed", error={"code": CANARY, "message": CANARY}),
        wire.error_flat(CANARY, CANARY),
        wire.ended("incomplete", incomplete_details={"reason": CANARY}),
    ],
)
async def test_secrets_in_events(runs: Runs, event: wire.Event) -> None:
    ending = (await runs.against(streaming(wire.on_the_wire(event)))).ending
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
    runs: Runs, base_url: str, kind: str, words: str
) -> None:
    told = await runs.at(Endpoint(base_url, CANARY))
    assert told.log == [f"run {kind}"]
    assert words in told.ending.message
    assert CANARY not in repr(told.events)


async def test_trace_identifies_response_and_refusal(runs: Runs) -> None:
    named = {"x-request-id": "req_1"}
    answer = replying(json.dumps(HELLO[-1]["response"]), headers=named)
    trace = (await runs.against(answer)).end.trace
    assert trace == Trace("req_1", "gpt-5.6-sol", 200, response_id="resp_1")

    key = "a-key-of-no-known-form-0123456789"
    notice = {"misalignment": {"detailed_explanation": f"It read {key}."}}
    error = {"message": CANARY, "code": "invalid_value", "param": "input[0]", **notice}
    headers = {**named, "Retry-After": "60"}
    answer = replying(json.dumps({"error": error}), 400, headers=headers)
    end = (await runs.against(answer, api_key=key)).end
    assert "explains: “It read " in end.ending.message
    assert key not in end.ending.message
    trace = end.trace
    assert (trace.request_id, trace.status, trace.retry_after) == ("req_1", 400, 60)
    assert trace.error.code == "invalid_value"
    assert trace.subject == "input[0] (message):"


BEGUN = wire.on_the_wire(wire.created(), *wire.message("Hello ", "world")[:3])
WORDS = [*wire.message("Hello")[-1:], wire.completed(wire.message_item("Hello"))]
TICK = 0.03
IDLE = 0.3


async def tick(stream: web.StreamResponse, piece: bytes, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(TICK)
        await stream.write(piece)


def ticking(piece: bytes, times: int, before: bytes = b"") -> Answerer:
    """Say something, then `piece` so often, then the end of the answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(before)
        await tick(stream, piece, times)
        await stream.write(wire.on_the_wire(*WORDS))
        return stream

    return answer


TICKS = int(3 * IDLE / TICK)
KEEPALIVE = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
COMMENT = b": still here\n\n"
PING = b"data: ping\n\n"


@pytest.mark.parametrize("sign", [KEEPALIVE, COMMENT, b"\n", b"data:\n\n", PING])
async def test_any_sign_of_life_ends_a_silence(runs: Runs, sign: bytes) -> None:
    """A server that reads or thinks for long is cut off by no limit that no one set."""
    within = limits(retries=1, first_event=IDLE, idle=IDLE)
    told = await runs.against(ticking(sign, TICKS), within=within)
    assert (told.kind, len(told.sent)) == ("completed", 1)


async def test_white_space_before_a_whole_answer(runs: Runs) -> None:
    """Gateways keep a connection alive so for a client that does not stream."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = web.StreamResponse()
        body.content_type = "application/json"
        await body.prepare(request)
        await tick(body, b" \n", TICKS)
        await body.write(json.dumps(WORDS[-1]["response"]).encode())
        return body

    told = await runs.against(answer, within=limits(first_event=IDLE, idle=IDLE))
    assert told.kind == "completed"


@pytest.mark.parametrize(
    ("said", "timeouts", "kind"),
    [
        (BEGUN + KEEPALIVE, {"first_event": 60, "idle": 0.1}, "idle_timeout"),
        (BEGUN + COMMENT, {"first_event": 60, "idle": 0.1}, "idle_timeout"),
        (KEEPALIVE, {"first_event": 60, "idle": 0.1}, "idle_timeout"),
        (COMMENT, {"first_event": 0.1, "idle": 60}, "first_event_timeout"),
    ],
)
async def test_silence_after_signs_of_life(
    runs: Runs, said: bytes, timeouts: dict[str, Any], kind: str
) -> None:
    """The limit of the first event applies until there is one, then the other one."""
    async with asyncio.timeout(50):
        told = await runs.against(stalling(said), within=limits(**timeouts))
    assert told.kind == kind


@pytest.mark.parametrize("sign", [KEEPALIVE, PING])
async def test_total_limit_ends_mere_signs_of_life(runs: Runs, sign: bytes) -> None:
    within = limits(retries=1, first_event=IDLE, idle=IDLE, total=2 * IDLE)
    async with asyncio.timeout(60):
        endless = ticking(sign, 1_000_000, before=BEGUN)
        told = await runs.against(endless, within=within)
    shown = ["0 started message", "0 text 0: Hello "]
    assert told.log == [*shown, "run total_timeout"]


@pytest.mark.parametrize(
    ("answer", "total", "kind"),
    [
        (silence, 0.1, "total_timeout"),
        # It ends before the wait that the server asks for.
        (replying("", 503, headers={"Retry-After": "30"}), 20.0, "refused"),
    ],
)
async def test_total_leaves_no_time_for_another_attempt(
    runs: Runs, answer: Answerer, total: float, kind: str
) -> None:
    async with asyncio.timeout(60):
        told = await runs.against(answer, within=limits(retries=3, total=total))
    assert (len(told.sent), told.log) == (1, [f"run {kind}"])


async def test_total_over_two_attempts(runs: Runs) -> None:
    """The second one gets what the first one left."""
    busy = replying("", 503, headers={"Retry-After-Ms": "50"})
    async with asyncio.timeout(60):
        within = limits(retries=1, total=0.3)
        told = await runs.against(busy, silence, within=within)
    assert (len(told.notes), told.kind) == (1, "total_timeout")
