"""What people read when a server refuses, on the page and in plain clients."""

import json

import pytest

from calls.outcomes import NATIVE, PLAIN, chunks_of, errors, result_of, split_id
from calls.sample import chat
from owui_manifold.pipe import Pipe
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Answerer, Upstream, replying, streaming

pytestmark = pytest.mark.asyncio


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


# All of them are in tests/openai_responses/test_refusal_messages.py.
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
