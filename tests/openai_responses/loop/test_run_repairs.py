"""A refusal that can be repaired costs one more request, and no answer."""

import json
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from openai_responses.items import Item, text_message
from openai_responses.loop.events import Status
from openai_responses.loop.tools import Toolset
from openai_responses.requests.build import ResponsesRequest
from runs.against_server import Runs, Told, limits, report
from runs.tools import CITY, MemoryTools
from simulator import Simulator
from simulator.faults import (
    DELIVERIES,
    FORMS,
    refuse_item,
    refuse_parameter,
    refuse_tool,
)
from simulator.faults.parts import RefusedPart
from upstream import wire
from upstream.server import Answerer, Upstream, in_turn, replying, streaming

pytestmark = pytest.mark.asyncio

TWICE = limits(retries=1)
OK = streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Hello"))))


def refusing(error: object, status: int = 400) -> Answerer:
    return replying(json.dumps({"error": error}), status)


async def repaired(runs: Runs, request: ResponsesRequest, *refusals: Answerer) -> Told:
    """What a run tells that is answered after these refusals."""
    told = await runs.against(*refusals, OK, request=request, within=TWICE)
    assert (told.kind, len(told.sent)) == ("completed", len(refusals) + 1)
    return told


def user(text: str) -> Item:
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part]}


USER = user("Hi")
THOUGHT = wire.reasoning_item("Hm", sealed="gAAA")
ANSWER: Item = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}


def asking(**fields: Any) -> ResponsesRequest:
    """Return a request with everything that can be refused."""
    asked: dict[str, Any] = {
        "model": "gpt-5.6-sol",
        "input": [user("Hi")],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }
    return ResponsesRequest(**(asked | fields))


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
LOOKED = wire.call_item("look", "{}")
OUTPUT = {"type": "function_call_output", "call_id": LOOKED["call_id"]}
SEEING = [
    {**USER, "content": [*USER["content"], PICTURE]},
    LOOKED,
    {**OUTPUT, "output": [PICTURE]},
    {**USER, "content": [PICTURE]},
]
NO_EYES = (
    "image input is not supported - hint: if this is unexpected, you may need to provide "
    "the mmproj"
)


@pytest.mark.parametrize(
    ("message", "quoted", "is_lasting"),
    [
        (NO_EYES, "", True),
        (f"litellm.InternalServerError: {NO_EYES}", "", True),
        (f"cannot read: {NO_EYES}", NO_EYES, False),
    ],
    ids=["llama.cpp", "LiteLLM", "quoted"],
)
async def test_model_that_cannot_see_answers_without_the_images(
    message: str, quoted: str, is_lasting: bool, runs: Runs
) -> None:
    """All at once, and at once: a status of 500 is a refusal here (recorded).

    What the chat could have said is not remembered.
    """
    error = {"code": 500, "type": "server_error", "message": message}
    asked = asking(input=[*SEEING, user(quoted)])
    told = await repaired(runs, asked, refusing(error, 500))

    assert told.repairs == ["LeaveOutImages"]
    [tried] = [status.tried for status in told.of(Status) if status.tried]
    assert tried.is_lasting is is_lasting
    sent = json.dumps(told.sent[1]["input"])
    assert "input_image" not in sent
    assert sent.count("An image or file was here") == 3
    assert told.sent[1]["input"][1:2] == SEEING[1:2]


async def test_choice_of_tools_that_a_server_does_not_implement(runs: Runs) -> None:
    """Of vLLM (its issue 53626): waiting does not help, and nothing else changes."""
    message = "Only 'auto' or 'none' tool_choice is supported in response API"
    error = {"message": message, "type": "NotImplementedError", "code": 501}
    asked = asking(input=SEEING, tools=[TOOL], tool_choice="required")
    told = await repaired(runs, asked, refusing(error, 501))

    assert told.repairs == ["LeaveOutToolChoice"]
    before, after = told.sent
    assert "tool_choice" not in after
    assert (after["tools"], after["input"]) == ([TOOL], before["input"])


