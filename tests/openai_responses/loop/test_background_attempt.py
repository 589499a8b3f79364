"""A background response is read to its end, whatever happens to its connections."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, has_encrypted_reasoning
from openai_responses.loop import background_attempt
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from openai_responses.transport.stream import TextDelta
from runs.against_server import Runs, Told, asking, end_of, report, simulated
from runs.joining import joined
from runs.log import log_of
from runs.transcripts import transcript
from simulator import RecordedRequest, Simulator
from upstream import wire
from upstream.odd_streams import stream_of
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


async def told_of(
    runs: Runs,
    sim: Simulator,
    scenario: str,
    within: Limits = PATIENT,
    stream: bool = True,
) -> Told:
    return await runs.of(sim, background(f"sim:{scenario}", stream), within)


async def told_by(runs: Runs, *answers: Answerer, within: Limits = PATIENT) -> Told:
    return await runs.against(*answers, request=background("Hi"), within=within)


def asked_for(requests: list[RecordedRequest]) -> list[str]:
    return [_word(request) for request in requests]


def _word(request: RecordedRequest) -> str:
    if request.path.endswith("/cancel"):
        return "cancel"
    if request.method == "POST":
        return "post"
    after = request.query.get("starting_after")
    return f"after {after}" if after else "ask"


def shown_lines(told: Told) -> list[str]:
    """Return what was shown of the answer, without the words that quote the question."""
    shown = joined([event for event in told.events if not isinstance(event, Status)])
    return [line.split(":")[0] for line in log_of(shown)]


async def whole_answer(runs: Runs, sim: Simulator) -> list[str]:
    """Return what is shown by a run whose connection holds."""
    told = await told_of(runs, sim, "chat")
    sim.forget()
    assert told.notes == []
    return shown_lines(told)


@pytest.mark.parametrize("fault", ["drop", "cut"])
@pytest.mark.parametrize("number", [1, 2, 60])
async def test_a_connection_that_breaks(
    runs: Runs, sim: Simulator, fault: str, number: int
) -> None:
    expected = await whole_answer(runs, sim)
    told = await told_of(runs, sim, f"chat,{fault}={number}")
    assert shown_lines(told) == expected
    assert told.notes == [LOST]
    assert asked_for(sim.requests) == ["post", f"after {number - 1}"]
    assert any(map(has_encrypted_reasoning, told.output))


async def test_text_of_a_broken_stream(runs: Runs, sim: Simulator) -> None:
    """What grew is what the ended item says, character by character."""
    told = await told_of(runs, sim, "chat,drop=20,again=9")
    assert told.text == told.output[-1]["content"][0]["text"]
    places = [f"after {last}" for last in range(19, 19 + 20 * 10, 20)]
    asked = asked_for(sim.requests)
    assert asked == ["post", *places[: len(asked) - 1]]
    assert len(asked) > 3
    assert told.notes == [LOST] * (len(asked) - 1)


BROKEN = breaking(transcript("background-drop"))
REST = streaming(transcript("resumed/background-drop"))


async def test_words_of_a_proxy_in_the_stream_end_the_run(runs: Runs) -> None:
    """As they do without a background request: such words have no number."""
    stream = streaming(stream_of("error-of-plain-words"))
    told = await told_by(runs, stream, within=HASTY)
    plain = await runs.against(stream, within=HASTY)
    assert told.ending == plain.ending
    assert told.ending.is_failure


async def test_server_that_knows_no_background_answers_without(runs: Runs) -> None:
    """The answer is like any other then: not stored, and asked for again if it broke."""
    error = {"message": "Unsupported parameter.", "param": "background"}
    told = await told_by(
        runs,
        replying(json.dumps({"error": error}), 400),
        breaking(b": soon\n\n"),
        streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Done.")))),
    )

    assert told.kind == "completed"
    assert told.notes[0].endswith("not accept background: answering without it.")
    asked, *others = told.sent
    assert (asked.pop("background"), asked.pop("store")) == (True, True)
    assert others == [{**asked, "store": False}] * 2


@pytest.mark.parametrize("output", [[], [wire.message_item("Hi")]])
async def test_response_that_the_server_gave_up_is_incomplete(
    output: list[Item], runs: Runs
) -> None:
    queued = {"id": "resp_1", "object": "response", "status": "queued", "output": []}
    expired = {**queued, "status": "expired", "output": output}
    answers = [replying(json.dumps(response)) for response in (queued, expired)]
    message = (await told_by(runs, *answers)).ending.message
    assert "The answer is incomplete (expired)." in message


CONNECTIONS: dict[str, tuple[str, bool, list[str], list[int]]] = {
    "a connection that holds": ("chat", True, ["post"], []),
    "a busy server is asked again, and the stream is resumed where it was": (
        "chat,drop=60,busy=1,halt=70,asks=3",
        True,
        ["post", "after 59", "ask", "after 59"],
        [503],
    ),
    "a stream that has expired is asked for until it is complete": (
        "chat,drop=60,aged,halt=70,asks=5",
        True,
        ["post", "after 59", *["ask"] * 5],
        [400],
    ),
    "a silent connection is given up, not the answer": (
        "chat,halt=60,asks=3",
        True,
        ["post", "after 59", "ask", "after 59"],
        [],
    ),
    "a response that is not streamed is asked for until it is there": (
        "chat,halt=9,asks=3",
        False,
        ["post", "ask", "ask", "ask"],
        [],
    ),
}


@pytest.mark.parametrize("case", CONNECTIONS)
async def test_background_response_is_read_to_its_end(
    runs: Runs, sim: Simulator, case: str
) -> None:
    scenario, stream, requests, statuses = CONNECTIONS[case]
    expected = await whole_answer(runs, sim)
    within = PATIENT._replace(timeouts=Timeouts(idle=0.3, first_event=0.3))
    told = await told_of(runs, sim, scenario, within, stream)
    assert shown_lines(told) == expected
    # Only a stream asks for encrypted reasoning in these scenarios.
    assert any(map(has_encrypted_reasoning, told.output)) == stream
    assert asked_for(sim.requests) == requests
    assert bool(told.notes) == ("after 59" in requests)
    assert (told.sent[0]["background"], told.sent[0]["store"]) == (True, True)
    assert [sent.status for sent in sim.requests if sent.status != 200] == statuses


@pytest.mark.parametrize(
    ("scenario", "stream", "kind"),
    [
        ("failed", True, "failed"),
        ("failed", False, "failed"),
        ("error-nested", True, "error"),
        ("error-nested", False, "failed"),
    ],
)
async def test_resumed_response_that_failed_is_not_cancelled(
    runs: Runs, sim: Simulator, scenario: str, stream: bool, kind: str
) -> None:
    told = await told_of(runs, sim, f"{scenario},drop=30", stream=stream)
    assert told.kind == kind
    assert "cancel" not in asked_for(sim.requests)


def is_text(event: RunEvent) -> bool:
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


async def reading(
    connections: Connections, sim: Simulator
) -> asyncio.Task[list[RunEvent]]:
    """Return a task that waits for a model, and has seen the beginning of a text."""
    has_begun = asyncio.Event()
    request = background("sim:chat,halt=60")

    async def read() -> list[RunEvent]:
        events = []
        async for event in run(request, simulated(sim), connections, PATIENT):
            events.append(event)
            if is_text(event):
                has_begun.set()
        return events

    task = asyncio.create_task(read())
    async with asyncio.timeout(60):
        await has_begun.wait()
    return task


async def stop(task: asyncio.Task[object]) -> None:
    """Cancel a run, as the host does when a person presses Stop."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stop_during_a_silence_cancels_the_response(
    connections: Connections, sim: Simulator
) -> None:
    await stop(await reading(connections, sim))
    await sim.requested(2)
    await sim.all_ended()
    assert asked_for(sim.requests) == ["post", "cancel"]


