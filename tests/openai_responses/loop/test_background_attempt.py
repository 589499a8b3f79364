"""A background response is read to its end, whatever happens to its connections."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, has_encrypted_reasoning
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from openai_responses.transport.stream import TextDelta
from runs.against_server import asking, end_of, notes_of, report, simulated
from runs.joining import joined
from runs.log import answer_text, log_of
from runs.streams import OTHERS
from runs.transcripts import FOLDER
from simulator import RecordedRequest, Simulator
from upstream import wire
from upstream.server import (
    Answerer,
    Upstream,
    breaking,
    free_port,
    hang_up,
    in_turn,
    replying,
    silence,
    stalling,
    streaming,
    until,
)

pytestmark = pytest.mark.asyncio

LOST = "The connection to the model was lost: fetching the rest of the answer."
PATIENT = Limits(0.0, poll_seconds=0.01)
HASTY = PATIENT._replace(resuming=RetryPolicy(2, 0.9), retries=RetryPolicy(1))
"""Waits for 0.5 s after a failure and for 1 s after the second, but no third time."""


def background(text: str, stream: bool = True) -> ResponsesRequest:
    """Return a request whose answer goes on at the server."""
    update = {"background": True, "store": True}
    return asking(text, stream).model_copy(update=update)


def shown_events(events: list[RunEvent]) -> list[RunEvent]:
    """Return what was shown of the answer, whatever was noted in between."""
    return joined([event for event in events if not isinstance(event, Status)])


def asked_for(requests: list[RecordedRequest]) -> list[str]:
    """Return what the server got, one word a request."""
    return [_word(request) for request in requests]


def _word(request: RecordedRequest) -> str:
    if request.path.endswith("/cancel"):
        return "cancel"
    if request.method == "POST":
        return "post"
    after = request.query.get("starting_after")
    return f"after {after}" if after else "ask"


async def whole_answer(connections: Connections, sim: Simulator) -> list[str]:
    """Return what a run tells whose connection holds."""
    events = await report(connections, simulated(sim), background("sim:chat"), PATIENT)
    sim.forget()
    assert notes_of(events) == []
    return log_of(shown_events(events))


@pytest.mark.parametrize("fault", ["drop", "cut"])
@pytest.mark.parametrize("number", [1, 2, 60])
async def test_a_connection_that_breaks(
    connections: Connections, sim: Simulator, fault: str, number: int
) -> None:
    """Wherever it breaks, nothing is shown twice and nothing is missing."""
    expected = await whole_answer(connections, sim)
    request = background(f"sim:chat,{fault}={number}")
    events = await report(connections, simulated(sim), request, PATIENT)
    assert _same(log_of(shown_events(events)), expected)
    assert notes_of(events) == [LOST]
    assert asked_for(sim.requests) == ["post", f"after {number - 1}"]
    assert any(map(has_encrypted_reasoning, end_of(events).output))


def _same(log: list[str], expected: list[str]) -> bool:
    """Compare what was told; the question is quoted in the answer."""
    kinds = [line.split(":")[0] for line in log]
    return kinds == [line.split(":")[0] for line in expected]


async def test_text_of_a_broken_stream(
    connections: Connections, sim: Simulator
) -> None:
    """What grew is what the ended item says, character by character."""
    request = background("sim:chat,drop=20,again=9")
    events = await report(connections, simulated(sim), request, PATIENT)
    message = end_of(events).output[-1]
    assert answer_text(events) == message["content"][0]["text"]
    places = [f"after {last}" for last in range(19, 19 + 20 * 10, 20)]
    asked = asked_for(sim.requests)
    assert asked == ["post", *places[: len(asked) - 1]]
    assert len(asked) > 3
    assert notes_of(events) == [LOST] * (len(asked) - 1)


async def test_events_that_come_again(connections: Connections) -> None:
    """A server that begins anew, whatever it was asked, shows nothing twice."""
    stream = _transcript("background.sse")
    answer = in_turn(breaking(stream[:9000]), streaming(stream))
    async with Upstream(answer) as upstream:
        request = background("Hi")
        events = await report(connections, upstream.endpoint, request, PATIENT)
        assert len(upstream.requests) == 2
    undisturbed = streaming(stream)
    async with Upstream(undisturbed) as upstream:
        plain = await report(connections, upstream.endpoint, background("Hi"), PATIENT)
    assert log_of(shown_events(events)) == log_of(shown_events(plain))


def _transcript(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


async def test_words_of_a_proxy_in_the_stream_end_the_run(
    connections: Connections,
) -> None:
    """As they do without a background request: such words have no number."""
    stream = (OTHERS / "error-of-plain-words.sse").read_bytes()
    endings = []
    for request in (background("Hi"), asking("Hi")):
        async with Upstream(streaming(stream)) as upstream:
            events = await report(connections, upstream.endpoint, request, HASTY)
        endings.append(end_of(events).ending)

    assert endings[0] == endings[1]
    assert endings[0].is_failure


async def test_expired_stream_is_polled_until_complete(
    connections: Connections, sim: Simulator
) -> None:
    """The response is asked for until it is there; then the rest is shown."""
    expected = await whole_answer(connections, sim)
    request = background("sim:chat,drop=60,aged,halt=70,asks=5")
    events = await report(connections, simulated(sim), request, PATIENT)
    assert asked_for(sim.requests) == ["post", "after 59", *["ask"] * 5]
    assert _same(log_of(shown_events(events)), expected)
    assert any(map(has_encrypted_reasoning, end_of(events).output))


async def test_server_that_knows_no_background_answers_without(
    connections: Connections,
) -> None:
    """The answer is like any other then: not stored, and asked for again if it broke."""
    error = {"message": "Unsupported parameter.", "param": "background"}
    answer = in_turn(
        replying(json.dumps({"error": error}), 400),
        breaking(b": soon\n\n"),
        streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Done.")))),
    )
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), PATIENT)

    assert log_of(events)[-1] == "run completed"
    assert notes_of(events)[0].endswith("not accept background: answering without it.")
    asked, *others = upstream.bodies
    assert (asked.pop("background"), asked.pop("store")) == (True, True)
    assert others == [{**asked, "store": False}] * 2


async def test_window_is_paid_for_as_it_was_chosen(connections: Connections) -> None:
    """A server that refuses it gets no request that costs twice as much."""
    error = {"message": "Unsupported parameter.", "param": "background"}
    request = background("Hi", stream=False).model_copy(
        update={"background_options": {"completion_window": "8h"}}
    )
    async with Upstream(replying(json.dumps({"error": error}), 400)) as upstream:
        events = await report(connections, upstream.endpoint, request, PATIENT)
    assert end_of(events).ending.kind == "refused"
    assert all(body["background"] for body in upstream.bodies)


@pytest.mark.parametrize("output", [[], [wire.message_item("Hi")]])
async def test_response_that_the_server_gave_up_is_incomplete(
    output: list[Item], connections: Connections
) -> None:
    """With what came of it, or without a word."""
    queued = {"id": "resp_1", "object": "response", "status": "queued", "output": []}
    answer = in_turn(
        replying(json.dumps(queued)),
        replying(json.dumps({**queued, "status": "expired", "output": output})),
    )
    async with Upstream(answer) as upstream:
        request = background("Hi", stream=False)
        events = await report(connections, upstream.endpoint, request, PATIENT)
    assert "The answer is incomplete (expired)." in end_of(events).ending.message


@pytest.mark.parametrize(
    ("scenario", "stream", "requests"),
    [
        pytest.param("chat", True, ["post"], id="a connection that holds"),
        pytest.param(
            "chat,drop=60,busy=1,halt=70,asks=3",
            True,
            ["post", "after 59", "ask", "after 59"],
            id="a busy server is asked again, and the stream is resumed where it was",
        ),
        pytest.param(
            "chat,halt=60,asks=3",
            True,
            ["post", "after 59", "ask", "after 59"],
            id="a silent connection is given up, not the answer",
        ),
        pytest.param(
            "chat,halt=9,asks=3",
            False,
            ["post", "ask", "ask", "ask"],
            id="a response that is not streamed is asked for until it is there",
        ),
    ],
)
async def test_background_response_is_read_to_its_end(
    connections: Connections,
    sim: Simulator,
    scenario: str,
    stream: bool,
    requests: list[str],
) -> None:
    within = PATIENT._replace(timeouts=Timeouts(idle=0.3, first_event=0.3))
    request = background(f"sim:{scenario}", stream)
    events = await report(connections, simulated(sim), request, within)
    assert log_of(events)[-1] == "run completed"
    assert asked_for(sim.requests) == requests
    assert bool(notes_of(events)) == ("after 59" in requests)
    sent = sim.requests[0].body
    assert (sent["background"], sent["store"]) == (True, True)
    busy = [503] if "busy" in scenario else []
    statuses = [sent.status for sent in sim.requests if sent.status != 200]
    assert statuses == busy


@pytest.mark.parametrize("scenario", ["failed", "error-nested"])
@pytest.mark.parametrize("stream", [True, False])
async def test_resumed_response_that_failed_is_not_cancelled(
    connections: Connections, sim: Simulator, scenario: str, stream: bool
) -> None:
    """They are told as ever; the response is over, so nothing is cancelled."""
    request = background(f"sim:{scenario},drop=30", stream)
    events = await report(connections, simulated(sim), request, PATIENT)
    expected = scenario.partition("-")[0]
    kind = end_of(events).ending.kind
    assert kind == expected or (kind, stream) == ("failed", False)
    assert "cancel" not in asked_for(sim.requests)


def is_text(event: RunEvent) -> bool:
    """Say whether an event shows more of the answer."""
    return isinstance(event, TextDelta) and event.kind == "text"


@pytest.mark.parametrize(
    ("scenario", "is_last"),
    [
        pytest.param("chat,halt=60", is_text, id="in the middle of a text"),
        pytest.param(
            "chat,drop=60,halt=70",
            lambda event: isinstance(event, Status),
            id="between two connections",
        ),
    ],
)
async def test_closing_the_run_cancels_the_response(
    connections: Connections,
    sim: Simulator,
    scenario: str,
    is_last: Callable[[RunEvent], bool],
) -> None:
    request = background(f"sim:{scenario}")
    async with aclosing(run(request, simulated(sim), connections, PATIENT)) as events:
        async for event in events:
            if is_last(event):
                break
    cancelled = await sim.requested(2)
    await sim.all_ended()
    assert asked_for(sim.requests) == ["post", "cancel"]
    assert cancelled.response
    assert cancelled.response["status"] == "cancelled"


async def stop(task: asyncio.Task[list[RunEvent]]) -> None:
    """Cancel a run, as the host does when a person presses Stop."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def reading(
    connections: Connections, sim: Simulator
) -> tuple[asyncio.Task[list[RunEvent]], asyncio.Event]:
    """Return a task that waits for a model, and what tells that a text has begun."""
    has_begun = asyncio.Event()
    request = background("sim:chat,halt=60")

    async def read() -> list[RunEvent]:
        events = []
        async for event in run(request, simulated(sim), connections, PATIENT):
            events.append(event)
            if is_text(event):
                has_begun.set()
        return events

    return asyncio.create_task(read()), has_begun


