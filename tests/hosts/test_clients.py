"""Programs over plain HTTP: how an answer ends, and what a failure looks like."""

import json
from collections.abc import AsyncIterator

import openai
import pytest
import pytest_asyncio
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from hosts.people.client import Json
from hosts.people.users import User
from hosts.setup.pipes import PIPE, PLUGINS
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = f"{PIPE}.gpt-6.1-sol"
COMPLETIONS = "/api/chat/completions"
MESSAGES = "/api/v1/messages"
RESPONSES = (PLUGINS / "http_answers.py").read_text()
LOOK: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
ANTHROPIC_LOOK: Json = {"name": "look", "input_schema": {"type": "object"}}


def asking(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


@pytest_asyncio.fixture
async def client(member: User) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client, which here asks once only."""
    address = f"{member.url}/api"
    async with openai.AsyncOpenAI(
        api_key=member.token, base_url=address, max_retries=0
    ) as opened:
        yield opened


async def raw_stream(user: User, path: str, body: Json) -> tuple[int, list[str]]:
    """The status and the lines of an answer, without the empty ones."""
    async with user.http.post(
        user.url + path, json=body, headers=user.headers
    ) as answer:
        text = await answer.text()
        return answer.status, [line for line in text.splitlines() if line]


# ------------------------------------------------------------ one end


ENDS = {
    "sim:short": "stop",
    "sim:tool": "tool_calls",
    "sim:incomplete": "length",
    "sim:filtered": "content_filter",
}


@pytest.mark.asyncio
async def test_a_stream_has_one_end(member: User, client: openai.AsyncOpenAI) -> None:
    """Open WebUI puts a second one after what a generator yields.

    The last reason is the one that programs act on, as the official client does.
    """
    asked = {"model": MODEL, "tools": [LOOK], "stream": True}
    for word, reason in ENDS.items():
        body = {**asked, "messages": asking(word)}
        _, lines = await raw_stream(member, COMPLETIONS, body)

        done = [line for line in lines if "[DONE]" in line]
        assert done == [lines[-1]] == ["data: [DONE]"]
        chunks = [json.loads(line.removeprefix("data:")) for line in lines[:-1]]
        choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
        reasons = [choice["finish_reason"] for choice in choices]
        assert [each for each in reasons if each] == [reasons[-1]] == [reason]
        assert len([chunk for chunk in chunks if chunk.get("usage")]) == 1

    async with client.chat.completions.stream(
        model=MODEL, messages=asking("sim:tool"), tools=[LOOK]
    ) as stream:
        final = await stream.get_final_completion()
    [choice] = final.choices
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls or ()] == ["look"]


@pytest.mark.asyncio
async def test_an_anthropic_client_gets_the_reason(member: User) -> None:
    """Open WebUI translates the end that it finds; a failed stream has none.

    So no one takes what arrived for the whole answer.
    """
    asked: Json = {"model": MODEL, "max_tokens": 1000, "tools": [ANTHROPIC_LOOK]}
    for word, reason, kind in (
        ("sim:tool", "tool_use", "tool_use"),
        ("sim:short", "end_turn", "text"),
    ):
        body = {**asked, "messages": asking(word)}
        whole = await member.call("POST", MESSAGES, body)
        body["stream"] = True
        events = [event async for event in member.stream(MESSAGES, body)]
        starts = [e for e in events if e["type"] == "content_block_start"]
        [end] = [e["delta"] for e in events if e["type"] == "message_delta"]

        assert [e["type"] for e in events].count("message_stop") == 1
        assert whole["stop_reason"] == end["stop_reason"] == reason
        assert kind in [block["type"] for block in whole["content"]]
        assert kind in [start["content_block"]["type"] for start in starts]

    body = {**asked, "messages": asking("sim:quota"), "stream": True}
    events = [event async for event in member.stream(MESSAGES, body)]
    assert [event["type"] for event in events] == ["message_start", "error"]
    assert "no credit" in events[-1]["error"]["message"]


@pytest.mark.asyncio
async def test_leaving_a_stream_closes_the_connection(
    member: User, simulator: Simulator
) -> None:
    """A program that goes away costs nothing more."""
    body = {"model": MODEL, "messages": asking("sim:slow"), "stream": True}
    async with member.http.post(
        member.url + COMPLETIONS, json=body, headers=member.headers
    ) as answer:
        await answer.content.readline()

    assert (await simulator.closed_early()).scenario == "slow"


# ------------------------------------------------------------ failures


FAILURES: dict[str, tuple[type[openai.APIStatusError], str | None]] = {
    "sim:leaky-error": (openai.BadRequestError, None),
    "sim:quota": (openai.RateLimitError, "insufficient_quota"),
    "sim:500,should-retry=false": (openai.InternalServerError, "server_error"),
}
"""The other statuses are in owui_manifold/test_pipe_clients.py."""


@pytest.mark.asyncio
async def test_a_failure_has_its_status(
    member: User, client: openai.AsyncOpenAI
) -> None:
    """The official client raises its own exception; of a stream one with the code.

    Of a limit, clients of both kinds read the header that says when to ask again.
    """
    for word, (kind, code) in FAILURES.items():
        with pytest.raises(kind) as failed:
            await client.chat.completions.create(model=MODEL, messages=asking(word))
        with pytest.raises(openai.APIError) as broken:
            async for _ in await client.chat.completions.create(
                model=MODEL, messages=asking(word), stream=True
            ):
                pass

        for error in (failed.value, broken.value):
            assert error.code == code
            assert "Error id" in error.message
        assert failed.value.type == broken.value.type
        # Open WebUI sends its own 200 before it asks the pipe.
        assert isinstance(broken.value.body, dict)
        assert broken.value.body["status"] == failed.value.status_code

    # Longer than the pipe itself waits.
    words = "sim:429,retry-after=4000"
    body = {"model": MODEL, "max_tokens": 100, "messages": asking(words)}
    for path in (COMPLETIONS, MESSAGES):
        async with member.http.post(
            member.url + path, json=body, headers=member.headers
        ) as answer:
            refused = await answer.json()

        assert answer.status == 429
        assert answer.headers["Retry-After"] == "4000"
        assert refused["error"]["code"] == "rate_limit_exceeded"


# ------------------------------------------------------------ what the host passes on


PASSED_ON = [
    ("dumped", COMPLETIONS, False, 429),
    ("dumped", MESSAGES, False, 429),
    ("streamed", COMPLETIONS, False, 429),
    # Open WebUI translates it as if it were a stream.
    ("streamed", MESSAGES, False, 200),
    # Open WebUI asks the pipe when its own response has begun.
    ("streamed", COMPLETIONS, True, 200),
]
"""The form of a response, where it is asked for, whether as a stream, the status."""


@pytest_asyncio.fixture
async def responses(admin: User) -> AsyncIterator[None]:
    """A pipe that refuses each question in one of several forms."""
    await admin.install_function("responses", RESPONSES)
    await admin.models()
    yield
    await admin.delete_function("responses")


@pytest.mark.asyncio
@pytest.mark.usefixtures("responses")
async def test_status_that_the_host_passes_on(admin: User) -> None:
    """If one of those with 200 changes, the pipe can do better."""
    for form, path, streams, status in PASSED_ON:
        body = {"max_tokens": 100, "messages": asking("Hi"), "stream": streams}
        async with admin.http.post(
            admin.url + path,
            json={**body, "model": f"responses.{form}"},
            headers=admin.headers,
        ) as answer:
            await answer.read()

        assert answer.status == status, (form, path)
        assert ("Retry-After" in answer.headers) is (status == 429)
