"""A whole request against a real server, from the first byte to the last event."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

import wire_events as wire
from openai_responses.endings import COMPLETED, CUT
from openai_responses.endpoint import Endpoint
from openai_responses.exchange import Limits
from openai_responses.request import ResponsesRequest
from openai_responses.run import run
from openai_responses.run_events import Grew, RunEnded, RunEvent, TurnEnded, joined
from openai_responses.transport import Connections
from openai_responses.usage import Usage
from run_log import log_of
from simulator import Simulator
from upstream import (
    Answerer,
    Upstream,
    breaking,
    replying,
    stalling,
    started,
    streaming,
    until,
)

pytestmark = pytest.mark.asyncio

CANARY = "sk-proj-CANARY123"
AT_ONCE = Limits(join_seconds=0.0)

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


def asking(said: str = "Hi", stream: bool = True) -> ResponsesRequest:
    """Return a request that says this."""
    items = [{"role": "user", "content": said}]
    return ResponsesRequest(model="gpt-5.6-sol", input=items, stream=stream)


async def report(
    connections: Connections,
    endpoint: Endpoint,
    request: ResponsesRequest | None = None,
    limits: Limits = AT_ONCE,
) -> list[RunEvent]:
    """Return what a run reports; its last event, and only that, says how it ended."""
    events = [e async for e in run(request or asking(), endpoint, connections, limits)]
    assert [isinstance(e, RunEnded) for e in events] == [False] * (len(events) - 1) + [
        True
    ]
    assert CANARY not in repr(events[-1])
    return events


async def report_of(connections: Connections, answer: Answerer) -> list[RunEvent]:
    """Return what a run reports against a server that answers so."""
    async with Upstream(answer) as upstream:
        return await report(connections, upstream.endpoint)


def end_of(events: list[RunEvent]) -> RunEnded:
    """Return the last event of a run."""
    assert isinstance(events[-1], RunEnded)
    return events[-1]


@pytest_asyncio.fixture
async def sim() -> AsyncIterator[Simulator]:
    """Return a strict server."""
    async with Simulator() as simulator:
        yield simulator


async def test_stream(connections: Connections) -> None:
    """Events come in order, deltas joined, the items and the usage at the end."""
    events = await report_of(connections, streaming(wire.on_the_wire(*HELLO)))
    assert log_of(events) == HELLO_LOG
    usage = Usage(30, 12, 42, 20, 4, 5)
    output = tuple(wire.items_of(HELLO))
    assert end_of(events) == RunEnded(COMPLETED, usage, usage, output)


async def test_stream_byte_by_byte(connections: Connections) -> None:
    """A slow network changes only how often it is told."""
    text = wire.on_the_wire(*HELLO)
    chunks = [text[place : place + 1] for place in range(len(text))]
    events = await report_of(connections, streaming(*chunks))
    assert log_of(joined(events)) == HELLO_LOG


async def test_json_answer_to_a_stream_request(connections: Connections) -> None:
    """A server that does not stream tells the same."""
    body = json.dumps(HELLO[-1]["response"])
    events = await report_of(connections, replying(body))
    assert log_of(events) == HELLO_LOG


async def test_request_that_is_not_streamed(
    connections: Connections, sim: Simulator
) -> None:
    """The same server tells the same both ways."""
    endpoint = Endpoint(sim.base_url, sim.api_key)
    streamed, whole = [
        await report(connections, endpoint, asking("sim:short", stream=stream))
        for stream in (True, False)
    ]
    assert [r.body["stream"] for r in sim.requests] == [True, False]
    assert log_of(whole) == log_of(joined(streamed))


@pytest.mark.parametrize(
    ("spec", "kind", "code"),
    [
        ("chat", "completed", None),
        ("chat,crlf,comments", "completed", None),
        ("chat,chunks=random,nameless,done", "completed", None),
        ("parallel,unknown,keepalive=3", "completed", None),
        ("big-line", "completed", None),
        ("incomplete", "incomplete", "max_output_tokens"),
        ("filtered", "incomplete", "content_filter"),
        ("failed", "failed", "server_error"),
        ("failed-limit", "failed", "rate_limit_exceeded"),
        ("error-nested", "error", "server_error"),
        ("error-flat", "error", "server_error"),
        ("error-first", "error", "server_is_overloaded"),
        ("cut", "cut", None),
        ("drop", "cut", None),
        ("html-200", "refused", None),
        ("html-error", "refused", None),
    ],
)
async def test_scenarios(
    connections: Connections, sim: Simulator, spec: str, kind: str, code: str | None
) -> None:
    """Every way to end is told, with a sentence unless all went well."""
    tools = [
        {"type": "function", "name": "get_weather", "parameters": None, "strict": False}
    ]
    request = asking(f"sim:{spec}").model_copy(update={"tools": tools})
    events = await report(connections, Endpoint(sim.base_url, sim.api_key), request)
    ending = end_of(events).ending
    assert (ending.kind, ending.code) == (kind, code)
    assert bool(ending.sentence) == (kind != "completed")


async def test_many_runs_share_one_connection(connections: Connections) -> None:
    """Twenty streams in a row need one, also when their ends come a little late."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(wire.on_the_wire(*HELLO))
        await asyncio.sleep(0.005)
        return stream

    async with Upstream(answer) as upstream:
        for _ in range(20):
            await report(connections, upstream.endpoint)
        assert len(upstream.requests) == 20
        assert len(upstream.connections) == 1