async def test_stop_during_a_silence_cancels_the_response(
    connections: Connections, sim: Simulator
) -> None:
    """A task that waits for the model is cancelled, and so is the model."""
    task, has_begun = reading(connections, sim)
    async with asyncio.timeout(60):
        await has_begun.wait()
    await stop(task)
    await sim.requested(2)
    await sim.all_ended()
    assert asked_for(sim.requests) == ["post", "cancel"]


async def test_stop_before_the_response_has_an_id(
    connections: Connections, sim: Simulator
) -> None:
    """The connection is held until the server has named what is to be cancelled."""
    request = background("sim:chat,wait=300,halt=60")
    endpoint = simulated(sim)
    task = asyncio.create_task(report(connections, endpoint, request, PATIENT))
    await sim.requested(1)
    await stop(task)
    assert asked_for(sim.requests) == ["post"]

    await sim.requested(2)
    await sim.all_ended()
    assert asked_for(sim.requests) == ["post", "cancel"]
    assert sim.requests[0].closed_by_client
    assert (sim.requests[1].response or {})["status"] == "cancelled"


async def test_stop_before_the_first_event_cancels_the_response_once(
    connections: Connections, sim: Simulator
) -> None:
    """Whether the id has been read by then or not, it is cancelled once."""
    request = background("sim:chat,halt=3")
    endpoint = simulated(sim)
    task = asyncio.create_task(report(connections, endpoint, request, PATIENT))
    await until(lambda: bool(sim.requests) and sim.requests[0].events_sent == 3)
    await stop(task)
    await sim.requested(2)
    await connections.close()
    assert asked_for(sim.requests) == ["post", "cancel"]


