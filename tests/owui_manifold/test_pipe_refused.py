"""What a client reads of a request that has no answer, and what Open WebUI's page."""

import json
from typing import Any

import pytest

from calls.outcomes import (
    NATIVE,
    PLAIN,
    chunks_of,
    errors,
    refused_with,
    result_of,
    split_id,
)
from calls.sample import chat
from owui_manifold.pipe import Pipe
from simulator import Simulator
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Answerer, Upstream, replying, streaming

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
NO_SCHEMA: Json = {"response_format": {"type": "json_schema", "json_schema": {}}}
SENTENCE = (
    "The setting response_format cannot be sent: json_schema has to be a JSON object "
    'with the schema under "schema".'
)
BROKEN_SCHEMA: Json = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "strng"}, "strict": True},
    }
}


async def test_format_without_a_schema_is_a_bad_request(
    pipe: Pipe, sim: Simulator
) -> None:
    """In OpenAI's form: with status 200, free text would be read as JSON.

    The page shows why it cannot be sent: a model of the workspace may have it.
    """
    body = chat("Hi", **NO_SCHEMA)
    [streamed] = await chunks_of(pipe, body, **PLAIN)
    on_page = await chunks_of(pipe, body, **NATIVE)
    whole = await result_of(pipe, body, **NATIVE)
    status, error = await refused_with(pipe, body, **PLAIN)

    assert status == 400
    sentence, _ = split_id(error.pop("message"))
    assert sentence == SENTENCE
    assert error == {
        "type": "invalid_request_error",
        "param": "response_format",
        "code": None,
        "status": 400,
    }
    # The host has begun to answer with 200, so the error of a stream is an event.
    assert streamed["error"]["param"] == "response_format"
    assert streamed["error"]["type"] == "invalid_request_error"
    assert whole.keys() == {"error"}
    for message in (*errors(on_page), whole["error"]["message"]):
        assert split_id(message)[0] == SENTENCE
    assert sim.requests == []


async def test_schema_that_the_api_refuses_is_a_bad_request(
    pipe: Pipe, sim: Simulator
) -> None:
    """The format is not left out of a second request."""
    status, error = await refused_with(pipe, chat("Hi", **BROKEN_SCHEMA), **PLAIN)

    assert status == 400
    assert error["message"]
    assert [request.status for request in sim.requests] == [400]


def named(message: str) -> str:
    """Return a message with the names of this server and of this model."""
    named_server = message.replace("OpenAI", "127.0.0.1")
    return named_server.replace("this model", "gpt-5.6-sol")


async def messages_of(pipe: Pipe, answer: Answerer) -> list[str]:
    """Return the errors of the page, of a plain stream and of a plain answer."""
    async with Upstream(answer) as server:
        pipe.valves = pipe.valves.model_copy(update={"BASE_URL": server.base_url})
        on_page = errors(await chunks_of(pipe, chat("Hi"), **NATIVE))
        streamed = errors(await chunks_of(pipe, chat("Hi"), **PLAIN))
        answered = errors([await result_of(pipe, chat("Hi"), **PLAIN)])
    return [split_id(error)[0] for error in (*on_page, *streamed, *answered)]


# All of them are in tests/openai_responses/test_endings.py.
@pytest.mark.parametrize(
    "name", ["mismatched organization", "address that is not allowed", "large body"]
)
async def test_every_door_tells_a_refusal_alike(name: str, pipe: Pipe) -> None:
    """One message, with the setting that an administrator has to look at."""
    status, body, message = REFUSED_BODIES[name]
    assert await messages_of(pipe, replying(body, status)) == 3 * [named(message)]


@pytest.mark.parametrize("name", ["an image", "wrong key", "unknown model"])
async def test_every_door_tells_an_error_event_alike(name: str, pipe: Pipe) -> None:
    """The same for an error that comes as the only event of a stream."""
    wire, message = FAILED_EVENTS[name]
    event = json.dumps({"type": "error", "error": wire})
    answer = streaming(f"data: {event}\n\n".encode())
    assert await messages_of(pipe, answer) == 3 * [named(message)]