async def test_run_after_an_idle_while() -> None:
    """A session that was closed meanwhile is opened again; nothing is left over."""
    connections = Connections(idle_seconds=0.01)
    async with Upstream(streaming(wire.on_the_wire(*HELLO))) as upstream:
        before = asyncio.all_tasks()
        for _ in range(2):
            events = await report(connections, upstream.endpoint)
            assert end_of(events).ending == COMPLETED
            await until(lambda: upstream.open_connections == 0)
            await until(lambda: asyncio.all_tasks() == before)
        await connections.close()  # nothing is left to do


UNFINISHED = wire.numbered([wire.created(), *wire.message("Hello ", "world")[:3]])


async def test_abandoned_run(connections: Connections) -> None:
    """Closing the generator after its first event closes the connection."""
    async with Upstream(stalling(wire.on_the_wire(*UNFINISHED))) as upstream:
        events = run(asking(), upstream.endpoint, connections, Limits())
        async with aclosing(events):
            assert log_of([await anext(events)]) == ["0 started message"]
        async with asyncio.timeout(1):
            await upstream.left.wait()


async def test_cancelled_run(connections: Connections) -> None:
    """A cancelled task ends within a second, with its connection."""
    shown: list[RunEvent] = []

    async def watch(endpoint: Endpoint) -> None:
        async for event in run(asking(), endpoint, connections, AT_ONCE):
            shown.append(event)

    async with Upstream(stalling(wire.on_the_wire(*UNFINISHED))) as upstream:
        task = asyncio.create_task(watch(upstream.endpoint))
        await until(lambda: len(shown) == 2)
        task.cancel()
        async with asyncio.timeout(1):
            with pytest.raises(asyncio.CancelledError):
                await task
            await upstream.left.wait()
    assert log_of(shown) == ["0 started message", "0 text 0: Hello "]


