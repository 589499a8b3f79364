"""Pictures, code and files of the stand-in."""

from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError

from simulator.files import CONTAINER, EXPIRED, TABLE, TABLE_FILE, draw_picture
from simulator.scenarios.made import MADE_SCENARIOS
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

DRAW: dict[str, Any] = {"type": "image_generation", "partial_images": 2}
RUN = {"type": "code_interpreter", "container": {"type": "auto"}}
FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
OUTPUTS = ["code_interpreter_call.outputs"]


def kinds(reply: Any) -> list[str]:
    """Return the types of the items of an answer."""
    return [item["type"] for item in reply.body["output"]]


@pytest.mark.parametrize("name", [scenario.name for scenario in MADE_SCENARIOS])
async def test_tool_that_is_not_offered_is_not_used(client: Client, name: str) -> None:
    """The model says that it has none."""
    assert kinds(await client.ask(f"sim:{name}")) == ["message"]


async def test_picture_is_darker_for_each_that_was_given(client: Client) -> None:
    """So that a test sees what the model was given."""
    part = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{draw_picture(200)}",
        "detail": "auto",
    }
    given = [
        {"role": "user", "content": "A disc."},
        {"role": "user", "content": [part]},
        {"role": "user", "content": "sim:draw darker"},
    ]
    first = await client.ask("sim:draw", tools=[DRAW])
    second = await client.ask(given, tools=[DRAW])

    drawn = [reply.body["output"][1] for reply in (first, second)]
    assert [item["result"] for item in drawn] == [draw_picture(200), draw_picture(140)]
    assert [item["action"] for item in drawn] == ["generate", "edit"]


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_as_many_sketches_as_were_asked_for(client: Client, count: int) -> None:
    """Numbered from zero; none without the parameter."""
    tool = {**DRAW, "partial_images": count}
    events = await client.stream("sim:draw", tools=[tool])

    sketches = [e for e in events.events if e["type"].endswith(".partial_image")]
    assert [e["partial_image_index"] for e in sketches] == list(range(count))


async def test_outputs_only_for_who_asks(client: Client) -> None:
    """Code has its outputs if `include` names them."""
    without = await client.ask("sim:count", tools=[RUN])
    with_them = await client.ask("sim:count", tools=[RUN], include=OUTPUTS)

    outputs = [reply.body["output"][1]["outputs"] for reply in (without, with_them)]
    assert outputs == [None, [{"type": "logs", "logs": "14400000\n"}]]


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({**DRAW, "partial_images": 4}, "tools[0].partial_images"),
        ({**DRAW, "partial_images": -1}, "tools[0].partial_images"),
        ({**DRAW, "output_compression": 101}, "tools[0].output_compression"),
        ({**DRAW, "quality": "best"}, "tools[0].quality"),
        ({**DRAW, "style": "x"}, "tools[0].style"),
        (
            {**DRAW, "background": "transparent", "output_format": "jpeg"},
            "tools[0].background",
        ),
        ({"type": "code_interpreter"}, "tools[0].container"),
        ({**RUN, "container": {"type": "manual"}}, "tools[0].container.type"),
        ({**RUN, "container": "cntr_none"}, "tools[0].container"),
    ],
)
async def test_parameters_that_no_tool_takes(
    client: Client, tool: dict[str, Any], param: str
) -> None:
    """Each is refused by its name."""
    reply = await client.post(client.body(tools=[tool]))

    assert reply.status in (400, 404)
    assert reply.error["param"] == param


async def test_retired_picture_model_is_refused(client: Client) -> None:
    """OpenAI has shut it down."""
    reply = await client.post(client.body(tools=[{**DRAW, "model": "gpt-image-1"}]))

    assert (reply.status, reply.error["code"]) == (404, "model_not_found")


async def test_openai_client_fetches_a_file_of_a_container(client: Client) -> None:
    """The openai client fetches one; what is not there is not found."""
    sim = client.simulator
    async with AsyncOpenAI(
        base_url=sim.base_url, api_key=sim.api_key, max_retries=0
    ) as ai:
        content = ai.containers.files.content
        fetched = await content.retrieve(TABLE_FILE, container_id=CONTAINER)
        assert fetched.content == TABLE
        for file, container in (("cfile_x", CONTAINER), (TABLE_FILE, EXPIRED)):
            with pytest.raises(NotFoundError):
                await content.retrieve(file, container_id=container)
