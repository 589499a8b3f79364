"""Callers over plain HTTP: no chat, no markers, nothing stored."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from hosts.people.client import OpenWebUIError
from hosts.people.users import User
from hosts.sent import chat_bodies
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

Json = dict[str, Any]
MODEL = "openai_responses.gpt-6.1-sol"


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