async def test_run_that_is_cancelled_before_the_answer(
    connections: Connections,
) -> None:
    """The same while the server has not said a word."""

    async def answer(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    async with Upstream(answer) as upstream:
        task = asyncio.create_task(report(connections, upstream.endpoint))
        await until(lambda: len(upstream.requests) == 1)
        task.cancel()
        async with asyncio.timeout(1):
            with pytest.raises(asyncio.CancelledError):
                await task
            await upstream.left.wait()


@pytest.mark.parametrize("answer", [streaming, breaking])
async def test_cut_stream(connections: Connections, answer: Any) -> None:
    """What arrived is kept, whether the stream just ends or the connection breaks."""
    first, second = wire.reasoning(["Hm"], at=0), wire.message("Hello", at=1)[:3]
    text = wire.on_the_wire(*first, *second)
    events = await report_of(connections, answer(text))
    assert log_of(events)[-3:] == [
        "1 started message",
        "1 text 0: Hello",
        "run cut",
    ]
    assert end_of(events) == RunEnded(CUT, None, None, tuple(wire.items_of(first)))


async def test_stream_that_ends_before_it_began(connections: Connections) -> None:
    """Nothing arrived, and that is told too."""
    events = await report_of(connections, streaming())
    assert log_of(events) == ["run cut"]
    events = await report_of(connections, breaking(wire.on_the_wire(wire.created())))
    assert log_of(events) == ["run refused"]
    assert "broke" in end_of(events).ending.sentence


async def test_last_event_without_a_blank_line(connections: Connections) -> None:
    """A stream that is complete but for its last byte is no cut one."""
    text = wire.on_the_wire(*HELLO).rstrip(b"\n")
    events = await report_of(connections, streaming(text))
    assert log_of(events) == HELLO_LOG


async def test_message_that_was_never_announced(connections: Connections) -> None:
    """Its text is shown although the stream was cut."""
    text = wire.on_the_wire(wire.text_delta("Hello"))
    events = await report_of(connections, streaming(text))
    assert log_of(events) == ["0 started message", "0 text 0: Hello", "run cut"]


@pytest.mark.parametrize(
    "broken", [b"data: {no json\n\n", b'data: {"type":"response.completed"}\n\n']
)
@pytest.mark.parametrize("together", [True, False])
async def test_malformed_event(
    connections: Connections, broken: bytes, together: bool
) -> None:
    """What came before it is shown and kept; what comes after it is not read."""
    before = wire.on_the_wire(*wire.message("Hello", at=0))
    after = wire.on_the_wire(*wire.message("More", at=1), wire.completed())
    chunks = [before, broken, after]
    answer = streaming(b"".join(chunks)) if together else streaming(*chunks)
    events = await report_of(connections, answer)
    assert log_of(events)[-3:] == ["0 text 0: Hello", "0 ended message", "run cut"]
    assert len(end_of(events).output) == 1


async def test_malformed_event_at_the_start(connections: Connections) -> None:
    """Nothing was shown yet: the sentence says what is wrong."""
    events = await report_of(connections, streaming(b"data: {no json\n\n"))
    assert "not JSON" in end_of(events).ending.sentence


async def test_events_after_the_end(connections: Connections) -> None:
    """They are read off the connection, and mean nothing."""
    late = wire.on_the_wire(*wire.message("More", at=2), wire.error_flat("late"))
    text = wire.on_the_wire(*HELLO)
    for answer in (streaming(text + late), streaming(text, late)):
        assert log_of(await report_of(connections, answer)) == HELLO_LOG


def error_body(**fields: str) -> str:
    """Return an error body that holds a secret wherever it can."""
    error = {"message": CANARY, "code": CANARY, "type": CANARY, "param": CANARY}
    return json.dumps({"error": {**error, **fields}})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (replying(error_body(), 401), "does not accept the API key"),
        (replying(error_body(), 403), "may not use gpt-5.6-sol"),
        (replying(error_body(code="model_not_found"), 404), "does not exist"),
        (replying(error_body(), 429), "rate limit"),
        (replying(error_body(), 500), "(HTTP 500)"),
        (replying(error_body(), 503), "overloaded"),
        (replying(error_body(), 400), "refused the request with HTTP 400."),
        (replying(f"<html>{CANARY}</html>", 502, "text/html"), "(HTTP 502)"),
        (replying("", 500), "(HTTP 500)"),
        (replying(f"<html>{CANARY}</html>", 200, "text/html"), "not as the Responses"),
        (replying(error_body(), 200), "(HTTP 500)"),
    ],
)
async def test_refusals(connections: Connections, answer: Answerer, words: str) -> None:
    """A refusal is an ending, with a sentence that holds nothing of the server."""
    events = await report_of(connections, answer)
    assert log_of(events) == ["run refused"]
    assert words in end_of(events).ending.sentence
    assert CANARY not in repr(events)


@pytest.mark.parametrize(
    "event",
    [
        wire.ended("failed", error={"code": CANARY, "message": CANARY}),
        wire.error_flat(CANARY, CANARY),
        wire.error_nested(CANARY, CANARY, type=CANARY),
        wire.ended("incomplete", incomplete_details={"reason": CANARY}),
    ],
)
async def test_secrets_in_events(connections: Connections, event: wire.Event) -> None:
    """Nothing that a server says of an error reaches the end of a run."""
    events = await report_of(connections, streaming(wire.on_the_wire(event)))
    ending = end_of(events).ending
    assert ending.is_failure
    assert CANARY not in repr(events)


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("nowhere", "BASE_URL is not an http"),
        (f"http://user:{CANARY}@127.0.0.1/v1", "user name or a password"),
        ("http://127.0.0.1:1/v1", "127.0.0.1 cannot be reached"),
    ],
)
async def test_address_that_does_not_work(
    connections: Connections, base_url: str, words: str
) -> None:
    """That is an ending as well."""
    events = await report(connections, Endpoint(base_url, CANARY))
    assert log_of(events) == ["run refused"]
    assert words in end_of(events).ending.sentence


