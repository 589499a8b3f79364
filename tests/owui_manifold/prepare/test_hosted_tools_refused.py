"""What a server refuses of OpenAI's own tools costs a tool, and no answer."""

import json
from typing import Any

import pytest

from calls.outcomes import answering, chunks_of, errors, grown, statuses
from calls.sample import chat, valves_for
from owui_chat.storage.markers import strip_markers
from owui_manifold.pipe import Pipe
from simulator import Simulator

pytestmark = pytest.mark.asyncio

DOMAINS = [f"https://site{number}.org:8080/news" for number in range(100)]
PREVIEW = '{"model": "gpt-image-2", "background": "transparent"}'
NO_PICTURES = "The model's server does not accept the tool image_generation: answering without it."


@pytest.mark.parametrize(
    "valves",
    [
        {"FILE_SEARCH_VECTOR_STORES": "vs_1, vs_2, vs_3"},
        {
            "ENABLE_WEB_SEARCH": True,
            "WEB_SEARCH_OPTIONS": json.dumps({"allowed_domains": DOMAINS}),
        },
        {
            "ENABLE_WEB_SEARCH": True,
            "WEB_SEARCH_OPTIONS": '{"user_location": "Bern, BE, Switzerland"}',
        },
    ],
)
async def test_hosted_tools_that_are_refused_cost_no_answer(
    pipe: Pipe, sim: Simulator, valves: dict[str, Any]
) -> None:
    """The tool is offered with what it takes."""
    pipe.valves = valves_for(sim, **valves)

    chunks = await chunks_of(pipe, chat("Hi"), **answering("m-1"))

    assert strip_markers(grown(chunks)).startswith("This is turn 1")
    assert (errors(chunks), statuses(chunks)) == ([], [])
    [request] = sim.requests
    assert len(request.body["tools"]) == 1


async def test_tool_that_only_the_type_of_the_refusal_names(
    pipe: Pipe, sim: Simulator
) -> None:
    """The answer comes without it."""
    pipe.valves = valves_for(
        sim, ENABLE_IMAGE_GENERATION=True, IMAGE_GENERATION_OPTIONS=PREVIEW
    )

    chunks = await chunks_of(pipe, chat("Hi"), **answering("m-1"))

    assert strip_markers(grown(chunks)).startswith("This is turn 1")
    assert (errors(chunks), statuses(chunks)) == ([], [NO_PICTURES])
    assert [request.status for request in sim.requests] == [400, 200]