async def test_stop_before_a_refusal(connections: Connections, sim: Simulator) -> None:
    """What never began has nothing to cancel."""
    request = background("sim:503,wait=300")
    endpoint = simulated(sim)
    task = asyncio.create_task(report(connections, endpoint, request, PATIENT))
    await sim.requested(1)
    await stop(task)
    await connections.close()
    assert asked_for(sim.requests) == ["post"]
    assert sim.requests[0].status == 503


@pytest.mark.parametrize(
    ("total", "stream", "requests"),
    [
        pytest.param(0.5, True, ["post", "cancel"], id="while it is streamed"),
        pytest.param(60, False, ["post", "ask", "cancel"], id="before a longer wait"),
    ],
)
async def test_total_limit_ends_the_response_with_the_answer(
    connections: Connections,
    sim: Simulator,
    total: float,
    stream: bool,
    requests: list[str],
) -> None:
    """A wait that would outlast it is not begun."""
    poll_seconds = PATIENT.poll_seconds if stream else 100
    within = PATIENT._replace(timeouts=Timeouts(total=total), poll_seconds=poll_seconds)
    request = background("sim:chat,halt=60", stream)
    events = await report(connections, simulated(sim), request, within)
    assert end_of(events).ending.kind == "total_timeout"
    await sim.requested(len(requests))
    assert asked_for(sim.requests) == requests


