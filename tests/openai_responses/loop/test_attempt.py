"""One attempt: what is sent, what its answer tells a turn, and how much may come."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, aclosing
from typing import Any

import pytest
from aiohttp import web

from openai_responses.causes import MISALIGNMENT
from openai_responses.endpoint import Compatibility, Endpoint
from openai_responses.errors import ConnectionFailed
from openai_responses.loop.attempt import Attempt, Limits, PageThought, Server
from openai_responses.loop.response import MAX_ITEMS
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest, strict_payload
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections, HttpResponse
from openai_responses.transport.deadlines import Deadlines, Timeouts
from openai_responses.transport.stream import ItemAdded, ItemDone, ServerSentEvent
from runs.against_server import AT_ONCE, Runs, asking, end_of, report
from runs.log import log_of
from simulator import Simulator
from upstream import wire
from upstream.server import Upstream, breaking, started, streaming, until

pytestmark = pytest.mark.asyncio

HELLO = wire.on_the_wire(*wire.whole_stream(wire.message("Hello")))


def one_attempt(
    connections: Connections, endpoint: Endpoint, within: Limits = AT_ONCE
) -> Attempt:
    deadlines = Deadlines(within.timeouts)
    server = Server(endpoint, connections, within, deadlines)
    return Attempt(server, asking(), PageThought())


async def log_of_attempt(tried: Attempt) -> list[str]:
    return log_of([event async for event in tried.events()])


async def test_break_behind_many_events(connections: Connections) -> None:
    pieces = [f"{number} " for number in range(200)]
    text = wire.on_the_wire(*wire.message(*pieces)[:-3])
    async with Upstream(breaking(text)) as upstream:
        tried = one_attempt(connections, upstream.endpoint, Limits(join_seconds=0.05))
        log = await log_of_attempt(tried)
    assert "".join(line.partition(": ")[2] for line in log[1:]) == "".join(pieces)
    assert isinstance(tried.error, ConnectionFailed)


@pytest.mark.parametrize("compatibility", ["auto", "strict"])
async def test_payload_is_sent_in_the_servers_form(
    runs: Runs, compatibility: Compatibility
) -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    items: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}, thought]
    request = ResponsesRequest(model="m", input=items, prompt_cache_key="k")
    told = await runs.against(
        streaming(HELLO), request=request, compatibility=compatibility
    )
    payload = request.payload()
    strict = compatibility == "strict"
    assert told.sent == [strict_payload(payload) if strict else payload]
    assert ("prompt_cache_key" in told.sent[0]) == (not strict)


async def test_rest_of_the_body_is_read(connections: Connections) -> None:
    """What follows the last event is, so that the connection lives on."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(HELLO)
        await asyncio.sleep(0.02)
        await stream.write(b"data: [DONE]\n\n")
        return stream

    async with Upstream(answer) as upstream:
        for _ in range(3):
            assert await report(connections, upstream.endpoint)
        assert len(upstream.connections) == 1


async def test_each_attempt_has_the_time_for_a_first_event(
    connections: Connections,
) -> None:
    """What an earlier attempt left of it does not count."""
    within = Limits(0.0, Timeouts(first_event=60.0, idle=0.0))
    async with Upstream(streaming(HELLO)) as upstream:
        tried = one_attempt(connections, upstream.endpoint, within)
        tried.server.deadlines.event_arrived()
        assert (await log_of_attempt(tried))[-1] == "turn ended"


class Teller:
    """A server that says the next thing when it is told to."""

    def __init__(self) -> None:
        self._next: asyncio.Queue[bytes | None] = asyncio.Queue()

    def say(self, *events: wire.Event) -> None:
        """Send each of these events in a chunk of its own."""
        for event in events:
            self._next.put_nowait(wire.on_the_wire(event))

    def stop(self) -> None:
        self._next.put_nowait(None)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        while (chunk := await self._next.get()) is not None:
            await stream.write(chunk)
            await asyncio.sleep(0.005)  # so that the client may read it
        return stream


