"""Streams of other servers: each is read to its end, and a tool runs once.

The transcripts of `testkit/streams/others` are written by hand in the shapes that these
servers send, except for those of llama.cpp and those with a version in their names:
these were recorded. They have other words and fewer deltas. The second round of vLLM
0.32.0 has the recorded events of its first one. What is special about each server is in
docs/servers.md.
"""

import json
from collections import Counter

import pytest
from aiohttp import web

from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_reasoning,
    item_texts,
)
from openai_responses.loop.events import Status, ToolOutput
from openai_responses.loop.response import ResponseState
from openai_responses.loop.tools import Toolset
from openai_responses.repairs.chat_repairs import LeaveOutPlainReasoning
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ItemAdded,
    ItemDone,
    TextDelta,
    parse_event,
)
from runs.against_server import Runs, Told, assert_output_holds, limits
from runs.joining import grown_texts
from runs.sample import without
from runs.tools import MemoryTools, calling
from upstream import wire
from upstream.odd_streams import ANSWER, FOLDER, stream_of
from upstream.server import Answerer, in_turn, replying, streaming

pytestmark = pytest.mark.asyncio

NAMES = sorted({path.name.removesuffix(".1.sse") for path in FOLDER.glob("*.1.sse")})
ARGUMENTS = {"city": "Zürich"}
CITY = '{"city": "Bern"}'


def server_of(name: str) -> Answerer:
    return in_turn(*(streaming(stream_of(f"{name}.{number}")) for number in (1, 2)))


async def told_by(runs: Runs, *answers: Answerer) -> Told:
    """What a run with a tool tells, which asks again at most twice."""
    toolset = Toolset(MemoryTools())
    return await runs.against(*answers, within=limits(2), toolset=toolset)


def assert_is_sound(told: Told) -> None:
    """Items begin once, end once, are at their places, and were shown as they are."""
    assert_output_holds(told.events)
    texts = grown_texts(told.events)
    begun = [event.output_index for event in told.of(ItemAdded)]
    assert max(Counter(begun).values()) == 1
    for event in told.of(ItemDone):
        assert event.output_index in begun
        assert dict(item_texts(event.item)) == {
            position[1:]: text
            for position, text in texts.items()
            if position[0] == event.output_index
        }


SEALED = {"ollama", "litellm-1.110.2-claude"}
PLAIN = {*NAMES} - SEALED - {"open-responses-server"}


BEFORE_THE_CALL = {
    "hugging-face": "I look. ",
    "litellm-1.110.2-claude": "Let me look.",
    "vllm-0.32.0": "\n\n",
}
"""The texts of messages in front of the call."""


@pytest.mark.parametrize("name", NAMES)
async def test_each_server_runs_the_call_once_and_shows_the_answer_once(
    name: str, runs: Runs
) -> None:
    told = await told_by(runs, server_of(name))

    assert (told.kind, told.called) == ("completed", [("get_weather", ARGUMENTS)])
    assert_is_sound(told)
    texts = grown_texts(told.events).items()
    shown = [text for place, text in texts if place[1] == "text"]
    whole = f"{ANSWER}\n\n" if name == "open-responses-server" else ANSWER
    first = BEFORE_THE_CALL.get(name)
    assert shown == ([first, whole] if first else [whole])
    kinds = Counter(item["type"] for item in told.output)
    assert kinds["function_call"] == kinds["function_call_output"] == 1
    assert kinds["reasoning"] == (0 if name == "open-responses-server" else 2)
    assert kinds["message"] == (2 if first else 1)
    second: list[Item] = told.sent[1]["input"]
    calls = [item["call_id"] for item in second if is_call(item)]
    assert calls == [item["call_id"] for item in second if is_call_output(item)]
    assert len(calls) == 1
    thoughts = [item for item in second if is_reasoning(item)]
    assert len(thoughts) == (name in PLAIN or name in SEALED)
    sealed = [item for item in thoughts if item.get("encrypted_content")]
    assert len(sealed) == (name in SEALED)
    if name in PLAIN:
        given = next(filter(is_reasoning, told.output))
        for key in ("id", "content", "summary"):
            assert thoughts[0].get(key) == given.get(key)


@pytest.mark.parametrize("name", NAMES)
async def test_texts_are_shown_when_they_come(name: str) -> None:
    """Not at the end of the answer: each delta is an event of the same text."""
    state = ResponseState()
    decoder = EventStreamDecoder()
    read = map(parse_event, [*decoder.feed(stream_of(f"{name}.2")), *decoder.close()])

    deltas = [event for event in read if type(event) is TextDelta]
    shown = [[type(event) for event in state.feed(delta)] for delta in deltas]

    assert len(deltas) >= 3
    assert all(types[-1] is TextDelta for types in shown)


def response_with(*calls: tuple[str, str, str]) -> Answerer:
    """Answer in one piece with calls: item id, call id, and the city."""
    output = [
        calling("get_weather", 0, json.dumps({"city": city}), id=own, call_id=call_id)
        for own, call_id, city in calls
    ]
    return replying(json.dumps({"id": "r", "status": "completed", "output": output}))