async def test_a_response_that_is_gone(
    connections: Connections, sim: Simulator
) -> None:
    """The text stays, the message says so; there is nothing to cancel."""
    request = background("sim:chat,drop=60,gone")
    events = await report(connections, simulated(sim), request, PATIENT)
    ending = end_of(events).ending
    assert ending.kind == "cut"
    assert "the rest of the answer could not be fetched" in ending.message
    assert answer_text(events)
    assert asked_for(sim.requests) == ["post", "after 59", "ask"]


NOT_OF_THE_API = {
    "a proxy that knows no address for a moment": replying(
        "404 page not found\n", 404, "text/plain", {"Retry-After-Ms": "1"}
    ),
    "a page of a firewall": replying(
        "<html><title>Forbidden</title>", 403, headers={"Retry-After-Ms": "1"}
    ),
    "a limit that lasts longer than a wait": replying(
        "", 429, headers={"Retry-After": "600"}
    ),
}


@pytest.mark.parametrize("answer", NOT_OF_THE_API.values(), ids=NOT_OF_THE_API)
async def test_response_goes_on_behind_what_is_refused(
    connections: Connections, answer: Answerer
) -> None:
    """Whoever refuses to return it says nothing of the response: it is asked for again."""
    good = breaking(_transcript("background-drop.sse"))
    rest = streaming(_transcript("resumed/background-drop.sse"))
    async with Upstream(in_turn(good, answer, answer, rest)) as upstream:
        limits = PATIENT._replace(resuming=RetryPolicy(12, 0.6))
        events = await report(connections, upstream.endpoint, background("Hi"), limits)
        methods = [sent.method for sent in upstream.requests]
    assert log_of(events)[-1] == "run completed"
    assert methods == ["POST", "GET", "GET", "GET"]


