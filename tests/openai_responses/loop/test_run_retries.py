"""A request is sent again until words of its answer were shown, and never after."""

import asyncio
import json
from contextlib import aclosing

import pytest

from openai_responses.causes import FINAL_CODES, FLEX_UNAVAILABLE
from openai_responses.endpoint import Endpoint
from openai_responses.items import is_call, is_reasoning
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import GIVEN_UP, RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.loop.tools import Toolset
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from runs.against_server import Runs, Told, asking, limits, notes_of, report
from runs.log import log_of
from runs.tools import MemoryTools, weather
from simulator import Simulator
from simulator.accounts import KEY
from upstream import wire
from upstream.refusals import QUOTA_CODES
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

TWICE = limits(retries=1)

HELLO = wire.on_the_wire(*wire.whole_stream(wire.message("Hello")))
OK = streaming(HELLO)
SILENT = "The model's server did not answer."
REPORTED = "The model's server reported an error."
SOON = "Trying again in a moment."


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (429, "The model's server is busy with this key's requests."),
        (503, "The model's server has trouble (HTTP 503)."),
    ],
)
async def test_trouble_that_passes(
    runs: Runs, sim: Simulator, status: int, trouble: str
) -> None:
    waits: list[bool] = []
    within = TWICE._replace(set_waiting=waits.append)
    told = await runs.of(sim, f"sim:{status},times=1,retry-after-ms=1", within)
    assert waits[:4] == [True, True, False, True]  # the pause is not the server's
    assert told.notes == [f"{SOON} {trouble}"]
    assert (told.log[0], told.kind) == (f"noted: {told.notes[0]}", "completed")
    assert [sent.status for sent in sim.requests] == [status, 200]
    assert told.sent[0] == told.sent[1]


@pytest.mark.parametrize(
    ("within", "retries"),
    [
        (limits(0), 0),
        (limits(3), 3),
        (Limits(), 2),  # as many as OpenAI's client makes; it needs no setting
    ],
)
async def test_trouble_that_lasts(
    runs: Runs, sim: Simulator, within: Limits, retries: int
) -> None:
    told = await runs.of(sim, "sim:503,retry-after-ms=1", within)
    assert len(told.sent) == retries + 1
    assert len(told.notes) == retries
    assert told.kind == "refused"
    assert "overloaded" in told.ending.message


@pytest.mark.parametrize("code", [QUOTA_CODES[0], min(FINAL_CODES)])
async def test_final_code_counts_more_than_the_wish_of_the_server(
    runs: Runs, code: str
) -> None:
    """No wait fills a quota, and retries of a safety stop are forbidden."""
    error = json.dumps({"error": {"code": code, "message": "Sorry!"}})
    wishes = {"X-Should-Retry": "true", "Retry-After-Ms": "1"}
    told = await runs.against(replying(error, 429, headers=wishes), OK, within=TWICE)
    assert len(told.sent) == 1
    assert told.log == ["run refused"]
    assert ("no credit" in told.ending.message) == (code in QUOTA_CODES)


@pytest.mark.parametrize(
    "scenario", ["misaligned-first", "cyber-failed", "prompt-filtered"]
)
async def test_refusal_that_no_second_attempt_removes(
    runs: Runs, sim: Simulator, scenario: str
) -> None:
    """Neither a wait nor another request helps: no repair is tried either."""
    told = await runs.of(sim, f"sim:{scenario}", TWICE)
    assert (len(told.sent), told.notes) == (1, [])


async def test_standard_tier_where_flex_has_no_capacity(
    runs: Runs, sim: Simulator
) -> None:
    """Only if that is allowed, because it costs twice as much."""
    flex = asking("sim:flex-unavailable").model_copy(update={"service_tier": "flex"})
    told = await runs.of(sim, flex, TWICE)
    assert [body["service_tier"] for body in told.sent] == ["flex"]
    assert "no flex capacity" in told.ending.message
    sim.forget()

    told = await runs.of(sim, flex, TWICE._replace(flex_falls_back=True))
    assert [body["service_tier"] for body in told.sent] == ["flex", "default"]
    assert told.kind == "completed"
    [status] = told.of(Status)
    assert "standard" in status.message
    assert status.subject == "costs twice as much"


