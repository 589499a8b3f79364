"""A refusal that can be repaired costs one more request, and no answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from openai_responses.items import Item
from openai_responses.loop.events import Status
from openai_responses.loop.tools import Toolset
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.connections import Connections
from runs.against_server import (
    end_of,
    limits,
    repairs_of,
    report,
    report_with_tools,
    simulated,
)
from runs.log import log_of
from runs.tools import CITY, MemoryTools
from simulator import Simulator
from upstream import wire
from upstream.server import Answerer, Upstream, in_turn, replying, streaming

pytestmark = pytest.mark.asyncio

TWICE = limits(retries=1)
OK = streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Hello"))))


def user(text: str) -> Item:
    """Return a message of a person."""
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part]}


USER = user("Hi")
THOUGHT = wire.reasoning_item("Hm", sealed="gAAA")
ANSWER: Item = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}


def asking(text: str = "Hi", **fields: Any) -> ResponsesRequest:
    """Return a request with everything that can be refused."""
    asked: dict[str, Any] = {
        "model": "gpt-5.6-sol",
        "input": [user(text)],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }
    return ResponsesRequest(**(asked | fields))


@pytest_asyncio.fixture
async def unverified() -> AsyncIterator[Simulator]:
    """Return a server for an organization that gets no summaries."""
    async with Simulator("unverified") as simulator:
        yield simulator


def refusing(**fields: str) -> Answerer:
    """Answer with status 400 and this error."""
    return replying(json.dumps({"error": fields}), 400)


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
    message: str, quoted: str, is_lasting: bool, connections: Connections
) -> None:
    """All at once, and at once: a status of 500 is a refusal here (recorded).

    What the chat could have said is not remembered.
    """
    error = {"code": 500, "type": "server_error", "message": message}
    blind = replying(json.dumps({"error": error}), 500)
    asked = asking(input=[*SEEING, user(quoted)] if quoted else SEEING)
    async with Upstream(in_turn(blind, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["LeaveOutImages"]
    [tried] = [e.tried for e in events if isinstance(e, Status) and e.tried]
    assert tried.is_lasting is is_lasting
    assert len(upstream.bodies) == 2
    sent = json.dumps(upstream.bodies[1]["input"])
    assert "input_image" not in sent
    assert sent.count("An image or file was here") == 3
    assert upstream.bodies[1]["input"][1:2] == SEEING[1:2]


async def test_choice_of_tools_that_a_server_does_not_implement(
    connections: Connections,
) -> None:
    """Of vLLM (its issue 53626): waiting does not help, and nothing else changes."""
    message = "Only 'auto' or 'none' tool_choice is supported in response API"
    error = {"message": message, "type": "NotImplementedError", "code": 501}
    refusal = replying(json.dumps({"error": error}), 501)
    tool = {"type": "function", "name": "look", "parameters": CITY, "strict": False}
    asked = asking(input=SEEING, tools=[tool], tool_choice="required")
    async with Upstream(in_turn(refusal, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["LeaveOutOptions"]
    assert "tool_choice" not in upstream.bodies[1]
    assert upstream.bodies[1]["tools"] == [tool]
    assert upstream.bodies[1]["input"] == upstream.bodies[0]["input"]


async def test_trouble_of_a_server_is_no_refusal_of_images(
    connections: Connections,
) -> None:
    """Other words with a status of 500 are retried, with the images."""
    trouble = replying(json.dumps({"error": {"code": 500, "message": "Oh no."}}), 500)
    async with Upstream(in_turn(trouble, OK)) as upstream:
        events = await report(
            connections, upstream.endpoint, asking(input=SEEING), TWICE
        )

    assert log_of(events)[-1] == "run completed"
    assert upstream.bodies[0] == upstream.bodies[1]


TOOL = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": False}
NO_TOOLS = {
    "Ollama": (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    "OpenRouter": (404, 'No endpoints found that support tool use. Try disabling "x".'),
    "vLLM": (
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to '
        "be set",
    ),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "Groq": (400, "`tool calling` is not supported with this model"),
    "LiteLLM": (400, "ollama does not support parameters: ['tools'], for model=x."),
}


@pytest.mark.parametrize("server", NO_TOOLS)
async def test_model_that_cannot_call_tools_answers_without_them(
    server: str, connections: Connections
) -> None:
    """With its whole chat: only the tools are in the way."""
    status, message = NO_TOOLS[server]
    refusal = {"error": {"message": message, "type": "api_error", "code": status}}
    refused = replying(json.dumps(refusal), status)
    asked = asking(input=SEEING, tools=[TOOL])
    async with Upstream(in_turn(refused, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["LeaveOutFunctions"]
    with_tools, without = upstream.bodies
    assert with_tools.pop("tools") == [TOOL]
    assert without == with_tools


@pytest.mark.parametrize("status", [400, 500])
async def test_model_whose_instructions_have_to_come_first(
    status: int, connections: Connections
) -> None:
    """Qwen's template, behind vLLM and llama.cpp: a filter adds one in the middle."""
    words = "jinja template rendering failed. System message must be at the beginning."
    refused = replying(json.dumps({"error": {"message": words}}), status)
    note = {**user("It is Monday."), "role": "developer"}
    seen = {**note, "content": [PICTURE]}
    asked = asking(instructions="Be kind.", input=[USER, ANSWER, note, seen, USER])
    async with Upstream(in_turn(refused, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["GatherInstructions"]
    sent = upstream.bodies[1]
    assert sent["instructions"] == "Be kind.\n\nIt is Monday."
    assert sent["input"] == [USER, ANSWER, seen, USER]


@pytest.mark.parametrize("status", [400, 500])
async def test_model_that_takes_one_question_at_a_time(
    status: int, connections: Connections
) -> None:
    """Gemma's template, behind vLLM and llama.cpp, after an answer that failed."""
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    refused = replying(json.dumps({"error": {"message": words}}), status)
    asked = asking(input=[USER, user("Hello?"), ANSWER, USER])
    async with Upstream(in_turn(refused, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["JoinMessages"]
    first, *others = upstream.bodies[1]["input"]
    assert "".join(part["text"] for part in first["content"]) == "Hi\n\nHello?"
    assert others == [ANSWER, USER]


async def test_server_that_only_streams_answers_a_task(
    connections: Connections,
) -> None:
    """The host wants titles whole; what comes as a stream is one answer, too."""
    refused = replying(json.dumps({"detail": "Stream must be set to true"}), 400)
    asked = asking(stream=False)
    async with Upstream(in_turn(refused, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked, TWICE)

    assert log_of(events)[-1] == "run completed"
    assert [body["stream"] for body in upstream.bodies] == [False, True]


NO_SAFEGUARD = "Unrecognized request argument supplied: safety_identifier"


@pytest.mark.parametrize(
    ("quoted", "is_named"), [("", True), (f"See {NO_SAFEGUARD}", False)]
)
async def test_safeguard_in_words_alone_is_named_and_stays(
    quoted: str, is_named: bool, connections: Connections
) -> None:
    """At once, with the whole chat; but not what a person may have written."""
    refused = replying(json.dumps({"error": {"message": NO_SAFEGUARD}}), 400)
    items = [USER, user(quoted)] if quoted else [USER]
    asked = asking(input=items, safety_identifier="u")
    async with Upstream(refused) as upstream:
        events = await report(connections, upstream.endpoint, asked, limits(0))
        bodies = upstream.bodies
    ending = end_of(events).ending
    assert ("at safety_identifier" in ending.message) is is_named
    assert ("compatibility" in ending.fault.settings) is is_named
    assert (len(bodies) == 1) is is_named
    assert all(body["safety_identifier"] == "u" for body in bodies)


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
async def test_server_that_refuses_all_the_same(
    connections: Connections, named: str
) -> None:
    """It gets its way after three repairs and the plain texts, each sent once."""
    answer = refusing(**REFUSALS[named])
    async with Upstream(answer) as upstream, asyncio.timeout(60):
        within = limits(retries=5)
        events = await report(connections, upstream.endpoint, EVERYTHING, within)
        sent = [json.dumps(body, sort_keys=True) for body in upstream.bodies]
    done = repairs_of(events)
    assert done[0] == named
    assert len(done) <= 5
    assert not {"PlainItems", "WordsAlone"} & set(done[:-2])
    assert len(sent) == len({*sent}) == len(done) + 1
    assert log_of(events)[-1] == "run refused"


@pytest.mark.parametrize("left_out", REFUSALS)
async def test_three_refusals_in_a_row(connections: Connections, left_out: str) -> None:
    """One after the other, and what was given up stays given up."""
    named = [name for name in REFUSALS if name != left_out]
    refusals = [refusing(**REFUSALS[name]) for name in named]
    async with Upstream(in_turn(*refusals, OK)) as upstream:
        events = await report(connections, upstream.endpoint, EVERYTHING, limits())
        last = upstream.bodies[-1]
    assert repairs_of(events) == named
    assert log_of(events)[-1] == "run completed"
    assert (last["input"] == [USER, ANSWER, USER]) == ("LeaveOutReasoning" in named)
    assert ("summary" not in last["reasoning"]) == ("reasoning.summary" in named)
    assert (last["reasoning"]["effort"] == "low") == ("reasoning.effort" in named)
    assert ("stream" not in last) == ("stream" in named)


UNFIT_EFFORT = {
    "path": ["reasoning", "effort"],
    "message": "Expected 'low' | 'medium' | 'high', received 'minimal'",
}
UNFIT_THOUGHT = {
    "path": ["input"],
    "errors": [[{"path": []}], [{"path": [1], "errors": [[{"path": ["role"]}]]}]],
    "message": "Invalid input",
}


def from_openrouter(issue: Item) -> Item:
    """Return a refusal with the code of a policy (openai/codex 18307)."""
    error = {"code": "invalid_prompt", "message": "Invalid Responses API request"}
    return {"error": error, "metadata": {"raw": json.dumps([issue], indent=2)}}


def from_responses_js(issue: Item) -> Item:
    """Return a refusal as its source sends it."""
    return {"success": False, "error": [issue], "details": [issue]}


def from_lm_studio(issue: Item) -> Item:
    """Return a refusal whose only text is a list (docker/docker-agent 278)."""
    return {"error": json.dumps([issue], indent=2)}


@pytest.mark.parametrize("form", [from_openrouter, from_responses_js, from_lm_studio])
async def test_what_a_server_made_with_zod_refuses(
    connections: Connections, form: Callable[[Item], Item]
) -> None:
    """Its own reasoning is not sent back, the effort becomes one that it names."""
    answers = [
        replying(json.dumps(form(issue)), 400)
        for issue in (UNFIT_THOUGHT, UNFIT_EFFORT)
    ]
    thought = wire.reasoning_text("Hm")[-1]["item"]
    asked = asking(input=[USER, thought, LOOKED, {**OUTPUT, "output": "seen"}])
    asked = asked.model_copy(update={"reasoning": {"effort": "minimal"}})
    async with Upstream(in_turn(*answers, OK)) as upstream:
        events = await report(connections, upstream.endpoint, asked)
        last = upstream.bodies[-1]

    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["LeaveOutPlainReasoning", "reasoning.effort"]
    assert all(e.tried.is_lasting for e in events if isinstance(e, Status) and e.tried)
    assert last["reasoning"] == {"effort": "low"}
    assert "reasoning" not in [item["type"] for item in last["input"]]


async def test_repair_before_a_retry(
    connections: Connections, unverified: Simulator
) -> None:
    """The changed request is the one that is sent again."""
    request = asking("sim:503,times=1,retry-after-ms=1")
    events = await report(connections, simulated(unverified), request, TWICE)
    assert repairs_of(events) == ["reasoning.summary", ""]
    assert log_of(events)[-1] == "run completed"
    assert [sent.status for sent in unverified.requests] == [400, 503, 200]
    assert unverified.requests[1].body == unverified.requests[2].body


@pytest.mark.parametrize(
    ("opening", "is_repaired"),
    [
        pytest.param([], True, id="the only event"),
        pytest.param([wire.created()], True, id="nothing was shown"),
        pytest.param(
            [wire.created(), *wire.message("Hello")[:3]], False, id="words were shown"
        ),
    ],
)
async def test_refusal_in_the_stream_is_repaired_unless_words_were_shown(
    connections: Connections, opening: wire.Events, is_repaired: bool
) -> None:
    error = wire.error_nested("invalid_encrypted_content")
    answer = streaming(wire.on_the_wire(*opening, error))
    async with Upstream(in_turn(answer, OK)) as upstream:
        events = await report(connections, upstream.endpoint, EVERYTHING, TWICE)
        assert len(upstream.requests) == (2 if is_repaired else 1)
    assert repairs_of(events) == (["LeaveOutReasoning"] if is_repaired else [])
    assert log_of(events)[-1] == ("run completed" if is_repaired else "run error")


async def test_repairs_of_one_response_hold_for_the_next(
    connections: Connections,
) -> None:
    """After a tool the changed request goes on: the refusal is met once."""
    made = wire.function_call("get_weather", '{"city": "Bern"}', at=0)
    call = streaming(wire.on_the_wire(*wire.whole_stream(made)))
    answer = in_turn(refusing(**REFUSALS["reasoning.summary"]), call, OK)
    request = EVERYTHING.model_copy(update={"tools": [TOOL]})
    async with Upstream(answer) as upstream:
        tools = Toolset(MemoryTools())
        events = await report_with_tools(connections, upstream.endpoint, request, tools)
        sent = [body["reasoning"] for body in upstream.bodies]
    assert sent[1:] == [{"effort": "medium"}] * 2
    assert log_of(events)[-1] == "run completed"


async def test_nothing_to_leave_out(connections: Connections) -> None:
    """A refusal of what was not sent is final."""
    answer = in_turn(refusing(**REFUSALS["LeaveOutReasoning"]), OK)
    async with Upstream(answer) as upstream:
        events = await report(connections, upstream.endpoint, asking(), TWICE)
        assert len(upstream.requests) == 1
    assert log_of(events) == ["run refused"]
    assert "Start a new chat" in end_of(events).ending.message