async def test_a_response_that_somebody_cancelled(
    connections: Connections, sim: Simulator
) -> None:
    """There is no event for it: the response itself says it."""
    task, has_begun = reading(connections, sim)
    async with asyncio.timeout(60):
        await has_begun.wait()
    endpoint = simulated(sim)
    connections.do_later(
        connections.post_quietly(endpoint, f"/responses/{_only_id(sim)}/cancel")
    )
    ending = end_of(await task).ending
    assert (ending.kind, ending.code) == ("incomplete", "cancelled")
    assert "canceled on 127.0.0.1's side" in ending.message
    assert asked_for(sim.requests)[:2] == ["post", "cancel"]
    assert asked_for(sim.requests).count("cancel") == 1


def _only_id(sim: Simulator) -> str:
    (id,) = sim.stored_ids
    return id


async def test_server_that_never_returns_cuts_the_answer(
    connections: Connections,
) -> None:
    """After as many attempts in vain as allowed the answer counts as cut."""
    stream = _transcript("background-drop.sse")
    async with Upstream(in_turn(breaking(stream), hang_up)) as upstream:
        request = background("Hi")
        events = await report(connections, upstream.endpoint, request, HASTY)
        await until(lambda: upstream.requests[-1].path.endswith("/cancel"))
        asked = [sent.path_qs.rpartition("/")[2] for sent in upstream.requests]
    assert end_of(events).ending.kind == "cut"
    assert notes_of(events) == [LOST]
    # aiohttp itself asks once more where a connection that rested turns out broken.
    assert asked[1].endswith("?stream=true&starting_after=59")
    assert "?" not in asked[-2]
    assert asked[-1] == "cancel"


async def test_a_stream_that_cannot_be_read(connections: Connections) -> None:
    """What is no event is asked for again, and once more as a whole."""
    good = _transcript("background-drop.sse")
    rest = _transcript("resumed/background-drop.sse")
    garbled = streaming(b"data: {nonsense}\n\n")
    async with Upstream(in_turn(breaking(good), garbled, garbled)) as upstream:
        request = background("Hi")
        events = await report(connections, upstream.endpoint, request, HASTY)
    assert end_of(events).ending.kind == "cut"
    async with Upstream(in_turn(breaking(good), streaming(rest))) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), HASTY)
    assert end_of(events).ending.kind == "completed"


WHOLE = replying('{"id":"resp_1","status":"completed","output":[]}')


def created(response: object = None, **fields: object) -> wire.Event:
    """Return the first event of a stream that names its response."""
    named = {"id": "resp_1"} if response is None else response
    return {"type": "response.queued", "response": named, **fields}


async def paths_after(
    connections: Connections, *events: wire.Event, end: bytes = b""
) -> list[str]:
    """Return what is requested when a connection breaks after these events."""
    broken = breaking(wire.on_the_wire(*events) + end)
    async with Upstream(in_turn(broken, WHOLE)) as upstream:
        await report(connections, upstream.endpoint, background("Hi"), PATIENT)
        return [request.path_qs for request in upstream.requests[1:]]


NAMED_LATER = {"type": "response.in_progress", "sequence_number": 1}
BASE64_ID = "resp_bGl0ZWxsbTo9-_=="


@pytest.mark.parametrize(
    ("events", "end", "path"),
    [
        pytest.param([created()], b"", "resp_1", id="no numbers"),
        pytest.param(
            [created(sequence_number=None)], b"", "resp_1", id="a number of nothing"
        ),
        pytest.param(
            [created(sequence_number=4)],
            b"data: [DONE]\n\n",
            "resp_1?stream=true&starting_after=4",
            id="an end that is not JSON",
        ),
        pytest.param(
            [created(sequence_number=0), NAMED_LATER],
            b"",
            "resp_1?stream=true&starting_after=1",
            id="only the first event names the response",
        ),
        pytest.param([created({"id": BASE64_ID})], b"", BASE64_ID, id="a base64 id"),
    ],
)
async def test_broken_response_is_asked_for_by_id_and_last_number(
    connections: Connections, events: wire.Events, end: bytes, path: str
) -> None:
    """Without numbers it is unknown where to go on: the response is asked for."""
    asked = await paths_after(connections, *events, end=end)
    assert asked[0] == f"/v1/responses/{path}"
    assert len(asked) == 1 or "?" in path