async def test_flex_is_left_once(runs: Runs) -> None:
    """A server that says so at the standard tier, too, is not asked for ever."""
    error = {"code": FLEX_UNAVAILABLE, "message": "No room."}
    refusing = replying(json.dumps({"error": error}), 429)
    flex = asking().model_copy(update={"service_tier": "flex"})
    within = limits()._replace(flex_falls_back=True)

    told = await runs.against(refusing, refusing, OK, request=flex, within=within)

    assert [body["service_tier"] for body in told.sent] == ["flex", "default"]
    assert told.kind == "refused"


BUSY = {"code": "rate_limit_exceeded", "message": "Please try again in 20s."}


@pytest.mark.parametrize(
    "answer",
    [
        replying("", 429, headers={"Retry-After": "20"}),
        streaming(wire.on_the_wire({"type": "error", "error": BUSY})),
    ],
    ids=["header", "event"],
)
async def test_stop_ends_a_wait_that_is_told(
    connections: Connections, answer: Answerer
) -> None:
    """In seconds; nothing is sent before they are over, nor after a stop."""
    reported: list[RunEvent] = []

    async def watch(endpoint: Endpoint) -> None:
        async with aclosing(run(asking(), endpoint, connections, TWICE)) as events:
            async for event in events:
                reported.append(event)

    async with Upstream(answer) as upstream:
        before = asyncio.all_tasks()
        task = asyncio.create_task(watch(upstream.endpoint))
        await until(lambda: bool(reported))
        await asyncio.sleep(0)  # so that it is in its wait
        task.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(upstream.requests) == 1
        await connections.close()
        await until(lambda: asyncio.all_tasks() <= before)
    assert notes_of(reported) == [
        "Trying again in 20 s. The model's server is busy with this key's requests."
    ]


async def test_server_that_is_being_started(connections: Connections) -> None:
    """A refused connection is tried again, and then there is somebody."""
    port = free_port()
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", KEY)
    events = run(asking("sim:short"), endpoint, connections, TWICE)
    async with aclosing(events):
        assert log_of([await anext(events)]) == [f"noted: {SOON} {SILENT}"]
        async with Simulator(port=port) as sim:
            rest = [event async for event in events]
            assert len(sim.requests) == 1
    assert log_of(rest)[-1] == "run completed"


@pytest.mark.parametrize(
    ("first", "is_silent"),
    [
        pytest.param(hang_up, False, id="no answer"),
        pytest.param(breaking(HELLO[:20]), False, id="half an event"),
        pytest.param(silence, True, id="silence without a head"),
        pytest.param(stalling(b": hello\n\n"), True, id="silence after a comment"),
    ],
)
async def test_server_that_says_nothing_is_left_and_asked_again(
    connections: Connections, first: Answerer, is_silent: bool
) -> None:
    within = limits(retries=1, first_event=0.25)
    async with Upstream(in_turn(first, OK)) as upstream:
        events = await report(connections, upstream.endpoint, within=within)
        assert len(upstream.requests) == 2
        if is_silent:
            async with asyncio.timeout(60):
                await upstream.left.wait()
    assert log_of(events)[0] == f"noted: {SOON} {SILENT}"
    assert log_of(events)[-1] == "run completed"


NOTHING_TO_SEE = {
    "created": [wire.created()],
    "keepalive": [{"type": "keepalive"}],
    "an empty message": [wire.created(), *wire.message("Hello")[:1]],
    "a thought": [wire.created(), wire.added(wire.reasoning_item())],
    "a thought that ended": [wire.created(), *wire.reasoning()],
}
FAILURES: dict[str, wire.Events] = {
    "error": [wire.error_flat("server_is_overloaded")],
    "failed": [wire.ended("failed", error={"code": "server_error"})],
}
IMPATIENT = limits(retries=1, first_event=0.25, idle=0.25)


def ending_so(opening: wire.Events, end: str) -> Answerer:
    beginning = wire.on_the_wire(*opening, *FAILURES.get(end, []))
    return {"break": breaking, "stall": stalling}.get(end, streaming)(beginning)


def log_without_notes(told: Told) -> list[str]:
    """Return all but the messages that a person saw while they waited."""
    return [line for line in told.log if not line.startswith("noted: ")]


