"""The server: keys, addresses, files, the record of what came, and the openai client."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from simulator import Simulator
from simulator.files import CONTAINER, EXPIRED, TABLE, TABLE_FILE
from simulator.sealing import rewrite_seal
from upstream.simulated import KEY, Client

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def ai(sim: Simulator) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=sim.base_url, api_key=sim.api_key, max_retries=0
    ) as client:
        yield client


async def test_two_streamed_turns(ai: openai.AsyncOpenAI, sim: Simulator) -> None:
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


async def test_a_stream_that_is_left(ai: openai.AsyncOpenAI, sim: Simulator) -> None:
    stream = await ai.responses.create(
        model="gpt-5.5", input="sim:slow", stream=True, store=False
    )
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()

    assert (await sim.closed_early()).scenario == "slow"
    assert sim.open_streams == 0


async def test_files_of_a_container(ai: openai.AsyncOpenAI) -> None:
    content = ai.containers.files.content
    fetched = await content.retrieve(TABLE_FILE, container_id=CONTAINER)

    assert fetched.content == TABLE
    for file, container in (("cfile_x", CONTAINER), (TABLE_FILE, EXPIRED)):
        with pytest.raises(openai.NotFoundError):
            await content.retrieve(file, container_id=container)


@pytest.mark.parametrize(
    ("key", "status", "message"),
    [
        (None, 401, "You didn't provide an API key."),
        ("sk-wrong-key-of-mine", 401, "Incorrect API key provided: sk-***"),
        (
            "sk-simulator-limited",
            403,
            "Project `proj_limited` does not have access to model `gpt-5.6-sol`",
        ),
    ],
)
async def test_keys_that_are_refused(
    client: Client, key: str | None, status: int, message: str
) -> None:
    """A wrong one is not repeated whole; the header of Azure opens the door, too."""
    reply = await client.post(client.body(), key=key)
    as_azure = {"api-key": KEY}

    assert reply.status == status
    assert reply.error["message"].startswith(message)
    assert "sk-wrong-key" not in reply.error["message"]
    assert (await client.post(client.body(), key=None, **as_azure)).status == 200


@pytest.mark.parametrize(
    "raw", ["{", "[]", '"x"', '{"top_p": NaN}', '{"a": "\\ud83d"}', b'{"a": "\xff"}']
)
async def test_a_body_that_is_no_object(client: Client, raw: str | bytes) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with client.session.post(client.url, data=raw, headers=headers) as answer:
        error = (await answer.json())["error"]

    assert answer.status == 400
    assert error["message"].startswith("We could not parse the JSON body")


async def test_other_addresses_and_profiles(client: Client) -> None:
    url = client.simulator.base_url
    headers = {"Authorization": f"Bearer {KEY}"}
    async with client.session.get(f"{url}/models", headers=headers) as answer:
        listed = {model["id"]: model for model in (await answer.json())["data"]}
    async with client.session.get(f"{url}/models") as refused:
        assert refused.status == 401
    async with client.session.post(f"{url}/chat/completions", json={}) as unknown:
        error = (await unknown.json())["error"]
    misspelt = await client.post(client.body(), **{"X-Simulator-Profile": "lenient"})
    azure = await client.post(client.body(), **{"X-Simulator-Profile": "azure"})

    assert listed["gpt-5"]["shutdown_date"] == "2026-12-11"
    assert "gpt-5-codex" not in listed
    assert error["message"] == "Invalid URL (POST /v1/chat/completions)"
    assert (misspelt.status, misspelt.error["code"]) == (400, "no_profile")
    assert azure.headers["x-ratelimit-limit-requests"] == "250"


async def test_a_request_is_recorded(client: Client) -> None:
    reply = await client.ask("Hello")
    events = await client.stream()
    whole, streamed = client.simulator.requests
    final = events.events[-1]["response"]
    for item in final["output"]:
        if item["type"] == "reasoning":
            item["encrypted_content"] = rewrite_seal(item["encrypted_content"])

    assert whole.path == "/v1/responses"
    assert whole.headers["Authorization"] == "***"
    assert whole.body == client.body("Hello")
    assert (whole.status, whole.scenario) == (200, "chat")
    assert whole.response == reply.body
    assert whole.ended_at is not None
    assert streamed.response == final
    assert streamed.events_sent == len(events.events)
    client.simulator.forget()
    assert client.simulator.requests == []


async def test_stopping_lets_stalled_streams_go(client: Client) -> None:
    """The end of a simulator is not taken for a client that left."""
    async with Simulator() as other:
        url = f"{other.base_url}/responses"
        headers = {"Authorization": f"Bearer {other.api_key}"}
        body = client.body("sim:stall", stream=True)
        answer = await client.session.post(url, json=body, headers=headers)
        await answer.content.readuntil(b"output_text.delta")
    answer.close()

    assert other.requests[0].closed_by_client is False
    assert other.open_streams == 0
