"""What programs over plain HTTP get: a stream with one end, a failure with its status."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    PLAIN,
    BrokenBody,
    body_of,
    failure_of,
    plain_text,
    stream_lines_of,
)
from calls.sample import TOOL, chat
from openai_responses.items import message_text
from openai_responses.json_input import as_mapping
from owui_chat.storage.markers import strip_markers

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("word", "reason"), [("tool", "tool_calls"), ("filtered", "content_filter")]
)
async def test_a_stream_ends_once(word: str, reason: str, desk: Desk) -> None:
    """With one reason, and a mark that Open WebUI does not repeat."""
    body = chat(f"sim:{word}", tools=[TOOL])

    lines = await stream_lines_of(await desk.answer(body, **PLAIN))
    chunks = await desk.chunks(body, **PLAIN)

    assert [line for line in lines if "DONE" in line] == [lines[-1]]
    assert all(line.count("data: ") == 1 for line in lines)
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    reasons = [choice["finish_reason"] for choice in choices]
    assert [each for each in reasons if each] == [reasons[-1]] == [reason]


async def test_a_failed_stream_ends_with_the_error(desk: Desk) -> None:
    """In OpenAI's form, after what arrived and what it took; no reason is given."""
    chunks = await desk.ask("sim:failed", **PLAIN)

    *shown, counted, last = chunks
    assert any(chunk["choices"][0]["delta"].get("content") for chunk in shown)
    assert not any(chunk["choices"][0]["finish_reason"] for chunk in shown)
    assert counted["usage"]
    assert list(last) == ["error"]
    assert last["error"]["type"] == last["error"]["code"] == "server_error"


async def test_leaving_a_stream_closes_the_connection(desk: Desk) -> None:
    """Open WebUI drops the response when the program goes away."""
    answer = await desk.answer(chat("sim:slow"), **PLAIN)
    lines: AsyncGenerator[str, None] = answer.body_iterator
    async with aclosing(lines):
        await anext(lines)

    assert (await desk.sim.closed_early()).scenario == "slow"


INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("valves", "words", "status", "error"),
    [
        ({"API_KEY": "sk-wrong"}, ["Hi"], 401, (INVALID, "invalid_api_key")),
        ({}, ["sim:quota"], 429, ("insufficient_quota", "insufficient_quota")),
        ({}, ["sim:html-200"], 502, ("server_error", None)),
        ({}, [], 400, (INVALID, None)),
        ({"API_KEY": ""}, ["Hi"], 500, ("server_error", None)),
    ],
)
async def test_a_failure_has_its_status(
    valves: Json,
    words: list[str],
    status: int,
    error: tuple[str, str | None],
    desk: Desk,
) -> None:
    """And the same error streamed, where Open WebUI sends the status itself.

    tests/owui_chat/render/test_client_errors.py has all of them. The page gets the
    message alone: it shows a result of 200 and an error as one of its own.
    """
    desk.set_valves(**valves)
    body = chat(*words)

    response = await failure_of(desk.pipe, body, **PLAIN)
    streamed = (await desk.chunks(body, **PLAIN))[-1]
    page = await desk.result(body)

    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    assert streamed["error"]["status"] == status
    for shown in (body_of(response)["error"], streamed["error"]):
        assert (shown["type"], shown["code"]) == error
        assert shown["message"]
    assert list(page["error"]) == ["message"]


@pytest.mark.parametrize(
    ("words", "status", "seconds"),
    [("sim:429,retry-after=6.2", 429, "7"), ("sim:503", 503, None)],
)
async def test_a_limit_tells_when_to_ask_again(
    words: str, status: int, seconds: str | None, desk: Desk
) -> None:
    """In whole seconds, none too early; without them a client waits as it thinks best."""
    response = await failure_of(desk.pipe, chat(words), **PLAIN)

    assert response.status_code == status
    assert response.headers.get("Retry-After") == seconds
    assert "x-should-retry" not in response.headers


async def test_what_has_cost_money_is_not_asked_for_again(desk: Desk) -> None:
    """Clients repeat a 5xx by themselves. What there is of the answer comes along."""
    response = await failure_of(desk.pipe, chat("sim:failed"), **PLAIN)

    assert response.status_code == 500
    assert response.headers["x-should-retry"] == "false"
    [choice] = body_of(response)["choices"]
    assert choice["message"]["reasoning_content"]


