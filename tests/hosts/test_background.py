"""An answer that goes on at OpenAI, until a person in the real Open WebUI stops it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.tabs import PATIENCE, Tab
from hosts.people.users import User
from hosts.setup.pipes import install_pipe
from simulator import RecordedRequest, Simulator

pytestmark = pytest.mark.host


@pytest_asyncio.fixture(scope="session")
async def pro(admin: User, pipe_source: str, pipe_valves: Json) -> AsyncIterator[str]:
    """A copy of the pipe whose pro model runs in the background."""
    valves = {**pipe_valves, "MODEL_ID": "gpt-5.2-pro", "BACKGROUND_MODELS": "*-pro"}
    (model,) = await install_pipe(admin, "long_runs", pipe_source, valves)
    yield model
    await admin.delete_function("long_runs")


def looked_up(simulator: Simulator) -> list[RecordedRequest]:
    """The requests about a response that there is already."""
    return [request for request in simulator.requests if "/resp_" in request.path]


def cancelled(simulator: Simulator) -> list[str]:
    """What became of the responses that were to be canceled."""
    asked = [
        request for request in looked_up(simulator) if request.path.endswith("/cancel")
    ]
    return [str((request.response or {}).get("status")) for request in asked]


async def until_cancelled(simulator: Simulator) -> None:
    """Wait for a cancellation that was answered."""
    async with asyncio.timeout(PATIENCE):
        while not cancelled(simulator):  # noqa: ASYNC110 - no event tells of one
            await asyncio.sleep(0.05)


@pytest.mark.asyncio
async def test_stop_cancels_the_answer_at_the_server(
    tab: Tab, pro: str, simulator: Simulator
) -> None:
    """The text stays, without an error; the model stops, too."""
    turn = await tab.begin(pro, "sim:chat,halt=60 hello")
    await turn.until(lambda seen: seen.text)

    await tab.stop(turn)
    await tab.settle(turn)
    await until_cancelled(simulator)

    stored = await tab.message(turn)
    assert "This is turn 1." in stored["content"]
    assert not stored.get("error")
    assert cancelled(simulator) == ["cancelled"]