async def test_trouble_of_a_server_is_no_refusal_of_images(runs: Runs) -> None:
    trouble = refusing({"code": 500, "message": "Oh no."}, 500)
    told = await repaired(runs, asking(input=SEEING), trouble)
    assert told.sent[0] == told.sent[1]


TOOL = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": False}


async def test_server_that_only_streams_answers_a_task(runs: Runs) -> None:
    """The host wants titles whole; what comes as a stream is one answer, too."""
    refused = replying(json.dumps({"detail": "Stream must be set to true"}), 400)
    told = await repaired(runs, asking(stream=False), refused)
    assert [body["stream"] for body in told.sent] == [False, True]


async def test_safeguard_that_a_gateway_adds_is_not_blamed(runs: Runs) -> None:
    """The same bytes are sent once more, which the backend of Codex mostly answers."""
    named = {"param": "prompt_cache_retention", "code": "invalid_parameter"}
    refused = refusing({**named, "message": "It is not supported on this model"})
    told = await repaired(runs, asking(), refused)
    assert told.sent[0] == told.sent[1]

    told = await runs.against(refused, request=asking(), within=TWICE)
    assert "rejected the request with HTTP 400 (" in told.ending.message
    assert told.ending.fault.settings == ()


async def test_store_in_words_alone_is_named(runs: Runs) -> None:
    error = {"code": "invalid_request_error", "type": "invalid_request_error"}
    refused = refusing({**error, "message": "unsupported request field(s): store"})
    told = await runs.against(refused, request=asking(), within=TWICE)
    assert "at store." in told.ending.message
    assert len(told.sent) == 1


NO_SAFEGUARD = "Unrecognized request argument supplied: safety_identifier"


@pytest.mark.parametrize(
    ("quoted", "is_named"), [("", True), (f"See {NO_SAFEGUARD}", False)]
)
async def test_safeguard_in_words_alone_is_named_and_stays(
    quoted: str, is_named: bool, runs: Runs
) -> None:
    """At once, with the whole chat; but not what a person may have written."""
    asked = asking(input=[USER, user(quoted)], safety_identifier="u")
    told = await runs.against(refusing({"message": NO_SAFEGUARD}), request=asked)
    assert ("at safety_identifier" in told.ending.message) is is_named
    assert ("compatibility" in told.ending.fault.settings) is is_named
    assert (len(told.sent) == 1) is is_named
    assert all(body["safety_identifier"] == "u" for body in told.sent)


REFUSALS = {
    "LeaveOutReasoning": {"code": "invalid_encrypted_content", "message": "No."},
    "reasoning.summary": {"code": "unsupported_value", "param": "reasoning.summary"},
    "stream": {
        "type": "invalid_request_error",
        "code": "unsupported_value",
        "param": "stream",
        "message": "Your organization must be verified to stream this model.",
    },
    "reasoning.effort": {
        "param": "reasoning.effort",
        "message": "Supported values are: 'low' and 'high'.",
    },
}
EVERYTHING = asking(input=[USER, THOUGHT, ANSWER, USER])


@pytest.mark.parametrize("named", REFUSALS)
async def test_server_that_refuses_all_the_same(runs: Runs, named: str) -> None:
    """It gets its way after three repairs and the plain texts, each sent once."""
    answer = refusing(REFUSALS[named])
    told = await runs.against(answer, request=EVERYTHING, within=limits(retries=5))
    sent = [json.dumps(body, sort_keys=True) for body in told.sent]
    assert told.repairs[0] == named
    assert len(told.repairs) <= 5
    assert not {"PlainItems", "WordsAlone"} & set(told.repairs[:-2])
    assert len(sent) == len({*sent}) == len(told.repairs) + 1
    assert told.kind == "refused"


@pytest.mark.parametrize("left_out", REFUSALS)
async def test_three_refusals_in_a_row(runs: Runs, left_out: str) -> None:
    named = [name for name in REFUSALS if name != left_out]
    refusals = [refusing(REFUSALS[name]) for name in named]
    told = await repaired(runs, EVERYTHING, *refusals)
    assert told.repairs == named
    last = told.sent[-1]
    assert (last["input"] == [USER, ANSWER, USER]) == ("LeaveOutReasoning" in named)
    assert ("summary" not in last["reasoning"]) == ("reasoning.summary" in named)
    assert (last["reasoning"]["effort"] == "low") == ("reasoning.effort" in named)
    assert ("stream" not in last) == ("stream" in named)


