"""A chat that the server refuses is answered, whatever the form of the refusal."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from openai_responses.loop.events import Status
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

pytestmark = pytest.mark.asyncio

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def message_with(role: str, kind: str, **part: Any) -> dict[str, Any]:
    """A message with one part."""
    content = [{"type": kind, **part}]
    return {"type": "message", "role": role, "content": content}


CHAT = [
    message_with("user", "input_text", text="one"),
    {
        "type": "web_search_call",
        "id": "ws_1234567",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    message_with("assistant", "output_text", text="first", annotations=[]),
    message_with("user", "input_text", text="two"),
    {
        "type": "function_call",
        "call_id": "call_12345",
        "name": "look",
        "arguments": "{}",
    },
    {"type": "function_call_output", "call_id": "call_12345", "output": "sun"},
    message_with("assistant", "output_text", text="second", annotations=[]),
    message_with("user", "input_image", image_url=PIXEL, detail="auto"),
    message_with("assistant", "output_text", text="third", annotations=[]),
    message_with("user", "input_text", text="four"),
]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "look",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    },
    {"type": "web_search"},
]


def asking() -> ResponsesRequest:
    """A chat with what a server can refuse."""
    return ResponsesRequest(
        model="gpt-5.6-sol",
        input=CHAT,
        tools=TOOLS,
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "low", "summary": "auto"},
        text={"verbosity": "low"},
        prompt_cache_key="k",
    )


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

    Before that the answer has no optional settings. An answer is sent as a text first.
    """
    sim.faults.append(replace(REFUSED[refused], form=form))
    events = await report(connections, simulated(sim), asking(), limits())
    assert log_of(events)[-1] == "run completed"
    counts = {("call", "phrase"): 4, ("answer", "fields"): 3}
    assert len(sim.requests) == counts.get((refused, form), 2)


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_refusal_inside_of_a_stream(
    connections: Connections, sim: Simulator, delivery: str
) -> None:
    """After `created`, where nothing was shown."""
    sim.faults.append(replace(REFUSED["search"], delivery=delivery))
    events = await report(connections, simulated(sim), asking(), limits())
    assert log_of(events)[-1] == "run completed"
    assert len(sim.requests) == 2


async def test_several_parts_and_then_the_plain_words(
    connections: Connections, sim: Simulator
) -> None:
    """Three are left out one by one; what is left is sent as plain words."""
    names = ("verbosity", "cache key", "summary", "search")
    sim.faults.extend(REFUSED[name] for name in names)
    events = await report(connections, simulated(sim), asking(), limits())
    assert log_of(events)[-1] == "run completed"
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
    sim.faults.append(nameless)
    events = await report(connections, simulated(sim), asking(), limits(retries=1))
    assert log_of(events)[-1] == "run completed"
    assert repairs_of(events) == ["", "PlainItems", "WordsAlone"]
    all_tried = [event.tried for event in events if isinstance(event, Status)]
    assert [tried.is_lasting for tried in all_tried if tried] == [False, False]