async def stop_when(
    has_come: Callable[[], bool], runs: Runs, sim: Simulator, scenario: str
) -> None:
    """Stop a run of a scenario when the server has come so far."""
    task = asyncio.create_task(told_of(runs, sim, scenario))
    await until(has_come)
    await stop(task)


@pytest.mark.parametrize("halt", [60, 1])
async def test_stop_before_the_response_has_an_id(
    halt: int, runs: Runs, sim: Simulator
) -> None:
    """The connection is held until the server has named what is to be cancelled.

    It may name it in its first event, and say nothing more.
    """
    scenario = f"chat,wait=300,halt={halt}"
    await stop_when(lambda: bool(sim.requests), runs, sim, scenario)
    assert asked_for(sim.requests) == ["post"]

    await sim.requested(2)
    await sim.all_ended()
    assert asked_for(sim.requests) == ["post", "cancel"]
    assert sim.requests[0].closed_by_client
    assert (sim.requests[1].response or {})["status"] == "cancelled"


async def test_stop_at_a_server_that_never_names_an_id(
    runs: Runs, sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is not held as long as the server keeps it alive."""
    monkeypatch.setattr(background_attempt, "_MAX_WAIT_FOR_ID", 0.01)
    await stop_when(lambda: bool(sim.requests), runs, sim, "chat,wait=60000")
    await until(lambda: sim.requests[0].closed_by_client)
    assert asked_for(sim.requests) == ["post"]


async def test_stop_before_the_first_event_cancels_the_response_once(
    runs: Runs, sim: Simulator
) -> None:
    def has_come() -> bool:
        return bool(sim.requests) and sim.requests[0].events_sent == 3

    await stop_when(has_come, runs, sim, "chat,halt=3")
    await sim.requested(2)
    await runs.connections.close()
    assert asked_for(sim.requests) == ["post", "cancel"]


async def test_stop_before_a_refusal(runs: Runs, sim: Simulator) -> None:
    """What never began has nothing to cancel."""
    await stop_when(lambda: bool(sim.requests), runs, sim, "503,wait=300")
    await runs.connections.close()
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
    runs: Runs, sim: Simulator, total: float, stream: bool, requests: list[str]
) -> None:
    """A wait that would outlast it is not begun."""
    within = PATIENT._replace(timeouts=Timeouts(total=total), poll_seconds=100)
    told = await told_of(runs, sim, "chat,halt=60", within, stream)
    assert told.kind == "total_timeout"
    await sim.requested(len(requests))
    assert asked_for(sim.requests) == requests


async def test_a_response_that_is_gone(runs: Runs, sim: Simulator) -> None:
    """The text stays, the message says so; there is nothing to cancel."""
    told = await told_of(runs, sim, "chat,drop=60,gone")
    assert told.kind == "cut"
    assert "the rest of the answer could not be fetched" in told.ending.message
    assert told.text
    assert asked_for(sim.requests) == ["post", "after 59", "ask"]


SOON = {"Retry-After-Ms": "1"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            replying("404 page not found\n", 404, "text/plain", SOON),
            id="a proxy that knows no address for a moment",
        ),
        pytest.param(
            replying("<title>Forbidden</title>", 403, headers=SOON),
            id="a page of a firewall",
        ),
        pytest.param(
            replying("", 429, headers={"Retry-After": "600"}),
            id="a limit that lasts longer than a wait",
        ),
    ],
)
async def test_response_goes_on_behind_what_is_refused(
    runs: Runs, answer: Answerer
) -> None:
    """Whoever refuses to return it says nothing of the response: it is asked for again."""
    within = PATIENT._replace(resuming=RetryPolicy(12, 0.6))
    told = await told_by(runs, BROKEN, answer, answer, REST, within=within)
    assert told.kind == "completed"
    assert [sent.method for sent in told.requests] == ["POST", "GET", "GET", "GET"]


async def test_a_response_that_somebody_cancelled(
    connections: Connections, sim: Simulator
) -> None:
    """There is no event for it: the response itself says it."""
    task = await reading(connections, sim)
    [response_id] = sim.stored_ids
    path = f"/responses/{response_id}/cancel"
    connections.do_later(connections.post_quietly(simulated(sim), path))
    ending = end_of(await task).ending
    assert (ending.kind, ending.code) == ("incomplete", "cancelled")
    assert "canceled on 127.0.0.1's side" in ending.message
    asked = asked_for(sim.requests)
    assert asked[:2] == ["post", "cancel"]
    assert asked.count("cancel") == 1


async def test_server_that_never_returns_cuts_the_answer(
    connections: Connections,
) -> None:
    async with Upstream(in_turn(BROKEN, hang_up)) as upstream:
        told = Told(
            await report(connections, upstream.endpoint, background("Hi"), HASTY)
        )
        await until(lambda: upstream.requests[-1].path.endswith("/cancel"))
        asked = [sent.path_qs.rpartition("/")[2] for sent in upstream.requests]
    assert (told.kind, told.notes) == ("cut", [LOST])
    # aiohttp itself asks once more where a connection that rested turns out broken.
    assert asked[1].endswith("?stream=true&starting_after=59")
    assert "?" not in asked[-2]
    assert asked[-1] == "cancel"


@pytest.mark.parametrize(
    ("rest", "kind"), [(streaming(b"data: {nonsense}\n\n"), "cut"), (REST, "completed")]
)
async def test_rest_that_cannot_be_read_is_asked_for_again(
    runs: Runs, rest: Answerer, kind: str
) -> None:
    garbled = streaming(b"data: {nonsense}\n\n")
    assert (await told_by(runs, BROKEN, garbled, rest, within=HASTY)).kind == kind


async def test_rest_is_read_after_a_mark_of_the_end(runs: Runs) -> None:
    """Of a proxy that ends the first stream; what it marks is not the response."""
    marked = streaming(transcript("background-drop") + b"\n\ndata: [DONE]\n\n")
    told = await told_by(runs, marked, REST, within=HASTY)
    assert (told.kind, len(told.requests)) == ("completed", 2)


WHOLE = replying('{"id":"resp_1","status":"completed","output":[]}')


def created(response: object = None, **fields: object) -> wire.Event:
    """Return the first event of a stream that names its response."""
    named = {"id": "resp_1"} if response is None else response
    return {"type": "response.queued", "response": named, **fields}


async def paths_after(runs: Runs, *events: wire.Event, end: bytes = b"") -> list[str]:
    """Return what is requested when a connection breaks after these events."""
    told = await told_by(runs, breaking(wire.on_the_wire(*events) + end), WHOLE)
    return [request.path_qs for request in told.requests[1:]]


NAMED_LATER = {"type": "response.in_progress", "sequence_number": 1}
BASE64_ID = "resp_bGl0ZWxsbTo9-_=="


BROKEN_AFTER: dict[str, tuple[wire.Events, bytes, str]] = {
    "no numbers": ([created()], b"", "resp_1"),
    "a number of nothing": ([created(sequence_number=None)], b"", "resp_1"),
    "an end that is not JSON": (
        [created(sequence_number=4)],
        b"data: [DONE]\n\n",
        "resp_1?stream=true&starting_after=4",
    ),
    "only the first event names the response": (
        [created(sequence_number=0), NAMED_LATER],
        b"",
        "resp_1?stream=true&starting_after=1",
    ),
    "a base64 id": ([created({"id": BASE64_ID})], b"", BASE64_ID),
}


@pytest.mark.parametrize("case", BROKEN_AFTER)
async def test_broken_response_is_asked_for_by_id_and_last_number(
    runs: Runs, case: str
) -> None:
    """Without numbers it is unknown where to go on: the response is asked for."""
    events, end, path = BROKEN_AFTER[case]
    asked = await paths_after(runs, *events, end=end)
    assert asked[0] == f"/v1/responses/{path}"
    assert len(asked) == 1 or "?" in path


async def test_events_that_came_before(runs: Runs) -> None:
    events = [created(), {**wire.added(wire.message_item()), "sequence_number": 0}]
    for number in (1, 1, 0, 2, 7, 3):
        events.append({**wire.text_delta(f"{number} "), "sequence_number": number})
    told = await told_by(runs, breaking(wire.on_the_wire(*events)), WHOLE)
    assert told.text == "1 2 7 "
    path = "/v1/responses/resp_1?stream=true&starting_after=7"
    assert told.requests[1].path_qs == path


IDS = ["", "..", "a/b", "a?b", "a b", "a%2Fb", "é", "x" * 513, None, 7, ["a"]]


@pytest.mark.parametrize(
    "response", [*({"id": id} for id in IDS), "resp_1", ["resp_1"], {}, 0]
)
async def test_response_without_an_id_for_a_path_is_not_asked_for(
    runs: Runs, response: object
) -> None:
    """A server must not choose which address is asked with the key."""
    assert await paths_after(runs, created(response)) == []


async def test_the_version_that_azure_wants(connections: Connections) -> None:
    async with Upstream(in_turn(BROKEN, REST)) as upstream:
        endpoint = Endpoint(f"{upstream.base_url}?api-version=preview", "sk-upstream-1")
        await report(connections, endpoint, background("Hi"), PATIENT)
        first, second = (dict(request.query) for request in upstream.requests)
    version = {"api-version": "preview"}
    assert first == version
    assert second == {"stream": "true", "starting_after": "59", **version}


@pytest.mark.parametrize(
    "answer",
    [
        *(hang_up, silence, streaming()),
        *(replying("{}", status) for status in (408, 502, 504, 520, 524)),
    ],
    ids=["hung up", "silent", "an empty stream", "408", "502", "504", "520", "524"],
)
async def test_it_is_never_run_twice(runs: Runs, answer: Answerer) -> None:
    within = HASTY._replace(timeouts=Timeouts(first_event=0.3))
    told = await told_by(runs, answer, within=within)
    assert (len(told.requests), told.notes) == (1, [])
    assert told.ending.is_failure


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (409, {}),
        (503, {}),
        (502, {"X-Should-Retry": "true"}),  # its own word counts more than its number
    ],
)
async def test_refused_background_request_is_retried(
    runs: Runs, status: int, more: dict[str, str]
) -> None:
    """It says itself that it did not begin."""
    refusal = replying("{}", status, headers={**SOON, **more})
    answer = streaming(transcript("background"))
    told = await told_by(runs, refusal, answer, within=HASTY)
    assert (len(told.requests), told.kind) == (2, "completed")


async def test_unreachable_server_is_retried(connections: Connections) -> None:
    """Where no server listens, nothing can have begun."""
    endpoint = Endpoint(f"http://127.0.0.1:{free_port()}/v1", "sk-upstream-1")
    told = Told(await report(connections, endpoint, background("Hi"), HASTY))
    assert (len(told.notes), told.kind) == (1, "unreachable")


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
    runs: Runs, value: object, end: Callable[[bytes], Answerer]
) -> None:
    """As any other: its answer does not go on without a connection."""
    whole = streaming(ignoring(value, *wire.message("Hello"), wire.completed()))
    within = HASTY._replace(timeouts=Timeouts(idle=0.2))
    told = await told_by(runs, end(ignoring(value)), whole, within=within)
    assert told.kind == "completed"
    assert [sent.method for sent in told.requests] == ["POST"] * 2
    assert told.sent[0] == told.sent[1]
    assert LOST not in told.notes


HELLO = ignoring(None, *wire.message("Hello", " world")[:3])
TOO_LONG = ignoring(False, wire.error_flat("context_length_exceeded"))


@pytest.mark.parametrize(
    ("answer", "timeouts", "kind", "text"),
    [
        (breaking(HELLO), Timeouts(), "cut", "Hello"),
        (stalling(HELLO), Timeouts(idle=0.2), "idle_timeout", "Hello"),
        (stalling(ignoring(False)), Timeouts(total=0.2), "total_timeout", ""),
        (streaming(TOO_LONG), Timeouts(), "error", ""),
    ],
)
async def test_end_at_a_server_that_ignores_background(
    connections: Connections, answer: Answerer, timeouts: Timeouts, kind: str, text: str
) -> None:
    within = HASTY._replace(timeouts=timeouts)
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, background("Hi"), within)
        await connections.close()
        told = Told(events, upstream.bodies)
    assert (told.kind, told.text, len(told.sent)) == (kind, text, 1)
    is_kept = "everything received so far is kept" in told.ending.message
    assert is_kept == bool(text)


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