@pytest.mark.parametrize(
    ("opening", "end"),
    [
        *((opening, "failed") for opening in NOTHING_TO_SEE),
        *(("created", end) for end in ("break", "stall", "error")),
    ],
)
async def test_answer_that_fails_before_anything_was_shown(
    runs: Runs, opening: str, end: str
) -> None:
    """It is asked again; of the attempt that failed nothing is left but a thought."""
    plain = await runs.against(OK, within=TWICE)
    first = ending_so(NOTHING_TO_SEE[opening], end)
    told = await runs.against(first, OK, within=IMPATIENT)
    assert len(told.sent) == 2
    assert told.notes == [f"{SOON} {REPORTED if end in FAILURES else SILENT}"]
    thought = ["0 started reasoning", "0 ended reasoning"]
    begun = thought if opening.startswith("a thought") else []
    assert log_without_notes(told) == begun + plain.log
    assert (told.output, told.kind) == (plain.output, "completed")


async def test_thought_ends_where_no_attempt_brings_an_answer(runs: Runs) -> None:
    """The page would show for ever that the model thinks."""
    begun = [wire.created(), wire.added(wire.reasoning_item())]
    failed = [ending_so(opening, "failed") for opening in (begun, begun[:1])]
    told = await runs.against(*failed, within=TWICE)
    thought = ["0 started reasoning", "0 ended reasoning"]
    assert log_without_notes(told)[:2] == thought
    assert "everything received so far is kept" not in told.ending.message


THINKING = wire.reasoning("I think", "so", sealed="first")
THOUGHT_CUT_AT = {
    "its beginning": THINKING[:1],
    "its text": THINKING[:-2],
    "its end": THINKING,
    "an empty message": [*THINKING, *wire.message("Hello", at=1)[:1]],
}


@pytest.mark.parametrize(
    ("cut_at", "end"),
    [
        *((cut_at, "break") for cut_at in THOUGHT_CUT_AT),
        *(("its text", end) for end in ("end", "stall", *FAILURES)),
    ],
)
async def test_thought_goes_on_in_the_same_place(
    runs: Runs, cut_at: str, end: str
) -> None:
    """The longest phase, where most connections break; one thought is stored."""
    again = wire.whole_stream(
        [*wire.reasoning("Again", sealed="second"), *wire.message("Hello", at=1)]
    )
    first = ending_so([wire.created(), *THOUGHT_CUT_AT[cut_at]], end)
    second = streaming(wire.on_the_wire(*again))
    told = await runs.against(first, second, within=IMPATIENT)

    assert told.sent == [told.sent[0]] * 2
    items = [e.item for e in told.events if isinstance(e, ItemAdded | ItemDone)]
    _, ended = [item for item in items if is_reasoning(item)]
    assert ended["encrypted_content"] == "second"
    *thoughts, text = told.of(TextDelta)
    assert text.text == "Hello"
    shown = {(delta.output_index, delta.part): delta.text for delta in thoughts}
    has_text = cut_at != "its beginning"
    assert list(shown.values()) == [*["I think", "so"] * has_text, "Again"]
    assert [item["type"] for item in told.output] == ["reasoning", "message"]
    assert told.kind == "completed"


async def test_thought_of_no_other_attempt_ends(runs: Runs) -> None:
    first = ending_so([wire.created(), *THINKING], "break")
    told = await runs.against(first, OK, within=TWICE)
    thought, message = [event.item for event in told.of(ItemDone)]
    assert (thought, told.output) == (GIVEN_UP, [message])
    assert message["type"] == "message"


LOOK = wire.function_call("look", '{"city":', '"Bern"}', at=1)
SHOWN_AFTER_A_THOUGHT = {
    "text": wire.message("Hello", at=1)[:3],
    "text after a call": [*LOOK, *wire.message("Hello", at=2)[:3]],
    "a search": [wire.added({"id": "ws_1", "type": "web_search_call"}, at=1)],
}


@pytest.mark.parametrize("shown", SHOWN_AFTER_A_THOUGHT)
async def test_cut_after_something_else_was_shown_ends_the_answer(
    runs: Runs, shown: str
) -> None:
    """People have seen it, and the thought in front of it."""
    opening = [wire.created(), *THINKING, *SHOWN_AFTER_A_THOUGHT[shown]]
    told = await runs.against(ending_so(opening, "break"), OK, within=TWICE)
    assert (len(told.sent), told.kind) == (1, "cut")
    assert told.of(ItemDone)[0].item["encrypted_content"] == "first"