async def test_calls_whose_ids_start_anew_in_each_response(runs: Runs) -> None:
    """Each runs, and each pair has an id of its own in all later requests.

    Bedrock numbers the calls of each response from 0, under item ids that differ (in the
    recordings of pydantic-ai with `openai.gpt-5.5`).
    """
    told = await told_by(
        runs,
        response_with(("fc_36f0", "call_0", "Bern")),
        response_with(("fc_227c", "call_0", "Basel"), ("fc_7a9e", "call_1", "Genf")),
        response_with(("fc_b71e", "call_0", "Chur")),
        response_with(),
    )

    cities = [arguments["city"] for _, arguments in told.called]
    assert cities == ["Bern", "Basel", "Genf", "Chur"]
    assert not any(output.failed for output in told.of(ToolOutput))
    assert_is_sound(told)
    *_, before, sent = [body["input"] for body in told.sent]
    call, output = "function_call", "function_call_output"
    assert [
        (item["type"], item["call_id"])
        for item in sent
        if is_call(item) or is_call_output(item)
    ] == [
        *((call, "call_0"), (output, "call_0")),
        *((call, "call_0_2"), (call, "call_1")),
        *((output, "call_0_2"), (output, "call_1")),
        *((call, "call_0_3"), (output, "call_0_3")),
    ]
    assert sent[: len(before)] == before


@pytest.mark.parametrize("given", [{}, {"call_id": 7}])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_calls_without_a_call_id(
    given: Item, is_streamed: bool, runs: Runs
) -> None:
    """Each gets an id of ours, so that it runs, once, and has its output."""
    groups = [wire.function_call("get_weather", CITY, at=at) for at in (0, 1)]
    for group in groups:
        for event in (group[0], group[-1]):
            event["item"] = {**without(event["item"], "call_id"), **given}
    stream = wire.whole_stream(*groups)
    whole = replying(json.dumps(stream[-1]["response"]))
    first = streaming(wire.on_the_wire(*stream)) if is_streamed else whole

    told = await told_by(runs, first, response_with())

    assert told.called == [("get_weather", {"city": "Bern"})] * 2
    assert_is_sound(told)
    sent = told.sent[1]["input"]
    ids = [item["call_id"] for item in sent if is_call(item)]
    assert ids == [item["call_id"] for item in sent if is_call_output(item)]
    assert len({*ids}) == 2


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (
            "404",
            "The model `x` does not exist.",
            "The model gpt-5.6-sol does not exist",
        ),
        (500, "oops", "127.0.0.1 reported an internal error (HTTP 500)"),
    ],
)
async def test_an_error_in_a_stream_names_server_and_model(
    code: str | int, message: str, words: str, runs: Runs
) -> None:
    """Its code is an HTTP status; OpenAI is not blamed for it."""
    error = {"type": "error", "error": {"code": code, "message": message}}
    told = await told_by(runs, streaming(wire.on_the_wire(error)))
    assert told.ending.message.startswith(words)
    assert "OpenAI" not in told.ending.message


@pytest.mark.parametrize(
    ("status", "message", "again"),
    [
        pytest.param(400, "bad request", 1, id="nothing is named"),
        pytest.param(
            422, "Input should be a valid list: reasoning.content", 0, id="in words"
        ),
    ],
)
async def test_a_server_that_does_not_take_its_reasoning_back(
    status: int, message: str, again: int, runs: Runs
) -> None:
    """The run goes on without it; a step that nothing named teaches nothing."""
    refusal = replying(json.dumps({"error": {"message": message}}), status)
    told = await told_by(runs, refusing_reasoning(server_of("llama.cpp"), refusal))

    assert (told.kind, len(told.called)) == ("completed", 1)
    sent = [any(map(is_reasoning, body["input"])) for body in told.sent]
    assert sent == [False, True, *[True] * again, False]
    [tried] = [status.tried for status in told.of(Status) if status.tried]
    assert (tried.repair, tried.is_lasting) == (LeaveOutPlainReasoning(), False)


def refusing_reasoning(server: Answerer, refusal: Answerer) -> Answerer:
    """Answer like a server that refuses a chat with reasoning."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        has_reasoning = any(map(is_reasoning, body["input"]))
        return await (refusal if has_reasoning else server)(request)

    return answer


FULL = {
    "code": 400,
    "message": "request (2173 tokens) exceeds the available context size (2048 tokens)"
    ", try increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 2173,
    "n_ctx": 2048,
}
"""What llama.cpp says of a chat that does not fit (recorded, b10434)."""


@pytest.mark.parametrize(
    "refusal",
    [
        replying(json.dumps({"error": FULL}), 400),
        streaming(wire.on_the_wire({"type": "error", "error": FULL})),
    ],
    ids=["status", "stream"],
)
async def test_a_chat_that_does_not_fit_is_refused_like_openais(
    refusal: Answerer, runs: Runs
) -> None:
    """Neither thoughts nor calls are taken from it: that would not make it fit."""
    told = await told_by(runs, refusing_reasoning(server_of("llama.cpp"), refusal))
    assert len(told.sent) == 2
    assert told.ending.code == "context_length_exceeded"
    assert "longer than the model can read" in told.ending.message


@pytest.mark.parametrize("again", [replying("{broken}"), streaming(b"")])
async def test_an_unreadable_answer_in_one_piece_ends(
    again: Answerer, runs: Runs
) -> None:
    """Without a stream there is nothing left to try, also if it streams all the same."""
    broken = streaming(b"data: {broken\n\n")
    told = await told_by(runs, broken, broken, again)
    assert told.kind in ("unreadable", "malformed")
    assert len(told.sent) == 3
