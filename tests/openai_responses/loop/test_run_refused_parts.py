"""A chat that the server refuses is answered, whatever the form of the refusal."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from openai_responses.items import text_message
from openai_responses.loop.events import RunEvent, Status
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.connections import Connections
from runs.against_server import limits, repairs_of, report, simulated
from runs.log import log_of
from simulator import Simulator
from simulator.faults import (
    DELIVERIES,
    FORMS,
    refuse_item,
    refuse_parameter,
    refuse_tool,
)
from simulator.faults.parts import RefusedPart

pytestmark = pytest.mark.asyncio

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


PICTURE = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
CHAT = [
    text_message("user", "one"),
    {
        "type": "web_search_call",
        "id": "ws_1234567",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    text_message("assistant", "first"),
    text_message("user", "two"),
    {
        "type": "function_call",
        "call_id": "call_12345",
        "name": "look",
        "arguments": "{}",
    },
    {"type": "function_call_output", "call_id": "call_12345", "output": "sun"},
    text_message("assistant", "second"),
    {"type": "message", "role": "user", "content": [PICTURE]},
    text_message("assistant", "third"),
    text_message("user", "four"),
]
LOOK = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "look", "parameters": LOOK, "strict": False},
    {"type": "web_search"},
]


REQUEST = ResponsesRequest(
    model="gpt-5.6-sol",
    input=CHAT,
    tools=TOOLS,
    include=["reasoning.encrypted_content"],
    reasoning={"effort": "low", "summary": "auto"},
    text={"verbosity": "low"},
    prompt_cache_key="k",
)


async def events_of(
    connections: Connections, sim: Simulator, *faults: RefusedPart, retries: int = 0
) -> list[RunEvent]:
    """What a run reports that gets an answer from a server with these faults."""
    sim.faults.extend(faults)
    endpoint = simulated(sim)
    events = await report(connections, endpoint, REQUEST, limits(retries))
    assert log_of(events)[-1] == "run completed"
    return events


REFUSED = {
    "search": refuse_item("web_search_call"),
    "call": refuse_item("function_call"),
    "output": refuse_item("function_call_output"),
    "key": refuse_item("message", key="type"),
    "picture": refuse_item("message", part="input_image"),
    "answer": refuse_item("message", text='"second"'),
    "function": refuse_tool("look"),
    "hosted tool": refuse_tool("web_search"),
    "verbosity": refuse_parameter("text.verbosity"),
    "cache key": refuse_parameter("prompt_cache_key"),
    "summary": refuse_parameter("reasoning.summary"),
}


@pytest.mark.parametrize(
    ("refused", "form"),
    [
        *(("call", form) for form in FORMS),
        *zip(sorted({*REFUSED} - {"call"}), cycle(FORMS), strict=False),
    ],
)
async def test_refused_part_is_found_in_every_form(
    connections: Connections, sim: Simulator, refused: str, form: str
) -> None:
    """One more request, and an answer; a call that nothing names becomes words.

    Before that the answer has no optional settings.
    """
    await events_of(connections, sim, replace(REFUSED[refused], form=form))
    is_nameless = (refused, form) == ("call", "phrase")
    assert len(sim.requests) == (4 if is_nameless else 2)


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_refusal_inside_of_a_stream(
    connections: Connections, sim: Simulator, delivery: str
) -> None:
    """After `created`, where nothing was shown."""
    await events_of(connections, sim, replace(REFUSED["search"], delivery=delivery))
    assert len(sim.requests) == 2


async def test_several_parts_and_then_the_plain_words(
    connections: Connections, sim: Simulator
) -> None:
    """Three are left out one by one; what is left is sent as plain words."""
    names = ("verbosity", "cache key", "summary", "search")
    events = await events_of(connections, sim, *(REFUSED[name] for name in names))
    assert repairs_of(events) == [
        "text.verbosity",
        "prompt_cache_key",
        "reasoning.summary",
        "PlainItems",
    ]


async def test_refusal_that_looks_like_trouble_is_met_with_plain_words_at_last(
    connections: Connections, sim: Simulator
) -> None:
    """An error of a stream that names nothing; a chat does not remember it."""
    nameless = replace(REFUSED["call"], form="unnamed", delivery="error-flat")
    events = await events_of(connections, sim, nameless, retries=1)
    assert repairs_of(events) == ["", "PlainItems", "WordsAlone"]
    all_tried = [event.tried for event in events if isinstance(event, Status)]
    assert [tried.is_lasting for tried in all_tried if tried] == [False, False]
