"""What a client reads of a request that has no answer, and what Open WebUI's page."""

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
    """In OpenAI's form: with status 200, free text would be read as JSON."""
    status, error = await refused_with(pipe, chat("Hi", **NO_SCHEMA), **PLAIN)

    assert status == 400
    sentence, _ = split_id(error.pop("message"))
    assert sentence == SENTENCE
    assert error == {
        "type": "invalid_request_error",
        "param": "response_format",
        "code": None,
        "status": 400,
    }
    assert sim.requests == []


async def test_stream_without_a_schema_is_an_error(pipe: Pipe, sim: Simulator) -> None:
    """The host has begun to answer with 200, so the error is an event."""
    [chunk] = await chunks_of(pipe, chat("Hi", **NO_SCHEMA), **PLAIN)

    assert chunk["error"]["param"] == "response_format"
    assert chunk["error"]["type"] == "invalid_request_error"
    assert sim.requests == []


async def test_page_shows_why_a_format_cannot_be_sent(pipe: Pipe) -> None:
    """With and without a stream; a model of the workspace may have it."""
    chunks = await chunks_of(pipe, chat("Hi", **NO_SCHEMA), **NATIVE)
    whole = await result_of(pipe, chat("Hi", **NO_SCHEMA), **NATIVE)

    for message in (*errors(chunks), whole["error"]["message"]):
        assert split_id(message)[0] == SENTENCE
    assert whole.keys() == {"error"}


async def test_schema_that_the_api_refuses_is_a_bad_request(
    pipe: Pipe, sim: Simulator
) -> None:
    """The format is not left out of a second request."""
    status, error = await refused_with(pipe, chat("Hi", **BROKEN_SCHEMA), **PLAIN)

    assert status == 400
    assert error["message"]
    assert [request.status for request in sim.requests] == [400]