async def test_events_that_came_before(connections: Connections) -> None:
    """They do not count again, and the highest number is where it goes on."""
    events = [wire.added(wire.message_item())]
    events += [wire.text_delta(f"{number} ") for number in (1, 1, 0, 2, 7, 3)]
    numbers = (0, 1, 1, 0, 2, 7, 3)
    numbered = [
        {**event, "sequence_number": number}
        for event, number in zip(events, numbers, strict=True)
    ]
    stream = wire.on_the_wire(created(), *numbered)
    async with Upstream(in_turn(breaking(stream), WHOLE)) as upstream:
        run_events = await report(
            connections, upstream.endpoint, background("Hi"), PATIENT
        )
        asked = [request.path_qs for request in upstream.requests[1:]]
    assert answer_text(run_events) == "1 2 7 "
    assert asked[0] == "/v1/responses/resp_1?stream=true&starting_after=7"


IDS = ["", "..", "a/b", "a?b", "a b", "a%2Fb", "é", "x" * 513, None, 7, ["a"]]


@pytest.mark.parametrize(
    "response", [*({"id": id} for id in IDS), "resp_1", ["resp_1"], {}, 0]
)
async def test_response_without_an_id_for_a_path_is_not_asked_for(
    connections: Connections, response: object
) -> None:
    """A server must not choose which address is asked with the key."""
    assert await paths_after(connections, created(response)) == []


async def test_the_version_that_azure_wants(connections: Connections) -> None:
    """What BASE_URL asks for comes after what we ask for."""
    stream = _transcript("background-drop.sse")
    rest = streaming(_transcript("resumed/background-drop.sse"))
    async with Upstream(in_turn(breaking(stream), rest)) as upstream:
        endpoint = Endpoint(f"{upstream.base_url}?api-version=preview", "sk-upstream-1")
        await report(connections, endpoint, background("Hi"), PATIENT)
        first, second = (dict(request.query) for request in upstream.requests)
    version = {"api-version": "preview"}
    assert first == version
    assert second == {"stream": "true", "starting_after": "59", **version}


FEARED: dict[str, Answerer] = {
    "hung up": hang_up,
    "silent": silence,
    "502": replying("{}", 502),
    "408": replying("{}", 408),
}


@pytest.mark.parametrize("answer", FEARED.values(), ids=FEARED)
async def test_it_is_never_run_twice(
    connections: Connections, answer: Answerer
) -> None:
    """Where the server may have begun, the request is not sent again."""
    within = HASTY._replace(timeouts=Timeouts(first_event=0.3))
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), within)
        assert len(upstream.requests) == 1
    assert end_of(events).ending.is_failure
    assert notes_of(events) == []


@pytest.mark.parametrize("status", [409, 503])
async def test_refused_background_request_is_retried(
    connections: Connections, sim: Simulator, status: int
) -> None:
    """It says itself that it did not begin."""
    request = background(f"sim:{status},times=1,retry-after-ms=1")
    events = await report(connections, simulated(sim), request, HASTY)
    assert [sent.status for sent in sim.requests] == [status, 200]
    assert log_of(events)[-1] == "run completed"


async def test_should_retry_header_overrides_the_status(
    connections: Connections,
) -> None:
    """Its own word counts more than its number."""
    told_so = {"X-Should-Retry": "true", "Retry-After-Ms": "1"}
    refusal = replying("{}", 502, headers=told_so)
    whole = streaming(_transcript("background.sse"))
    async with Upstream(in_turn(refusal, whole)) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), HASTY)
        assert len(upstream.requests) == 2
    assert log_of(events)[-1] == "run completed"