CUT_AFTER_A_THOUGHT = {
    "the name of a call": LOOK[:1],
    "half of a call": LOOK[:2],
    "a whole call": LOOK,
    "another thought": wire.reasoning("More", at=1)[:3],
}


@pytest.mark.parametrize("end", ["break", "failed"])
@pytest.mark.parametrize("shown", CUT_AFTER_A_THOUGHT)
async def test_cut_before_a_text_is_asked_for_again(
    runs: Runs, shown: str, end: str
) -> None:
    """Nothing of what people have seen is kept: the newest models would forget."""
    cut = ending_so([wire.created(), *THINKING, *CUT_AFTER_A_THOUGHT[shown]], end)
    again = wire.whole_stream([*wire.reasoning("Again"), *LOOK])
    calling = streaming(wire.on_the_wire(*again))
    tools = Toolset(MemoryTools(look=weather))
    told = await runs.against(calling, cut, calling, OK, within=TWICE, toolset=tools)

    assert (told.kind, len(told.sent), len(told.called)) == ("completed", 4, 2)
    assert told.sent[1] == told.sent[2]
    made = ["reasoning", "function_call", "function_call_output"]
    assert [item["type"] for item in told.output] == [*made, *made, "message"]
    asked = [item["type"] for item in told.sent[3]["input"]]
    assert asked == ["message", *made, *made]
    begins = told.of(ItemAdded)
    calls = [event.item["call_id"] for event in begins if is_call(event.item)]
    assert len(set(calls)) == len(calls) == 2 + shown.endswith("call")
    places = [event.output_index for event in begins]
    assert places == sorted(set(places))
    ends = told.of(ItemDone)
    assert [e.output_index for e in ends if e.item == GIVEN_UP] == places[2:4]


async def test_cut_before_a_text_that_no_attempt_mends(runs: Runs) -> None:
    """What the last attempt has brought is kept, and the sentence says so."""
    opening = [wire.created(), *THINKING, *LOOK]
    told = await runs.against(ending_so(opening, "break"), within=TWICE)
    assert (told.kind, len(told.sent)) == ("cut", 2)
    types = [item["type"] for item in told.output]
    assert types == ["reasoning", "function_call", "function_call_output"]
    assert "everything received so far is kept" in told.ending.message


@pytest.mark.parametrize(("calls", "sent"), [(100, 2), (200, 1)])
async def test_request_is_not_sent_again_after_very_many_calls(
    calls: int, sent: int, runs: Runs
) -> None:
    """The host looks through all that were given up for each event of the next ones."""
    made = [wire.done(wire.call_item("look", "{}", at=at), at) for at in range(calls)]
    told = await runs.against(breaking(wire.on_the_wire(*made)), within=TWICE)
    assert len(told.sent) == sent


@pytest.mark.parametrize("shown", [THINKING, LOOK])
async def test_refusal_after_a_thought_or_a_call_changes_no_request(
    runs: Runs, shown: wire.Events
) -> None:
    """The server had accepted it: a blind step would only lose something."""
    odd = wire.error_flat("odd_code")
    opening = streaming(wire.on_the_wire(wire.created(), *shown, odd))
    history = [*asking().input, wire.reasoning_item("Hm"), *asking().input]
    request = asking().model_copy(update={"input": history})
    told = await runs.against(opening, request=request, within=TWICE)
    assert (len(told.sent), told.kind) == (2, "error")


@pytest.mark.parametrize(
    "error",
    [
        {  # CLIProxyAPI
            "code": "request_timeout",
            "type": "invalid_request_error",
            "message": "stream error: stream disconnected before completion: stream closed",
        },
        {  # sub2api
            "code": "stream_read_error",
            "type": "upstream_error",
            "message": "stream_read_error",
        },
    ],
)
async def test_stream_that_broke_behind_a_gateway(
    error: dict[str, str], runs: Runs
) -> None:
    """It says so in the stream; before a text, another attempt can answer."""
    broken = {"type": "error", "error": error}
    begun = streaming(wire.on_the_wire(wire.created(), *THINKING, broken))
    told = await runs.against(begun, OK, within=TWICE)
    assert (len(told.sent), told.kind) == (2, "completed")

    text = wire.message("Hello", "!")[:4]
    shown = streaming(wire.on_the_wire(wire.created(), *text, broken))
    told = await runs.against(shown, OK, within=TWICE)
    assert (len(told.sent), told.kind) == (1, "cut")
    assert "or ask the model to continue;" in told.ending.message


