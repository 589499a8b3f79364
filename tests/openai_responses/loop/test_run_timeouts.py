"""A run waits for as long as somebody chose, and for as long as something comes.

The limits pass by the clock of the tests, which stands still while something is done.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from openai_responses.transport.connections import Connections
from runs.against_server import end_of, limits, notes_of, report, report_of
from runs.log import log_of
from upstream import wire
from upstream.server import (
    Answerer,
    Upstream,
    in_turn,
    replying,
    silence,
    stalling,
    started,
)

pytestmark = pytest.mark.asyncio

BEGUN = wire.on_the_wire(wire.created(), *wire.message("Hello ", "world")[:3])
KEEPALIVE = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
COMMENT = b": still here\n\n"
WORDS: wire.Events = [
    *wire.message("Hello")[-1:],
    wire.completed(wire.message_item("Hello")),
]
END = wire.on_the_wire(*WORDS)
TICK = 0.03
IDLE = 0.3


def ticking(piece: bytes, times: int | None = None, before: bytes = BEGUN) -> Answerer:
    """Say something, then `piece` again and again, then the end of the answer."""

    async def pieces() -> AsyncIterator[bytes]:
        count = 0
        while times is None or count < times:
            yield piece
            count += 1

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(before)
        async for chunk in pieces():
            await asyncio.sleep(TICK)
            await stream.write(chunk)
        await stream.write(END)
        return stream

    return answer


SIGNS_OF_LIFE = {
    "events": KEEPALIVE,
    "comments": COMMENT,
    "empty lines": b"\n",
    "empty data": b"data:\n\n",
    "words": b"data: ping\n\n",
}


@pytest.mark.parametrize("before", [b""], ids=["from the start"])
@pytest.mark.parametrize("sign", SIGNS_OF_LIFE)
async def test_any_sign_of_life_ends_a_silence(
    connections: Connections, sign: str, before: bytes
) -> None:
    """A server that reads or thinks for long is cut off by no limit that no one set."""
    answer = ticking(SIGNS_OF_LIFE[sign], int(3 * IDLE / TICK), before)
    within = limits(retries=1, first_event=IDLE, idle=IDLE)
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, within=within)
        assert len(upstream.requests) == 1
    assert log_of(events)[-1] == "run completed"


async def test_white_space_before_a_whole_answer(connections: Connections) -> None:
    """Gateways keep a connection alive so for a client that does not stream."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = web.StreamResponse()
        body.content_type = "application/json"
        await body.prepare(request)
        for _ in range(int(3 * IDLE / TICK)):
            await asyncio.sleep(TICK)
            await body.write(b" \n")
        await body.write(json.dumps(WORDS[-1]["response"]).encode())
        return body

    events = await report_of(connections, answer, limits(first_event=IDLE, idle=IDLE))
    assert log_of(events)[-1] == "run completed"


@pytest.mark.parametrize(
    ("before", "kind"),
    [(BEGUN, "idle_timeout"), (b"", "first_event_timeout")],
    ids=["after words", "from the start"],
)
@pytest.mark.parametrize("sign", ["events", "comments"])
async def test_silence_after_signs_of_life(
    connections: Connections, sign: str, before: bytes, kind: str
) -> None:
    """The limit of the first event applies until there is one, then the other one."""
    piece = SIGNS_OF_LIFE[sign]
    if piece == KEEPALIVE:
        kind = "idle_timeout"
    first = kind == "first_event_timeout"
    within = limits(first_event=0.1 if first else 60, idle=60 if first else 0.1)
    async with asyncio.timeout(50):
        events = await report_of(connections, stalling(before + piece), within)
    assert log_of(events)[-1] == f"run {kind}"


@pytest.mark.parametrize("sign", ["events", "words"])
async def test_total_limit_ends_mere_signs_of_life(
    connections: Connections, sign: str
) -> None:
    within = limits(retries=1, first_event=IDLE, idle=IDLE, total=2 * IDLE)
    async with asyncio.timeout(60):
        events = await report_of(connections, ticking(SIGNS_OF_LIFE[sign]), within)
    assert log_of(events) == [
        "0 started message",
        "0 text 0: Hello ",
        "run total_timeout",
    ]


async def test_server_is_left(connections: Connections) -> None:
    """An answer that no one waits for is not computed."""
    async with Upstream(stalling(BEGUN)) as upstream, asyncio.timeout(60):
        await report(connections, upstream.endpoint, within=limits(idle=0.05))
        await upstream.left.wait()


@pytest.mark.parametrize(
    ("answer", "total", "kind"),
    [
        pytest.param(silence, 0.1, "total_timeout", id="it is over"),
        pytest.param(
            replying("", 503, headers={"Retry-After": "30"}),
            20.0,
            "refused",
            id="it ends before the wait that the server asks for",
        ),
    ],
)
async def test_total_leaves_no_time_for_another_attempt(
    connections: Connections, answer: Answerer, total: float, kind: str
) -> None:
    async with Upstream(answer) as upstream, asyncio.timeout(60):
        within = limits(retries=3, total=total)
        events = await report(connections, upstream.endpoint, within=within)
        assert len(upstream.requests) == 1
    assert log_of(events) == [f"run {kind}"]


async def test_total_over_two_attempts(connections: Connections) -> None:
    """The second one gets what the first one left."""
    busy = replying("", 503, headers={"Retry-After-Ms": "50"})
    async with asyncio.timeout(60):
        within = limits(retries=1, total=0.3)
        events = await report_of(connections, in_turn(busy, silence), within)
    assert len(notes_of(events)) == 1
    assert end_of(events).ending.kind == "total_timeout"