async def test_unreachable_server_is_retried(connections: Connections) -> None:
    """Where no server listens, nothing can have begun."""
    endpoint = Endpoint(f"http://127.0.0.1:{free_port()}/v1", "sk-upstream-1")
    events = await report(connections, endpoint, background("Hi"), HASTY)
    assert len(notes_of(events)) == 1
    assert end_of(events).ending.kind == "unreachable"


async def test_an_answer_without_anything(connections: Connections) -> None:
    """An empty stream has no response to come back to."""
    async with Upstream(streaming()) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), HASTY)
        assert len(upstream.requests) == 1
    assert end_of(events).ending.kind == "unreadable"


async def test_a_cancellation_without_a_server(connections: Connections) -> None:
    """It is given up in silence."""
    endpoint = Endpoint("no address", "sk-upstream-1")
    connections.do_later(connections.post_quietly(endpoint, "/responses/resp_1/cancel"))
    await connections.close()


def ignoring(value: object, *events: wire.Event) -> bytes:
    """Return the beginning of a stream of a server that ignores `background`.

    Its response says false, or null.
    """
    response = {**wire.response("in_progress"), "background": value}
    begun = {"type": "response.created", "response": response}
    return wire.on_the_wire(*wire.numbered([begun, *events]))


@pytest.mark.parametrize(
    ("value", "end"), [(False, breaking), (None, breaking), (None, stalling)]
)
async def test_server_that_ignores_background_is_asked_again(
    connections: Connections, value: object, end: Callable[[bytes], Answerer]
) -> None:
    """As any other: its answer does not go on without a connection."""
    whole = ignoring(value, *wire.message("Hello"), wire.completed())
    answer = in_turn(end(ignoring(value)), streaming(whole))
    within = HASTY._replace(timeouts=Timeouts(idle=0.2))
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), within)
        asked = [(sent.method, sent.path) for sent in upstream.requests]
    assert end_of(events).ending.kind == "completed"
    assert asked == [("POST", "/v1/responses")] * 2
    assert upstream.bodies[0] == upstream.bodies[1]
    assert LOST not in notes_of(events)


@pytest.mark.parametrize(
    ("end", "kind"), [(breaking, "cut"), (stalling, "idle_timeout")]
)
async def test_text_of_a_server_that_ignores_background(
    connections: Connections, end: Callable[[bytes], Answerer], kind: str
) -> None:
    """It is kept, and nothing is asked for that is not there."""
    begun = ignoring(None, *wire.message("Hello", " world")[:3])
    within = HASTY._replace(timeouts=Timeouts(idle=0.2))
    async with Upstream(end(begun)) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), within)
        await connections.close()
        assert len(upstream.requests) == 1
    assert end_of(events).ending.kind == kind
    assert "Everything received so far is kept" in end_of(events).ending.message
    assert answer_text(events) == "Hello"


async def test_stop_at_a_server_that_ignores_background(
    connections: Connections,
) -> None:
    """The connection is closed, which ends the work; there is nothing to cancel."""
    begun = ignoring(False, *wire.message("Hello")[:3])
    async with Upstream(stalling(begun)) as upstream:
        events = run(background("Hi"), upstream.endpoint, connections, PATIENT)
        async with aclosing(events):
            await anext(events)
        async with asyncio.timeout(60):
            await upstream.left.wait()
        await connections.close()
        assert len(upstream.requests) == 1


async def test_refusal_of_a_server_that_ignores_background(
    connections: Connections,
) -> None:
    """It is told as any other, once."""
    begun = ignoring(False, wire.error_flat("context_length_exceeded"))
    async with Upstream(streaming(begun)) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), HASTY)
        assert len(upstream.requests) == 1
    assert end_of(events).ending.kind == "error"


async def test_total_limit_at_a_server_that_ignores_background(
    connections: Connections,
) -> None:
    """Nothing is sent again after it."""
    within = HASTY._replace(timeouts=Timeouts(total=0.2))
    async with Upstream(stalling(ignoring(False))) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), within)
        assert len(upstream.requests) == 1
    assert end_of(events).ending.kind == "total_timeout"
