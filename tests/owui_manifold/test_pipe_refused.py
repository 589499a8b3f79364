"""What a client reads of a request that has no answer, and what Open WebUI's page."""

import json
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    PLAIN,
    errors,
    refused_with,
    split_id,
)
from calls.sample import chat
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Answerer, Upstream, replying, streaming

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]


BROKEN_SCHEMA: Json = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "strng"}, "strict": True},
    }
}


async def test_schema_that_the_api_refuses_is_a_bad_request(desk: Desk) -> None:
    """The format is not left out of a second request."""
    status, error = await refused_with(desk.pipe, chat("Hi", **BROKEN_SCHEMA), **PLAIN)

    assert status == 400
    assert error["message"]
    assert [request.status for request in desk.sim.requests] == [400]


def named(message: str) -> str:
    """Return a message with the names of this server and of this model."""
    named_server = message.replace("OpenAI", "127.0.0.1")
    return named_server.replace("this model", "gpt-5.6-sol")


async def messages_of(desk: Desk, answer: Answerer) -> list[str]:
    """Return the errors of the page, of a plain stream and of a plain answer."""
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url)
        on_page = errors(await desk.ask("Hi"))
        streamed = errors(await desk.ask("Hi", **PLAIN))
        answered = errors([await desk.result(chat("Hi"), **PLAIN)])
    return [split_id(error)[0] for error in (*on_page, *streamed, *answered)]


# All of them are in tests/openai_responses/test_endings.py.
@pytest.mark.parametrize(
    "name", ["mismatched organization", "address that is not allowed", "large body"]
)
async def test_every_door_tells_a_refusal_alike(name: str, desk: Desk) -> None:
    """One message, with the setting that an administrator has to look at."""
    status, body, message = REFUSED_BODIES[name]
    assert await messages_of(desk, replying(body, status)) == 3 * [named(message)]


@pytest.mark.parametrize("name", ["an image", "wrong key", "unknown model"])
async def test_every_door_tells_an_error_event_alike(name: str, desk: Desk) -> None:
    """The same for an error that comes as the only event of a stream."""
    wire, message = FAILED_EVENTS[name]
    event = json.dumps({"type": "error", "error": wire})
    answer = streaming(f"data: {event}\n\n".encode())
    assert await messages_of(desk, answer) == 3 * [named(message)]
