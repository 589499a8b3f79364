"""A start that fails shows nothing, and the next attempt works."""

import aiohttp
import pytest

from simulator.faults import FailedStart
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

TOOL = {"type": "function", "name": "f", "parameters": None, "strict": False}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
BEGUN = ["response.created", "response.in_progress", "response.output_item.added"]


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        ("failed", ["response.failed"]),
        ("error", ["error"]),
        ("error-flat", ["error"]),
        ("both", ["error", "response.failed"]),
        ("cut", []),
    ],
)
async def test_attempt_after_the_failed_ones_succeeds(
    client: Client, ending: str, last: list[str]
) -> None:
    """An empty item at most, then the end; after ``times`` attempts the answer."""
    code = "rate_limit_exceeded"
    client.simulator.faults.append(FailedStart(ending, code=code, times=2))

    failed = [await client.stream() for _ in range(2)]
    answered = await client.stream()

    for reply in failed:
        assert [event["type"] for event in reply.events] == BEGUN + last
        assert reply.events[2]["item"]["summary"] == []
        assert (code in reply.raw.decode()) == bool(last)
    assert "This is turn 1" in answered.text


async def test_a_connection_that_breaks(client: Client) -> None:
    """In the middle of an event."""
    client.simulator.faults.append(FailedStart("drop", item=False))

    with pytest.raises(aiohttp.ClientPayloadError):
        await client.stream()
    assert client.simulator.requests[-1].events_sent == 2
    assert "This is turn 1" in (await client.stream()).text


async def test_nothing_comes_behind_the_empty_item_of_a_stall(client: Client) -> None:
    """Nothing comes after the empty item."""
    sim = client.simulator
    sim.faults.append(FailedStart("stall"))
    async with client.open_stream() as answer:
        await answer.content.readuntil(b"output_item.added")
        answer.close()

    assert (await sim.closed_early()).events_sent == 3


async def test_rounds_and_questions_fail_apart(client: Client) -> None:
    """The rounds of a question are told apart; so are questions."""
    client.simulator.faults.append(FailedStart("error", after_rounds=1, text="rain"))
    tools = [TOOL]
    user = {"role": "user", "content": "rain?"}
    after = [user, CALL, OUTPUT]

    assert (await client.stream([user], tools=tools)).events[-1]["type"] != "error"
    assert (await client.stream(after, tools=tools)).events[-1]["type"] == "error"
    assert (await client.stream(after, tools=tools)).events[-1]["type"] != "error"
    other = [{"role": "user", "content": "snow?"}, CALL, OUTPUT]
    assert (await client.stream(other, tools=tools)).events[-1]["type"] != "error"


async def test_failed_start_reports_usage_on_demand(client: Client) -> None:
    """Usage is there on demand."""
    client.simulator.faults.append(FailedStart(usage=True))

    last = (await client.stream()).events[-1]["response"]

    assert last["usage"]["input_tokens"] > 0
    assert last["error"]["code"] == "server_error"
