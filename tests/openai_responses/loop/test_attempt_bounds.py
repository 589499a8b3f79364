"""Servers without measure: the run ends with a message, and its text is kept."""

import pytest
from aiohttp import web

from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunDone
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from openai_responses.transport.stream import ItemDone
from runs.against_server import asking, end_of, report, report_of, simulated
from runs.log import answer_text
from simulator import Simulator
from upstream import wire
from upstream.server import Upstream, started, streaming

pytestmark = pytest.mark.asyncio

MEGABYTE = 1 << 20
TOO_LARGE = "sent more data than is accepted for one answer"


def small(weight: int = 2 * MEGABYTE, **timeouts: float) -> Limits:
    """Return limits that are soon reached."""
    return Limits(0.0, Timeouts(**timeouts), RetryPolicy(1), most_bytes=weight)


@pytest.mark.parametrize("kind", ["line", "comments", "lines", "events"])
async def test_stream_without_an_end(
    connections: Connections, sim: Simulator, kind: str
) -> None:
    """It is left; what was said before stays, and nothing is sent again."""
    request = asking(f"sim:chat,endless=60,of={kind} hello")
    events = await report(connections, simulated(sim), request, small())

    ending = end_of(events).ending
    assert ending.kind == "malformed"
    assert TOO_LARGE in ending.message
    assert answer_text(events).startswith("This is turn 1.")
    await sim.closed_early()
    assert len(sim.requests) == 1


async def test_drip_ends_at_the_total_limit(
    connections: Connections, sim: Simulator
) -> None:
    """Each byte is a sign of life, but what was chosen for the answer holds."""
    request = asking("sim:chat,endless=60,of=drip hello")
    within = small(idle=0.3, total=0.6)
    events = await report(connections, simulated(sim), request, within)

    assert end_of(events).ending.kind == "total_timeout"
    assert answer_text(events).startswith("This is turn 1.")
    await sim.closed_early()


@pytest.mark.parametrize(
    "piece",
    [b"data: ping\n\n", b"data:\n\n", b" \n", b'data: {"type": "x"\n\n'],
    ids=["words", "empty data", "white space", "broken JSON"],
)
async def test_garbage_without_an_end(connections: Connections, piece: bytes) -> None:
    """It is counted although it is left out."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        while True:
            await stream.write(piece * 1_000)

    async with Upstream(answer) as upstream:
        within = small(MEGABYTE // 4)._replace(retries=RetryPolicy(0))
        events = await report(connections, upstream.endpoint, within=within)
        assert len(upstream.requests) == 1
        await upstream.left.wait()
    assert TOO_LARGE in end_of(events).ending.message


async def test_weight_counts_values(connections: Connections) -> None:
    """Items of empty lists are small on the wire only."""
    item = {"type": "message", "content": [[]] * 100_000}
    text = wire.on_the_wire(*wire.whole_stream([wire.done(item)]))
    assert len(text) < MEGABYTE
    events = await report_of(connections, streaming(text), small())
    assert TOO_LARGE in end_of(events).ending.message


async def test_size_limit_counts_one_response(connections: Connections) -> None:
    """Each response of a run has its own, and a usual one is far from it."""
    stream = wire.whole_stream(wire.message(*["word "] * 2_000))
    text = wire.on_the_wire(*stream)
    for _ in range(2):
        events = await report_of(connections, streaming(text), small())
        assert isinstance(events[-1], RunDone)
        assert end_of(events).ending.kind == "completed"


async def test_resumed_response_has_one_limit(
    connections: Connections, sim: Simulator
) -> None:
    """A background response is counted over all its streams, and then cancelled."""
    request = asking("sim:long,deltas=3000,drop=1500,again=20 hello").model_copy(
        update={"background": True, "store": True}
    )
    limits = small(MEGABYTE // 2)._replace(poll_seconds=0.01)
    events = await report(connections, simulated(sim), request, limits)

    assert TOO_LARGE in end_of(events).ending.message
    await connections.close()
    assert sim.requests[-1].path.endswith("/cancel")


async def test_very_many_tiny_deltas(connections: Connections) -> None:
    """The text is whole; what is told depends on how often bytes came, not on deltas."""
    event_counts: list[int] = []
    for count in (5_000, 10_000):
        text = wire.on_the_wire(*wire.whole_stream(wire.message(*["x"] * count)))
        limits = small(64 * MEGABYTE)._replace(join_seconds=0.01)
        events = await report_of(connections, streaming(text), limits)

        assert answer_text(events) == "x" * count
        [done] = [event for event in events if isinstance(event, ItemDone)]
        assert done.item["content"][0]["text"] == "x" * count
        event_counts.append(len(events))
    assert max(event_counts) < 5_000 / 10
