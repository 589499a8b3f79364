"""What people read when an agent's server refuses: what they read in the pipe.

Which message a refusal has is decided below both doors; here, each name in it is that of
this shell, of its server, or of its model.
"""

import json
from typing import Any

import pytest

from agents.desk import Desk
from calls.outcomes import errors, split_id
from calls.valves import expert
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Upstream, replying, streaming

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


VALVES: Json = {"MODEL": "gpt-5.6-sol", "EXPERT_JSON": expert(max_retries=0)}


@pytest.mark.parametrize("name", ["country", "project without the model"])
async def test_agent_tells_a_refusal_as_the_pipe_does(name: str, desk: Desk) -> None:
    status, body, message = REFUSED_BODIES[name]
    async with Upstream(replying(body, status)) as server:
        desk.set_valves(BASE_URL=server.base_url, **VALVES)
        streamed = await desk.chunks("Hi", None)
        whole = await desk.result("Hi", None)

    for error in errors([*streamed, whole]):
        assert split_id(error)[0] == named(message)
    assert len(errors([*streamed, whole])) == 2


async def test_agent_tells_an_error_event_as_the_pipe_does(desk: Desk) -> None:
    wire, message = FAILED_EVENTS["wrong key"]
    event = json.dumps({"type": "error", "error": wire})
    async with Upstream(streaming(f"data: {event}\n\n".encode())) as server:
        desk.set_valves(BASE_URL=server.base_url, **VALVES)
        [error] = errors(await desk.chunks("Hi", None))

    assert split_id(error)[0] == named(message)


def named(message: str) -> str:
    """Return a message with the names of this server, this model and this shell."""
    named_server = message.replace("OpenAI", "127.0.0.1")
    named_model = named_server.replace("this model", "gpt-5.6-sol")
    return named_model.replace("this pipe", "this pipeline")
