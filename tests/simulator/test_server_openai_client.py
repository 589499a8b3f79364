"""The real openai client gets along with the stand-in."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from simulator import Simulator

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def ai(sim: Simulator) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return an openai client that talks to the simulator."""
    async with openai.AsyncOpenAI(
        base_url=sim.base_url, api_key=sim.api_key, max_retries=2
    ) as client:
        yield client


async def test_two_streamed_turns(ai: openai.AsyncOpenAI, sim: Simulator) -> None:
    """What came in the first turn is sent back by dumping it, as people do."""
    first = await ai.responses.create(
        model="gpt-6.2-sol", input="Hello", store=False, reasoning={"summary": "auto"}
    )
    kept: list[Any] = [
        item.model_dump(exclude_none=True, exclude={"id", "status"})
        for item in first.output
    ]
    items: list[Any] = [
        {"role": "user", "content": "Hello"},
        *kept,
        {"role": "user", "content": "Go on"},
    ]
    async with ai.responses.stream(
        model="gpt-6.2-sol", input=items, store=False, reasoning={"summary": "auto"}
    ) as stream:
        types = [event.type async for event in stream]
        final = await stream.get_final_response()

    assert types[-1] == "response.completed"
    assert final.output_text.startswith(
        "This is turn 2. I was given 1 reasoning item back."
    )
    assert sim.requests[-1].body["input"][1] == kept[0]


@pytest.mark.parametrize(
    ("key", "model", "error"),
    [
        ("sk-wrong", "gpt-5.5", openai.AuthenticationError),
        ("sk-simulator-limited", "gpt-5.5", openai.PermissionDeniedError),
        ("sk-simulator-1", "gpt-9", openai.BadRequestError),
    ],
)
async def test_refusals_are_the_clients_errors(
    ai: openai.AsyncOpenAI, key: str, model: str, error: type[Exception]
) -> None:
    """Each refusal arrives as the class the client has for it."""
    with pytest.raises(error):
        await ai.with_options(api_key=key).responses.create(model=model, input="Hi")


async def test_a_stream_that_is_left(ai: openai.AsyncOpenAI, sim: Simulator) -> None:
    """Leaving a slow stream closes the connection, which the record shows."""
    stream = await ai.responses.create(
        model="gpt-5.5", input="sim:slow", stream=True, store=False
    )
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()

    assert (await sim.closed_early()).scenario == "slow"