async def test_repair_before_a_retry(runs: Runs) -> None:
    refusal = refusing(REFUSALS["reasoning.summary"])
    busy = replying("{}", 503, headers={"Retry-After-Ms": "1"})
    told = await repaired(runs, asking(), refusal, busy)
    assert told.repairs == ["reasoning.summary", ""]
    assert told.sent[1] == told.sent[2]


@pytest.mark.parametrize(
    ("opening", "repairs"),
    [
        pytest.param([], ["LeaveOutReasoning"], id="the only event"),
        pytest.param([wire.created()], ["LeaveOutReasoning"], id="nothing was shown"),
        pytest.param(
            [wire.created(), *wire.message("Hello")[:3]], [], id="words were shown"
        ),
    ],
)
async def test_refusal_in_the_stream_is_repaired_unless_words_were_shown(
    runs: Runs, opening: wire.Events, repairs: list[str]
) -> None:
    error = wire.error_nested("invalid_encrypted_content")
    refusal = streaming(wire.on_the_wire(*opening, error))
    told = await runs.against(refusal, OK, request=EVERYTHING, within=TWICE)
    assert len(told.sent) == len(repairs) + 1
    assert told.repairs == repairs
    assert told.kind == ("completed" if repairs else "error")


async def test_repairs_of_one_response_hold_for_the_next(runs: Runs) -> None:
    """After a tool the changed request goes on: the refusal is met once."""
    made = wire.function_call("get_weather", '{"city": "Bern"}', at=0)
    call = streaming(wire.on_the_wire(*wire.whole_stream(made)))
    refusal = refusing(REFUSALS["reasoning.summary"])
    request = EVERYTHING.model_copy(update={"tools": [TOOL]})
    tools = Toolset(MemoryTools())
    told = await runs.against(refusal, call, OK, request=request, toolset=tools)
    assert [body["reasoning"] for body in told.sent[1:]] == [{"effort": "medium"}] * 2
    assert told.kind == "completed"


async def test_nothing_to_leave_out(runs: Runs) -> None:
    """A refusal of what was not sent is final."""
    refusal = refusing(REFUSALS["LeaveOutReasoning"])
    told = await runs.against(refusal, OK, request=asking(), within=TWICE)
    assert (len(told.sent), told.log) == (1, ["run refused"])
    assert "Start a new chat" in told.ending.message


PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


SEEN = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
SEARCHED = {"type": "search", "query": "x"}
CALL = {"type": "function_call", "call_id": "call_12345", "name": "look"}
SUN = {"type": "function_call_output", "call_id": "call_12345", "output": "sun"}
FOUND = {"type": "web_search_call", "id": "ws_1234567", "status": "completed"}
CHAT = [
    text_message("user", "one"),
    {**FOUND, "action": SEARCHED},
    text_message("assistant", "first"),
    text_message("user", "two"),
    {**CALL, "arguments": "{}"},
    SUN,
    text_message("assistant", "second"),
    {"type": "message", "role": "user", "content": [SEEN]},
    text_message("assistant", "third"),
    text_message("user", "four"),
]
LOOK = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "look", "parameters": LOOK, "strict": False},
    {"type": "web_search"},
]


REQUEST = ResponsesRequest(
    model="gpt-5.6-sol",
    input=CHAT,
    tools=TOOLS,
    include=["reasoning.encrypted_content"],
    reasoning={"effort": "low", "summary": "auto"},
    text={"verbosity": "low"},
    prompt_cache_key="k",
)


async def answered(
    runs: Runs, sim: Simulator, *faults: RefusedPart, retries: int = 0
) -> Told:
    """What a run tells that gets an answer from a server with these faults."""
    sim.faults.extend(faults)
    told = await runs.of(sim, REQUEST, limits(retries))
    assert told.kind == "completed"
    return told