class Teller:
    """A server that says the next thing when it is told to."""

    def __init__(self) -> None:
        self._next: asyncio.Queue[bytes | None] = asyncio.Queue()

    def say(self, *events: wire.Event) -> None:
        """Send each of these events in a chunk of its own."""
        for event in events:
            self._next.put_nowait(wire.on_the_wire(event))

    def stop(self) -> None:
        """End the body."""
        self._next.put_nowait(None)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Be the server."""
        stream = await started(request)
        while (chunk := await self._next.get()) is not None:
            await stream.write(chunk)
            await asyncio.sleep(0.005)  # so that the client may read it
        return stream


@pytest.mark.parametrize(
    ("announced", "grow", "kind", "seconds"),
    [
        (wire.message_item(), wire.text_delta, "text", 0.5),
        (
            wire.reasoning_item(),
            lambda text: {
                "type": "response.reasoning_summary_text.delta",
                "output_index": 0,
                "summary_index": 0,
                "delta": text,
            },
            "summary",
            2.5,  # reasoning waits for a fifth of it
        ),
    ],
)
async def test_deltas_are_joined_by_time(
    connections: Connections, announced: wire.Item, grow: Any, kind: str, seconds: float
) -> None:
    """The first delta is shown at once; those of a moment are shown together."""
    teller = Teller()
    teller.say(wire.added(announced), grow("one "))
    async with Upstream(teller.answer) as upstream, asyncio.timeout(5):
        limits = Limits(join_seconds=seconds)
        events = run(asking(), upstream.endpoint, connections, limits)
        async with aclosing(events):
            assert log_of([await anext(events), await anext(events)])[1:] == [
                f"0 {kind} 0: one "
            ]
            teller.say(*(grow(f"{number} ") for number in range(2, 12)))
            assert log_of([await anext(events)]) == [
                f"0 {kind} 0: " + "".join(f"{number} " for number in range(2, 12))
            ]
            teller.say(wire.completed())
            teller.stop()
            rest = [event async for event in events]
    assert log_of(rest)[-2:] == ["turn completed", "run completed"]


async def test_deltas_are_not_joined_without_a_window(
    connections: Connections,
) -> None:
    """A join time of nothing shows each chunk as it comes."""
    teller = Teller()
    async with Upstream(teller.answer) as upstream, asyncio.timeout(5):
        events = run(asking(), upstream.endpoint, connections, AT_ONCE)
        async with aclosing(events):
            teller.say(wire.added(wire.message_item()))
            await anext(events)
            for number in range(20):
                teller.say(wire.text_delta(f"{number} "))
                assert log_of([await anext(events)]) == [f"0 text 0: {number} "]


@pytest.mark.parametrize("count", [2000, 4000])
async def test_work_is_linear(connections: Connections, count: int) -> None:
    """Each character is yielded once, in no more events than deltas came."""
    pieces = [f"word{number:05} " for number in range(count)]
    text = wire.on_the_wire(*wire.whole_stream(wire.message(*pieces)))
    chunks = [text[place : place + 1000] for place in range(0, len(text), 1000)]
    events = await report_of(connections, streaming(*chunks))
    grown = [event.text for event in events if isinstance(event, Grew)]
    assert "".join(grown) == "".join(pieces)
    assert sum(map(len, grown)) == count * len(pieces[0])
    assert len(grown) <= count
    assert len(events) <= count + 4


async def test_long_answer_of_the_simulator(
    connections: Connections, sim: Simulator
) -> None:
    """Joining by time makes few events of many deltas."""
    endpoint = Endpoint(sim.base_url, sim.api_key)
    request = asking("sim:long,deltas=2000")
    events = await report(connections, endpoint, request, Limits())
    shown = [e for e in events if isinstance(e, Grew) and e.kind == "text"]
    assert len("".join(event.text for event in shown).split()) == 2000
    assert len(shown) < 1000
    assert any(isinstance(event, TurnEnded) for event in events)