@pytest.mark.parametrize("end", ["break", "stall"])
async def test_without_an_answer_the_sentence_says_what_to_do(
    runs: Runs, end: str
) -> None:
    """Nothing is kept, and nothing is said to be."""
    once = limits(retries=0, first_event=0.25, idle=0.25)
    told = await runs.against(ending_so([wire.created()], end), within=once)
    assert "everything received so far is kept" not in told.ending.message
    assert told.ending.message.endswith("Try again.")
    assert told.output == []


async def test_usage_of_a_failed_attempt_counts(runs: Runs) -> None:
    """It was billed, though nothing of it is shown."""
    first = ending_so([wire.created()], "failed")
    plain = (await runs.against(OK)).end.usage
    end = (await runs.against(first, OK, within=TWICE)).end
    assert end.usage
    assert plain
    assert end.usage.total == 2 * plain.total
    assert end.last_usage == plain


LOADS = json.dumps(
    {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
)
"""What llama.cpp says until its model is in memory."""
QUICK = limits(retries=1, max_wait=0.01)


async def test_server_that_loads_its_model_is_waited_for(runs: Runs) -> None:
    """For more than its retries, with one line for the whole wait."""
    told = await runs.against(*[replying(LOADS, 503)] * 5, OK, within=QUICK)
    assert told.kind == "completed"
    [waiting] = told.notes
    assert "is loading the model" in waiting


async def test_server_that_goes_on_loading_is_named_so(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 503 usually means overload; this one does not."""
    monkeypatch.setattr("openai_responses.retries._MOST_LOADING", 0.03)
    message = (await runs.against(replying(LOADS, 503), within=QUICK)).ending.message
    assert message.startswith("The model's server is still loading the model.")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ('{"error": "Unexpected endpoint or method. (POST /responses)"}', 200),
        ("Responses endpoint not implemented", 501),
    ],
)
async def test_server_without_this_api_is_asked_once(
    answer: str, status: int, runs: Runs
) -> None:
    """LM Studio (lmstudio-bug-tracker 618) and Shepherd Model Gateway."""
    told = await runs.against(replying(answer, status), within=limits(retries=5))
    assert len(told.sent) == 1
    ending = told.ending
    assert ending.message.startswith("There is no Responses API at the address of")
    assert ending.fault.settings == ("base_url",)


async def test_limit_that_is_not_waited_for_says_how_long_it_lasts(runs: Runs) -> None:
    """A minute would be a vain wait; here only the header knows."""
    told = await runs.against(
        replying("{}", 429, headers={"Retry-After": "7200"}), within=TWICE
    )
    assert len(told.sent) == 1
    assert "Wait 2 hours, then try again." in told.ending.message


async def test_refusal_behind_a_gateway_that_blames_itself_is_none_of_trouble(
    runs: Runs,
) -> None:
    """What a server behind it refused is not asked again."""
    words = 'POST "https://a.example/v1/x": 400 Bad Request {"message": "No."}'
    error = json.dumps({"error": {"message": words, "type": "server_error"}})
    told = await runs.against(replying(error, 500), within=TWICE)
    assert len(told.sent) == 1
    assert "rejected the request with HTTP 400" in told.ending.message


@pytest.mark.parametrize(
    ("api_key", "words", "settings"),
    [
        ("", "does not accept the token. An administrator has to check whose", ()),
        ("k", "does not accept the API key.", ("api_key",)),
    ],
)
async def test_token_in_the_place_of_a_key_is_called_one(
    api_key: str, words: str, settings: tuple[str, ...], runs: Runs
) -> None:
    """Nobody can mend a key that was not sent; a key can be sent as a token, too."""
    told = await runs.against(replying("{}", 401), api_key=api_key, token="t")
    assert words in told.ending.message
    assert told.ending.fault.settings == settings