def delta_of(kind: str, **place: int) -> Callable[[str], wire.Event]:
    """Return what makes deltas of a kind."""
    return lambda text: {
        "type": f"response.{kind}.delta",
        "output_index": 0,
        **place,
        "delta": text,
    }


@pytest.mark.parametrize(
    ("announced", "grow", "kind", "seconds"),
    [
        (wire.message_item(), wire.text_delta, "text", 0.5),
        (
            wire.reasoning_item(),
            delta_of("reasoning_summary_text", summary_index=0),
            "summary",
            5,  # reasoning waits for a fiftieth of it
        ),
        (wire.message_item(), delta_of("refusal", content_index=0), "refusal", 0.5),
    ],
)
async def test_deltas_are_joined_by_time(
    connections: Connections, announced: wire.Item, grow: Any, kind: str, seconds: float
) -> None:
    now = asyncio.get_running_loop().time
    teller = Teller()
    teller.say(wire.added(announced), grow("one "))
    async with Upstream(teller.answer) as upstream, asyncio.timeout(60):
        within = Limits(join_seconds=seconds)
        events = run(asking(), upstream.endpoint, connections, within)
        async with aclosing(events):
            first = log_of([await anext(events), await anext(events)])
            assert first[1:] == [f"0 {kind} 0: one "]
            # A short answer may be over: after the first delta of a text the wait is short.
            teller.say(grow("two "))
            assert log_of([await anext(events)]) == [f"0 {kind} 0: two "]
            teller.say(*(grow(f"{number} ") for number in range(2, 12)))
            more = "".join(f"{number} " for number in range(2, 12))
            began = now()
            assert log_of([await anext(events)]) == [f"0 {kind} 0: {more}"]
            assert now() - began > 0.09
            teller.say(wire.completed())
            teller.stop()
            rest = [event async for event in events]
    assert log_of(rest)[-1:] == ["run completed"]


@pytest.mark.parametrize(
    ("others", "kind", "seconds"),
    [
        (7, "text", 1.0),
        (15, "text", 2.0),
        (79, "text", 8.0),
        (7, "summary", 0.02),
        (15, "summary", 1.0),
    ],
)
async def test_deltas_of_a_crowd_are_joined_for_longer(
    connections: Connections, others: int, kind: str, seconds: float
) -> None:
    """What a host does with each of them is what a busy process has no time for."""
    now = asyncio.get_running_loop().time
    announced, grow = {
        "text": (wire.message_item(), wire.text_delta),
        "summary": (
            {"type": "reasoning", "id": "rs_1"},
            delta_of("reasoning_summary_text", summary_index=0),
        ),
    }[kind]
    teller = Teller()
    teller.say(wire.added(announced), grow("one "))
    silent = Teller()
    async with Upstream(teller.answer) as upstream, Upstream(silent.answer) as crowded:
        within = Limits(join_seconds=1.0)
        crowd = [
            asyncio.ensure_future(
                anext(run(asking(), crowded.endpoint, connections, within))
            )
            for _ in range(others)
        ]
        await until(lambda: len(crowded.requests) == others)
        events = run(asking(), upstream.endpoint, connections, within)
        async with aclosing(events):
            await anext(events)
            await anext(events)
            teller.say(grow("two "))
            await anext(events)
            teller.say(grow("three "))
            began = now()
            assert log_of([await anext(events)]) == [f"0 {kind} 0: three "]
            assert now() - began == pytest.approx(seconds, abs=0.2 * seconds)
            teller.stop()
        for other in crowd:
            other.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)


