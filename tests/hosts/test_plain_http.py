"""Callers over plain HTTP: no chat, no markers, nothing stored."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from hosts.people.client import OpenWebUIError
from hosts.people.users import User
from hosts.sent import chat_bodies, instructions_of, kinds
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

Json = dict[str, Any]
MODEL = "openai_responses.gpt-6.1-sol"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
    "NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.mark.asyncio
async def test_plain_stream_has_chat_chunks(member: User, simulator: Simulator) -> None:
    """Reasoning, text, one finish and one usage, in the chat's own form."""
    chunks = [c async for c in member.chunks(MODEL, "sim:chat hello")]

    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
    text = "".join(delta.get("content") or "" for delta in deltas)
    thought = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    assert text.startswith("This is turn 1.")
    assert text.endswith("That is all for now.")
    assert thought.startswith("**Reading the question**")
    assert "openai_responses:" not in json.dumps(deltas)
    assert len([c for c in chunks if c.get("usage")]) == 1
    assert chat_bodies(simulator)[0]["stream"] is True


@pytest.mark.asyncio
async def test_plain_request_gets_one_result(
    member: User, simulator: Simulator
) -> None:
    """Without a stream, upstream is asked without one, too."""
    result = await member.completion(MODEL, [{"role": "user", "content": "sim:chat"}])

    ChatCompletion.model_validate(result)
    assert result["choices"][0]["message"]["content"].startswith("This is turn 1.")
    assert result["usage"]["total_tokens"] > 0
    assert "output" not in result
    assert chat_bodies(simulator)[0]["stream"] is False


@pytest.mark.asyncio
async def test_every_kind_of_message_is_translated(
    member: User, simulator: Simulator
) -> None:
    """System, developer, pictures, calls and outputs; names are translated."""
    picture = {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at": "it"}'},
    }
    messages: list[Json] = [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "sim:short"}, picture]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
        {"role": "assistant", "content": "I looked."},
        {"role": "developer", "content": "Now in French."},
        {"role": "user", "content": "sim:short and?"},
    ]

    await member.completion(
        "openai_responses.gpt-5.2-high",
        messages,
        max_tokens=500,
        reasoning_effort="low",
        stop=["x"],
        frequency_penalty=1,
        temperature=0.5,
    )

    (body,) = chat_bodies(simulator)
    assert instructions_of(body).split() == ["Be", "brief.", "Be", "kind."]
    assert kinds(body["input"]) == [
        *("developer", "user", "function_call", "function_call_output", "assistant"),
        *("developer", "user"),
    ]
    assert body["input"][1]["content"][1] == {
        "type": "input_image",
        "detail": "low",
        "image_url": PIXEL,
    }
    assert body["input"][2]["arguments"] == '{"at": "it"}'
    assert body["input"][3]["output"] == ""
    assert body["max_output_tokens"] == 500
    assert body["reasoning"]["effort"] == "low"
    assert body["truncation"] == "disabled"
    assert not {"stop", "frequency_penalty", "temperature", "max_tokens"} & set(body)


@pytest.mark.asyncio
async def test_a_failure_in_a_stream_is_an_error_chunk(
    member: User, simulator: Simulator
) -> None:
    """What arrived stays, then the error comes in its own chunk."""
    chunks = [c async for c in member.chunks(MODEL, "sim:cut")]

    contents = [
        c["choices"][0]["delta"].get("content") for c in chunks if "choices" in c
    ]
    assert any(contents)
    (error,) = [c["error"] for c in chunks if "error" in c]
    assert "broke before the answer was complete" in error["message"]


SCHEMALESS: Json = {"response_format": {"type": "json_schema", "json_schema": {}}}


@pytest.mark.asyncio
async def test_format_without_a_schema_is_a_bad_request(
    member: User, simulator: Simulator
) -> None:
    """In OpenAI's form; the stream, which has begun by then, ends with the error."""
    question = [{"role": "user", "content": "sim:chat"}]
    with pytest.raises(OpenWebUIError) as refused:
        await member.completion(MODEL, question, **SCHEMALESS)
    chunks = [chunk async for chunk in member.chunks(MODEL, question, **SCHEMALESS)]

    assert refused.value.status == 400
    for error in (refused.value.body["error"], chunks[0]["error"]):
        assert error["message"].startswith("The setting response_format cannot be")
        assert error["type"] == "invalid_request_error"
        assert error["param"] == "response_format"
    assert chat_bodies(simulator) == []


@pytest.mark.asyncio
async def test_refusal_of_the_api_keeps_its_status(member: User) -> None:
    """A client tries 429 again, and gives up at 401 as it would at OpenAI."""
    statuses: list[int] = []
    for scenario in ("leaky-error", "quota", "leaky-error-401"):
        question = [{"role": "user", "content": f"sim:{scenario}"}]
        with pytest.raises(OpenWebUIError) as refused:
            await member.completion(MODEL, question)
        assert refused.value.body["error"]["message"]
        statuses.append(refused.value.status)

    assert statuses == [400, 429, 401]