REFUSED = {
    "search": refuse_item("web_search_call"),
    "call": refuse_item("function_call"),
    "output": refuse_item("function_call_output"),
    "key": refuse_item("message", key="type"),
    "picture": refuse_item("message", part="input_image"),
    "answer": refuse_item("message", text='"second"'),
    "function": refuse_tool("look"),
    "hosted tool": refuse_tool("web_search"),
    "verbosity": refuse_parameter("text.verbosity"),
    "cache key": refuse_parameter("prompt_cache_key"),
    "summary": refuse_parameter("reasoning.summary"),
}


@pytest.mark.parametrize(
    ("refused", "form"),
    [
        *(("call", form) for form in FORMS),
        *zip(sorted({*REFUSED} - {"call"}), cycle(FORMS), strict=False),
    ],
)
async def test_refused_part_is_found_in_every_form(
    runs: Runs, sim: Simulator, refused: str, form: str
) -> None:
    """One more request, and an answer; a call that nothing names becomes words.

    Before that the answer has no optional settings.
    """
    told = await answered(runs, sim, replace(REFUSED[refused], form=form))
    counts = {("call", "phrase"): 4, ("answer", "fields"): 3}
    assert len(told.sent) == counts.get((refused, form), 2)


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_refusal_inside_of_a_stream(
    runs: Runs, sim: Simulator, delivery: str
) -> None:
    """After `created`, where nothing was shown."""
    told = await answered(runs, sim, replace(REFUSED["search"], delivery=delivery))
    assert len(told.sent) == 2


async def test_several_parts_and_then_the_plain_words(
    runs: Runs, sim: Simulator
) -> None:
    names = ("verbosity", "cache key", "summary", "search")
    told = await answered(runs, sim, *(REFUSED[name] for name in names))
    named = ["text.verbosity", "prompt_cache_key", "reasoning.summary"]
    assert told.repairs == [*named, "PlainItems"]


async def test_refusal_that_looks_like_trouble_is_met_with_plain_words_at_last(
    runs: Runs, sim: Simulator
) -> None:
    """An error of a stream that names nothing; a chat does not remember it."""
    nameless = replace(REFUSED["call"], form="unnamed", delivery="error-flat")
    told = await answered(runs, sim, nameless, retries=1)
    assert told.repairs == ["", "PlainItems", "WordsAlone"]
    all_tried = [status.tried for status in told.of(Status)]
    assert [tried.is_lasting for tried in all_tried if tried] == [False, False]


@pytest.mark.parametrize(
    ("effort", "repair"), [("medium", "PlainItems"), ("low", "LeaveOutOptions")]
)
async def test_options_that_a_server_took_before_stay(
    effort: str, repair: str, runs: Runs
) -> None:
    """What is new is the chat, so that is refused; another effort is new, too."""
    refusal = refusing({"message": "It cannot be."}, 422)
    chat = asking(input=[USER, THOUGHT, ANSWER, USER], reasoning={"effort": effort})
    asked = (asking(reasoning={"effort": "medium"}), chat)
    async with Upstream(in_turn(OK, refusal, OK)) as server:
        for request in asked:
            events = await report(runs.connections, server.endpoint, request)
    assert Told(events).repairs == [repair]


async def test_what_is_named_after_blind_steps_is_repaired(runs: Runs) -> None:
    """Those steps do not count for the limit of repairs that a refusal names."""
    unclear = refusing({"message": "The input holds a call that cannot be read."})
    named = [
        refusing({"message": f"Unknown parameter: '{name}'.", "param": name})
        for name in ("include", "reasoning.summary")
    ]
    chat = [USER, ANSWER, LOOKED, {**OUTPUT, "output": "No."}, USER]

    told = await runs.against(
        *(unclear, unclear, unclear, *named, OK),
        request=asking(input=chat),
        within=TWICE,
        compatibility="openai",
    )

    assert told.kind == "completed"
    assert told.repairs[-2:] == ["include", "reasoning.summary"]