async def test_slow_deltas_are_not_waited_for(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer for each of them would join none; faster ones are joined again."""
    waits: list[object] = []
    paused = HttpResponse.paused

    def counted(answer: HttpResponse) -> AbstractContextManager[None]:
        waits.append(answer)
        return paused(answer)

    monkeypatch.setattr(HttpResponse, "paused", counted)
    teller = Teller()
    teller.say(wire.added(wire.message_item()), wire.text_delta("one "))
    async with Upstream(teller.answer) as upstream, asyncio.timeout(60):
        events = run(asking(), upstream.endpoint, connections, Limits(join_seconds=0.5))
        async with aclosing(events):
            assert log_of([await anext(events), await anext(events)])
            assert not waits
            for number, word in enumerate(("two ", "three ", "four ")):
                shown = asyncio.ensure_future(anext(events))
                await asyncio.sleep(1.2)
                assert not shown.done()
                teller.say(wire.text_delta(word))
                assert log_of([await shown]) == [f"0 text 0: {word}"]
                assert len(waits) == 1, number  # after the first delta
            teller.say(wire.text_delta("five "))
            assert log_of([await anext(events)]) == ["0 text 0: five "]
            teller.say(wire.text_delta("six "), wire.text_delta("seven "))
            assert log_of([await anext(events)]) == ["0 text 0: six seven "]
            assert len(waits) == 2
            teller.stop()


async def test_nothing_of_the_wire_is_held_while_deltas_gather(
    connections: Connections,
) -> None:
    """Two hundred streams that wait would hold what each of them has read already."""
    teller = Teller()
    teller.say(wire.added(wire.message_item()), wire.text_delta("a word of its own"))
    async with Upstream(teller.answer) as upstream, asyncio.timeout(60):
        events = run(asking(), upstream.endpoint, connections, Limits())
        async with aclosing(events):
            await anext(events)
            shown = await anext(events)
            held = [
                event for event in gc.get_objects() if type(event) is ServerSentEvent
            ]
            assert log_of([shown]) == ["0 text 0: a word of its own"]
            assert not [event for event in held if "a word of its own" in event.data]
            teller.stop()


async def test_deltas_are_not_joined_without_a_window(
    connections: Connections,
) -> None:
    teller = Teller()
    async with Upstream(teller.answer) as upstream, asyncio.timeout(60):
        events = run(asking(), upstream.endpoint, connections, AT_ONCE)
        async with aclosing(events):
            teller.say(wire.added(wire.message_item()), wire.text_delta("first"))
            # Nothing is shown before there is something to see.
            shown = [await anext(events), await anext(events)]
            assert log_of(shown) == ["0 started message", "0 text 0: first"]
            for number in range(20):
                teller.say(wire.text_delta(f"{number} "))
                assert log_of([await anext(events)]) == [f"0 text 0: {number} "]


MEGABYTE = 1 << 20
TOO_LARGE = "sent more data than is accepted for one answer"


def small(weight: int = 2 * MEGABYTE, **timeouts: float) -> Limits:
    return Limits(0.0, Timeouts(**timeouts), RetryPolicy(1), most_bytes=weight)


@pytest.mark.parametrize(
    ("kind", "within", "ending"),
    [
        *((kind, small(), "malformed") for kind in ("line", "comments", "lines")),
        ("events", small(), "malformed"),
        # Each byte is a sign of life, but what was chosen for the answer holds.
        ("drip", small(idle=0.3, total=0.6), "total_timeout"),
    ],
)
async def test_stream_without_an_end(
    runs: Runs, sim: Simulator, kind: str, within: Limits, ending: str
) -> None:
    told = await runs.of(sim, f"sim:chat,endless=60,of={kind} hello", within)

    assert told.kind == ending
    assert (TOO_LARGE in told.ending.message) == (ending == "malformed")
    assert told.text.startswith("This is turn 1.")
    await sim.closed_early()
    assert len(sim.requests) == 1


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


async def test_weight_counts_values(runs: Runs) -> None:
    """Items of empty lists are small on the wire only."""
    item = {"type": "message", "content": [[]] * 100_000}
    text = wire.on_the_wire(*wire.whole_stream([wire.done(item)]))
    assert len(text) < MEGABYTE
    told = await runs.against(streaming(text), within=small())
    assert TOO_LARGE in told.ending.message


def searches(count: int) -> list[wire.Item]:
    """So many items, of which each is small."""
    return [
        {"type": "web_search_call", "id": f"ws_{n}", "status": "completed"}
        for n in range(count)
    ]


def deltas_of(items: list[wire.Item]) -> wire.Events:
    """A text for each of them, which opens a message of its own."""
    return [
        {**wire.text_delta("x", at=at), "item_id": str(item["id"])}
        for at, item in enumerate(items)
    ]


FORMS: dict[str, Callable[[list[wire.Item]], bytes]] = {
    "events": lambda items: wire.on_the_wire(
        *wire.whole_stream([wire.done(item, at) for at, item in enumerate(items)])
    ),
    "deltas": lambda items: wire.on_the_wire(*deltas_of(items)),
    "a snapshot": lambda items: wire.on_the_wire(
        wire.created(),
        wire.completed(*items),
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_items_without_an_end(form: str, runs: Runs) -> None:
    """The host looks through all items of a message for each event of one."""
    items = searches(MAX_ITEMS + 1)

    told = await runs.against(streaming(FORMS[form](items)))

    assert TOO_LARGE in told.ending.message
    assert len(told.of(ItemAdded)) <= MAX_ITEMS
    assert len(told.requests) == 1
    usual = await runs.against(streaming(FORMS["a snapshot"](items[:-1])))
    assert TOO_LARGE not in usual.ending.message


async def test_size_limit_counts_one_response(runs: Runs) -> None:
    """Each response of a run has its own, and a usual one is far from it."""
    stream = wire.whole_stream(wire.message(*["word "] * 2_000))
    text = wire.on_the_wire(*stream)
    for _ in range(2):
        told = await runs.against(streaming(text), within=small())
        assert told.kind == "completed"


async def test_resumed_response_has_one_limit(runs: Runs, sim: Simulator) -> None:
    """A background response is counted over all its streams, and then cancelled."""
    request = asking("sim:long,deltas=3000,drop=1500,again=20 hello").model_copy(
        update={"background": True, "store": True}
    )
    limits = small(MEGABYTE // 2)._replace(poll_seconds=0.01)
    told = await runs.of(sim, request, limits)

    assert TOO_LARGE in told.ending.message
    await runs.connections.close()
    assert sim.requests[-1].path.endswith("/cancel")


async def test_very_many_tiny_deltas(runs: Runs) -> None:
    """The text is whole; what is told depends on how often bytes came, not on deltas."""
    event_counts: list[int] = []
    for count in (5_000, 10_000):
        text = wire.on_the_wire(*wire.whole_stream(wire.message(*["x"] * count)))
        limits = small(64 * MEGABYTE)._replace(join_seconds=0.01)
        told = await runs.against(streaming(text), within=limits)

        assert told.text == "x" * count
        [done] = told.of(ItemDone)
        assert done.item["content"][0]["text"] == "x" * count
        event_counts.append(len(told.events))
    assert max(event_counts) < 5_000 / 10


async def test_limit_that_is_used_up_hides_no_failure(runs: Runs) -> None:
    """The calls of a failed response are made by no one: the run ends by itself."""
    stopped = wire.ended("failed", error={"code": MISALIGNMENT, "message": "No."})
    events = [wire.created(), *wire.function_call("send", "{}"), stopped]
    limits = AT_ONCE._replace(count_response=lambda *_: "The limit is used up.")

    told = await runs.against(streaming(wire.on_the_wire(*events)), within=limits)

    assert (told.kind, told.ending.code) == ("failed", MISALIGNMENT)


async def test_end_of_a_short_answer_is_not_waited_for(
    connections: Connections,
) -> None:
    """It comes with the second piece that the network brings."""
    teller = Teller()
    teller.say(wire.added(wire.message_item()), wire.text_delta("one "))
    within = Limits(join_seconds=500)
    async with Upstream(teller.answer) as upstream, asyncio.timeout(100):
        events = run(asking(), upstream.endpoint, connections, within)
        async with aclosing(events):
            await anext(events)
            await anext(events)
            teller.say(wire.text_delta("two "), wire.completed())
            teller.stop()
            rest = [event async for event in events]
    assert log_of(rest)[-1:] == ["run completed"]
