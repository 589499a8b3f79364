"""Streams that end in odd ways, through the agents of the Pipelines server.

tests/openai_responses/loop/test_run_odd_streams.py reads each of them; here are those of
which the agents' own texts and items could make something else.
"""

import json
from typing import Any

import pytest

from agents.desk import Desk
from agents.sample import host_tool
from calls.outcomes import advice, errors
from hosts.servers.functions import HostFunctions
from openai_responses.items import message_text
from upstream import wire
from upstream.odd_streams import (
    ANSWER,
    CITY,
    FULL_CONTEXT,
    of_context,
    sending,
)
from upstream.server import Upstream, in_turn, streaming, until

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
QUESTION: Json = {"role": "user", "content": "Rain?"}


TOOLS = [host_tool("get_weather"), host_tool("list_ships")]


def stored(host: HostFunctions, chunks: list[Json]) -> list[Json]:
    return host.reduce([c for c in chunks if str(c.get("type")).startswith("response")])


@pytest.mark.parametrize(
    "name", ["nothing-announced", "item-ends-early-longer-output", "doubled-message"]
)
async def test_answer_on_the_page(
    name: str, host_functions: HostFunctions, desk: Desk
) -> None:
    async with Upstream(sending(name, size=1)) as server:
        desk.set_valves(BASE_URL=server.base_url)
        chunks = await desk.chunks("Rain?", tools=TOOLS)

    assert errors(chunks) == []
    items = stored(host_functions, chunks)
    texts = [message_text(item) for item in items if item["type"] == "message"]
    assert [text.strip() for text in texts] == [ANSWER.strip()]
    assert len(server.bodies) == 1
    listeners = [c["event"] for c in chunks if "event" in c]
    [told] = [e["data"] for e in listeners if e["type"] == "agent:new_message"]
    assert told["content"].strip() == ANSWER.strip()


def reasons_of(chunks: list[Json], result: Json) -> list[str]:
    choices = [*result["choices"], *(c for e in chunks for c in e.get("choices", ()))]
    reasons = [choice["finish_reason"] for choice in choices]
    return [reason for reason in reasons if reason]


@pytest.mark.parametrize(("tokens", "reason"), [(256, "length"), (257, "stop")])
async def test_full_context_is_told(tokens: int, reason: str, desk: Desk) -> None:
    """llama.cpp calls the answer complete, and lists the size of its context."""
    answer = of_context(tokens, sending(*[FULL_CONTEXT] * 3))
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url)
        for _ in range(3):  # pages that list the models
            desk.pipeline.pipelines()
        await until(lambda: desk.pipeline._shared.listed._known is not None)
        page = await desk.chunks("Rain?")
        chunks = await desk.chunks("Rain?", None)
        result = await desk.result("Rain?", None)

    assert server.bodies[0] is None
    assert len(server.bodies) == 4
    assert ("context is full" in advice(page)) == (reason == "length")
    assert reasons_of(chunks, result) == [reason, reason]


@pytest.mark.parametrize("name", ["call-never-ended", "call-ends-early"])
async def test_host_gets_the_call_with_what_came(
    name: str, host_functions: HostFunctions, desk: Desk
) -> None:
    """Open WebUI runs what the stored item says."""
    async with Upstream(sending(name)) as server:
        desk.set_valves(BASE_URL=server.base_url)
        chunks = await desk.chunks("Rain?", tools=TOOLS)

    assert errors(chunks) == []
    items = stored(host_functions, chunks)
    [call] = [item for item in items if item["type"] == "function_call"]
    assert call["name"] == "get_weather"
    assert json.loads(call["arguments"]) == json.loads(CITY)


async def test_host_gets_arguments_that_were_encoded_twice(
    host_functions: HostFunctions, desk: Desk
) -> None:
    """It refuses a text, after the agent has found the call in order."""
    call = wire.function_call("get_weather", json.dumps(CITY))
    answer = streaming(wire.on_the_wire(*wire.whole_stream(call)))
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url)
        chunks = await desk.chunks("Rain?", tools=TOOLS)

    items = stored(host_functions, chunks)
    [stored_call] = [item for item in items if item["type"] == "function_call"]
    assert stored_call["arguments"] == CITY


@pytest.mark.parametrize(
    ("second", "back"),
    [("Rain.", ["Rain.", "Rain."]), ("", ["Rain."])],
    ids=["twice", "an empty one"],
)
async def test_message_that_the_page_does_not_have_goes_back_with_its_thought(
    second: str, back: list[str], host_functions: HostFunctions, desk: Desk
) -> None:
    """A repeated one in the API's bytes, an empty one not: the API refuses that."""
    first, again = [
        wire.message(*filter(None, [text]), at=at, phase="final_answer")
        for at, text in enumerate(("Rain.", second), 1)
    ]
    events = wire.whole_stream(wire.reasoning(["hm"]), first, again)
    answer = in_turn(streaming(wire.on_the_wire(*events)), sending("vllm.2"))
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url)
        chunks = await desk.chunks("Rain?", tools=TOOLS)
        given = host_functions.convert(stored(host_functions, chunks))
        await desk.chunks([QUESTION, *given, QUESTION], tools=TOOLS)

    assert [message["content"] for message in given] == ["Rain."]
    answers = [i for i in server.bodies[1]["input"] if i.get("role") == "assistant"]
    assert [message_text(item) for item in answers] == back
    assert answers[0] == answers[-1]
    assert answers[0]["phase"] == "final_answer"