async def test_text_before_a_failure_comes_along(desk: Desk) -> None:
    """A background answer is read as a stream. Nothing says that it is whole."""
    desk.set_valves(BACKGROUND_MODELS="gpt-5.6-sol")
    body = chat("sim:failed")

    response = await failure_of(desk.pipe, body, **PLAIN)
    page = await desk.result(body)
    shown = plain_text(await desk.chunks(body, **PLAIN)).strip()

    [choice] = body_of(response)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].strip() == shown
    assert shown
    [message] = [item for item in page["output"] if item["type"] == "message"]
    assert message["status"] == "incomplete"
    assert strip_markers(message_text(message)).strip() == shown


async def test_own_fault_is_a_500(desk: Desk) -> None:
    """With an error id, and no word of the exception."""
    answer = await desk.answer(BrokenBody(chat("Hi", stream=False)), **PLAIN)

    response = answer.model_dump()
    assert response.status_code == 500
    error = body_of(response)["error"]
    assert error["type"] == "server_error"
    assert "Error id" in error["message"]
    assert "diary" not in str(error)


@pytest.mark.parametrize(
    "given",
    [
        {"__task__": "sub_agent"},
        {"__metadata__": {**NATIVE["__metadata__"], "model": {"id": "planner"}}},
    ],
)
async def test_another_function_gets_the_calls_of_its_tools(
    given: Json, desk: Desk
) -> None:
    """Toolkits name their calls as the host names its tasks, or the chat as their own."""
    body = chat("sim:tool", tools=[TOOL])

    result = await desk.result(body, **given)

    [choice] = result["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"]
    assert desk.bodies[0]["tools"]


async def test_host_without_responses_gets_what_others_get(desk: Desk) -> None:
    """Chunks and a dict, which every server of functions takes."""
    desk.host.provide("functions")

    chunks = await desk.answer(chat("sim:short"), **PLAIN)
    result = await desk.answer(chat("sim:quota", stream=False), **PLAIN)

    assert isinstance(chunks, AsyncGenerator)
    reasons = [
        chunk["choices"][0]["finish_reason"]
        async for chunk in chunks
        if chunk["choices"]
    ]
    assert reasons[-1] == "stop"
    assert result["error"]["code"] == "insufficient_quota"


@pytest.mark.parametrize("choice", ["auto", {"name": "look_up"}])
async def test_functions_of_old_programs_are_tools(choice: object, desk: Desk) -> None:
    """Their answers have one `function_call`, whole and in a stream."""
    function = as_mapping(TOOL["function"])
    name = function["name"]
    choice = {"name": name} if isinstance(choice, dict) else choice
    body = chat("sim:tool", functions=[function], function_call=choice)

    whole = await desk.result({**body, "stream": False}, **PLAIN)
    chunks = await desk.chunks(body, **PLAIN)

    [answer] = whole["choices"]
    assert answer["finish_reason"] == "function_call"
    assert answer["message"]["function_call"]["name"] == name
    assert "tool_calls" not in answer["message"]
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    calls = [each["delta"].get("function_call") for each in choices]
    assert [call["name"] for call in calls if call] == [name]
    assert choices[-1]["finish_reason"] == "function_call"
    sent = desk.bodies[0]
    assert [tool["name"] for tool in sent["tools"]] == [name]
    assert sent["parallel_tool_calls"] is False
    if choice != "auto":
        assert sent["tool_choice"] == {"type": "function", "name": name}


async def test_program_gets_the_models_own_links(desk: Desk) -> None:
    """No number of a source that it is not told."""
    desk.set_valves(ENABLE_WEB_SEARCH=True)

    text = plain_text(await desk.chunks(chat("sim:web-search"), **PLAIN))

    assert "froze in 1963. ([harbour.example](https://www.harbour.example/" in text
    assert "[1]" not in text


@pytest.mark.parametrize("place", ["images", "content"])
async def test_an_image_that_a_program_gives_back_is_seen(
    place: str, desk: Desk
) -> None:
    """It gets images next to the text, and some programs put them among its parts."""
    desk.set_valves(ENABLE_IMAGE_GENERATION=True)
    body = chat("sim:draw")
    [choice] = (await desk.result(body, **PLAIN))["choices"]
    said = choice["message"]
    if place == "content":
        text = {"type": "text", "text": said["content"]}
        said = {"role": "assistant", "content": [text, *said["images"]]}
    body["messages"] += [said, {"role": "user", "content": "sim:draw darker"}]

    [choice] = (await desk.result(body, **PLAIN))["choices"]

    assert "given 1 picture" in choice["message"]["content"]
    roles = [item["role"] for item in desk.sent["input"]]
    assert roles == ["user", "user", "assistant", "user"]
