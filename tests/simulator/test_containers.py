"""Code containers die of idleness."""

from typing import Any

import pytest

from simulator.containers import MAX_IDLE_SECONDS
from simulator.files import CONTAINER
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

CODE = {"type": "code_interpreter", "container": {"type": "auto"}}


async def ran(client: Client) -> Any:
    """The code call of a first turn."""
    first = await client.ask("sim:count", tools=[CODE])
    call = next(item for item in first.body["output"] if "container_id" in item)
    return {**call, "id": "ci_1"}  # its own would ask for the reasoning before it


async def again(client: Client, item: Any, tool: Any = CODE) -> Any:
    """What comes back for a turn that holds the call, with this tool."""
    items = [{"role": "user", "content": "Hello"}]
    if item:
        items.insert(0, item)
    return await client.post(client.body(items, tools=[tool]))


async def test_a_container_dies_of_idleness(client: Client) -> None:
    """Each use starts the twenty minutes anew; what died stays dead."""
    item = await ran(client)
    for _ in range(2):
        client.simulator.pass_time(MAX_IDLE_SECONDS - 60)
        assert (await again(client, item)).status == 200

    client.simulator.pass_time(MAX_IDLE_SECONDS + 60)
    replies = [await again(client, item) for _ in range(2)]
    named = await again(client, None, {**CODE, "container": CONTAINER})

    words = f"Container is expired. Expected container_id: {CONTAINER}."
    assert [(answer.status, answer.error["message"]) for answer in replies] == [
        (400, words)
    ] * 2
    assert replies[0].error["param"] is replies[0].error["code"] is None
    assert named.error["message"] == "Container is expired."
    assert (await again(client, None)).status == 200


async def test_time_passes_until_it_is_forgotten(client: Client) -> None:
    """Another test finds the clock as it was."""
    item = await ran(client)
    client.simulator.pass_time(2 * MAX_IDLE_SECONDS)
    client.simulator.forget()

    assert (await again(client, item)).status == 200
