"""What people read when an agent's server refuses: what they read in the pipe.

Which message a refusal has is decided below both doors; here, each name in it is that of
this shell, of its server, or of its model.
"""

import asyncio
import json
from typing import Any

import pytest

from calls.valves import expert
from gpt5_agent.pipeline import Pipeline
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Answerer, Upstream, replying, streaming

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


@pytest.mark.parametrize("name", ["country", "project without the model"])
async def test_agent_tells_a_refusal_as_the_pipe_does(name: str) -> None:
    status, body, message = REFUSED_BODIES[name]
    answer = replying(body, status)
    for stream in (True, False):
        assert await message_of(answer, stream=stream) == named(message)


async def test_agent_tells_an_error_event_as_the_pipe_does() -> None:
    wire, message = FAILED_EVENTS["wrong key"]
    event = json.dumps({"type": "error", "error": wire})
    answer = streaming(f"data: {event}\n\n".encode())
    assert await message_of(answer, stream=True) == named(message)


def named(message: str) -> str:
    """Return a message with the names of this server, this model and this shell."""
    named_server = message.replace("OpenAI", "127.0.0.1")
    named_model = named_server.replace("this model", "gpt-5.6-sol")
    return named_model.replace("this pipe", "this pipeline")


async def message_of(answer: Answerer, *, stream: bool) -> str:
    """Return the one error that a plain client gets, without its error id."""
    pipeline = Pipeline()
    async with Upstream(answer) as server:
        pipeline.valves = pipeline.Valves(
            BASE_URL=server.base_url,
            API_KEY="sk-upstream-1",
            MODEL="gpt-5.6-sol",
            EXPERT_JSON=expert(max_retries=0),
        )
        pieces = await ask(pipeline, stream=stream)
        await pipeline.on_shutdown()
    chunks = [piece for piece in pieces if isinstance(piece, dict)]
    [error] = [chunk["error"]["message"] for chunk in chunks if "error" in chunk]
    told, separator, _ = error.partition(" (Error id: ")
    assert separator
    return str(told)


async def ask(pipeline: Pipeline, *, stream: bool) -> list[Any]:
    """Return all that the pipeline yields, or its one answer, for a plain client."""
    messages = [{"role": "user", "content": "Hi"}]
    answer = await asyncio.to_thread(
        pipeline.pipe,
        user_message=None,
        model_id="gpt5_function_calling",
        messages=messages,
        body={"stream": stream, "messages": messages},
    )
    return (
        [answer] if isinstance(answer, dict) else await asyncio.to_thread(list, answer)
    )
