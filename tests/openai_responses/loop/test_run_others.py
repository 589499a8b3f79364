"""Streams of other servers: each is read to its end, and a tool runs once.

The transcripts of `testkit/streams/others` are written by hand in the shapes that these
servers send, except for those of llama.cpp and those with a version in their names:
these were recorded. They have other words and fewer deltas. The second round of vLLM
0.32.0 has the recorded events of its first one. What is special about each server is in
docs/servers.md.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_reasoning,
    item_texts,
)
from openai_responses.loop.events import RunEvent, Status, ToolOutput
from openai_responses.loop.response import ResponseState
from openai_responses.loop.run import run
from openai_responses.loop.tools import Toolset
from openai_responses.repairs.chat_repairs import LeaveOutPlainReasoning
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import (
    EventStreamDecoder,
    ItemAdded,
    ItemDone,
    TextDelta,
    parse_event,
)
from runs.against_server import asking, end_of, limits
from runs.joining import grown_texts
from runs.tools import MemoryTools, calling
from upstream.server import (
    Answerer,
    Upstream,
    in_turn,
    replying,
    stream_in_pieces,
    streaming,
)

pytestmark = pytest.mark.asyncio

FOLDER = Path(__file__).resolve().parents[3] / "testkit" / "streams" / "others"
NAMES = sorted({path.name.removesuffix(".1.sse") for path in FOLDER.glob("*.1.sse")})
ANSWER = "It rains in Zürich 🌧 today.\n"
ARGUMENTS = {"city": "Zürich"}


def server_of(name: str) -> Answerer:
    """Answer with the rounds of a server."""
    rounds = [(FOLDER / f"{name}.{number}.sse").read_bytes() for number in (1, 2)]

    async def answer(request: web.Request) -> web.StreamResponse:
        return await stream_in_pieces(request, rounds.pop(0), None)

    return answer


async def events_of(
    connections: Connections, answer: Answerer
) -> tuple[list[RunEvent], MemoryTools, list[Any]]:
    """What a run reports, which tools it called, and what it sent."""
    tools = MemoryTools()
    async with Upstream(answer) as upstream:
        often = limits(2)
        sent = run(asking(), upstream.endpoint, connections, often, Toolset(tools))
        return [event async for event in sent], tools, upstream.bodies


def assert_is_sound(events: list[RunEvent]) -> None:
    """Items begin once, end once, are at their places, and were shown as they are."""
    output = end_of(events).output
    texts = grown_texts(events)
    begun = [event.output_index for event in events if isinstance(event, ItemAdded)]
    assert max(Counter(begun).values()) == 1
    for event in events:
        if isinstance(event, ItemDone | ToolOutput):
            assert output[event.output_index] == event.item
        if isinstance(event, ItemDone):
            assert event.output_index in begun
            places = dict(item_texts(event.item))
            assert places == {
                position[1:]: text
                for position, text in texts.items()
                if position[0] == event.output_index
            }


def event_of(kind: str, **fields: Any) -> bytes:
    """One event as it is sent."""
    return f"data: {json.dumps({'type': kind, **fields})}\n\n".encode()


PLAIN = {*NAMES} - {"ollama", "open-responses-server"}
"""Servers that give reasoning as plain text, without an encrypted form."""


BEFORE_THE_CALL = {"hugging-face": "I look. ", "vllm-0.32.0": "\n\n"}
"""The texts of messages in front of the call."""


def types_of(items: Any) -> Counter[str]:
    """How many items there are of each type."""
    return Counter(item["type"] for item in items)


@pytest.mark.parametrize("name", NAMES)
async def test_each_server_runs_the_call_once_and_shows_the_answer_once(
    name: str, connections: Connections
) -> None:
    """A thought, a call that runs once, an answer that is shown once."""
    events, tools, bodies = await events_of(connections, server_of(name))

    assert tools.called == [("get_weather", ARGUMENTS)]
    end = end_of(events)
    assert end.ending.kind == "completed"
    assert_is_sound(events)
    shown = [
        text for position, text in grown_texts(events).items() if position[1] == "text"
    ]
    whole = f"{ANSWER}\n\n" if name == "open-responses-server" else ANSWER
    first = BEFORE_THE_CALL.get(name)
    assert shown == ([first, whole] if first else [whole])
    kinds = types_of(end.output)
    assert kinds["function_call"] == kinds["function_call_output"] == 1
    assert kinds["reasoning"] == (0 if name == "open-responses-server" else 2)
    assert kinds["message"] == (2 if first else 1)
    second: list[Item] = bodies[1]["input"]
    calls = [item["call_id"] for item in second if is_call(item)]
    assert calls == [item["call_id"] for item in second if is_call_output(item)]
    assert len(calls) == 1
    thoughts = [item for item in second if is_reasoning(item)]
    assert len(thoughts) == (name in PLAIN or name == "ollama")
    if name in PLAIN:
        given = next(filter(is_reasoning, end.output))
        for key in ("id", "content", "summary"):
            assert thoughts[0].get(key) == given.get(key)


@pytest.mark.parametrize("name", NAMES)
async def test_texts_are_shown_when_they_come(name: str) -> None:
    """Not at the end of the answer: each delta is an event of the same text."""
    wire = (FOLDER / f"{name}.2.sse").read_bytes()
    state = ResponseState()
    decoder = EventStreamDecoder()
    read = [parse_event(e) for e in [*decoder.feed(wire), *decoder.close()]]

    deltas = [event for event in read if type(event) is TextDelta]
    shown = [[type(event) for event in state.feed(delta)] for delta in deltas]

    assert len(deltas) >= 3
    assert all(types[-1] is TextDelta for types in shown)


def call_for(item_id: str, call_id: str, city: str) -> Item:
    """A finished call for the weather of a city."""
    arguments = json.dumps({"city": city})
    return calling("get_weather", arguments=arguments, id=item_id, call_id=call_id)


def response_with(*output: Item) -> Answerer:
    """Answer in one piece, with this output."""
    body = {"id": "r", "status": "completed", "output": list(output)}
    return replying(json.dumps(body))


async def test_calls_whose_ids_start_anew_in_each_response(
    connections: Connections,
) -> None:
    """Each runs, and each pair has an id of its own in all later requests.

    Bedrock numbers the calls of each response from 0, under item ids that differ (in the
    recordings of pydantic-ai with `openai.gpt-5.5`).
    """
    answer = in_turn(
        response_with(call_for("fc_36f0", "call_0", "Bern")),
        response_with(
            call_for("fc_227c", "call_0", "Basel"),
            call_for("fc_7a9e", "call_1", "Genf"),
        ),
        response_with(call_for("fc_b71e", "call_0", "Chur")),
        response_with(),
    )

    events, tools, bodies = await events_of(connections, answer)

    cities = [arguments["city"] for _, arguments in tools.called]
    assert cities == ["Bern", "Basel", "Genf", "Chur"]
    assert not [event for event in events if getattr(event, "failed", False)]
    assert_is_sound(events)
    pairs = [
        (item["type"], item["call_id"])
        for item in bodies[-1]["input"]
        if is_call(item) or is_call_output(item)
    ]
    assert pairs == [
        ("function_call", "call_0"),
        ("function_call_output", "call_0"),
        ("function_call", "call_0_2"),
        ("function_call", "call_1"),
        ("function_call_output", "call_0_2"),
        ("function_call_output", "call_1"),
        ("function_call", "call_0_3"),
        ("function_call_output", "call_0_3"),
    ]
    before = bodies[-2]["input"]
    assert bodies[-1]["input"][: len(before)] == before


@pytest.mark.parametrize("given", [{}, {"call_id": 7}])
@pytest.mark.parametrize("form", ["stream", "whole"])
async def test_calls_without_a_call_id(
    given: Item, form: str, connections: Connections
) -> None:
    """Each gets an id of ours, so that it runs, once, and has its output."""
    body = {"type": "function_call", "name": "get_weather", "arguments": ""}
    calls: list[Item] = [{**body, **given, "id": f"fc_{n}"} for n in (1, 2)]
    wire = b""
    for number, call in enumerate(calls):
        position = {"output_index": number}
        text = {**position, "item_id": call["id"], "delta": '{"city": "Bern"}'}
        wire += event_of("response.output_item.added", **position, item={**call})
        wire += event_of("response.function_call_arguments.delta", **text)
        call["arguments"] = text["delta"]
        wire += event_of("response.output_item.done", **position, item=call)
    response = {"id": "r", "status": "completed", "output": calls}
    wire += event_of("response.completed", response=response)
    first = streaming(wire) if form == "stream" else replying(json.dumps(response))
    over = replying(json.dumps({**response, "output": []}))

    events, tools, bodies = await events_of(connections, in_turn(first, over))

    assert tools.called == [("get_weather", {"city": "Bern"})] * 2
    assert_is_sound(events)
    ids = [item["call_id"] for item in bodies[1]["input"] if is_call(item)]
    outputs = [item for item in bodies[1]["input"] if is_call_output(item)]
    assert ids == [item["call_id"] for item in outputs]
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
    code: str | int, message: str, words: str, connections: Connections
) -> None:
    """Its code is an HTTP status; OpenAI is not blamed for it."""
    error = {"code": code, "message": message}
    answer = streaming(event_of("error", error=error))
    events, _, _ = await events_of(connections, answer)
    message = end_of(events).ending.message
    assert message.startswith(words)
    assert "OpenAI" not in message


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
    status: int, message: str, again: int, connections: Connections
) -> None:
    """The run goes on without it; a step that nothing named teaches nothing."""
    rounds = server_of("llama.cpp")

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if any(map(is_reasoning, body["input"])):
            return web.json_response({"error": {"message": message}}, status=status)
        return await rounds(request)

    events, tools, bodies = await events_of(connections, answer)

    assert end_of(events).ending.kind == "completed"
    assert len(tools.called) == 1
    sent = [any(map(is_reasoning, body["input"])) for body in bodies]
    assert sent == [False, True, *[True] * again, False]
    all_tried = [event.tried for event in events if isinstance(event, Status)]
    [tried] = [tried for tried in all_tried if tried]
    assert not tried.is_lasting
    assert tried.repair == LeaveOutPlainReasoning()


FULL = {
    "code": 400,
    "message": "request (2173 tokens) exceeds the available context size (2048 tokens)"
    ", try increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 2173,
    "n_ctx": 2048,
}
"""What llama.cpp says of a chat that does not fit (recorded, b10434)."""


@pytest.mark.parametrize("form", ["status", "stream"])
async def test_a_chat_that_does_not_fit_is_refused_like_openais(
    form: str, connections: Connections
) -> None:
    """Neither thoughts nor calls are taken from it: that would not make it fit."""
    rounds = server_of("llama.cpp")

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if not any(map(is_reasoning, body["input"])):
            return await rounds(request)
        if form == "stream":
            return await streaming(event_of("error", error=FULL))(request)
        return web.json_response({"error": FULL}, status=400)

    events, _, bodies = await events_of(connections, answer)

    assert len(bodies) == 2
    end = end_of(events)
    assert end.ending.code == "context_length_exceeded"
    assert "longer than the model can read" in end.ending.message


@pytest.mark.parametrize("again", [replying("{broken"), streaming(b"")])
async def test_an_unreadable_answer_in_one_piece_ends(
    again: Answerer, connections: Connections
) -> None:
    """Without a stream there is nothing left to try, also if it streams all the same."""
    broken = streaming(b"data: {broken\n\n")
    answer = in_turn(broken, broken, again)
    events, _, bodies = await events_of(connections, answer)

    assert end_of(events).ending.kind in ("unreadable", "malformed")
    assert len(bodies) == 3
