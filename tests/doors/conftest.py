"""Both doors, one after the other, with the simulator behind them."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from doors.talk import Door
    from hosts.servers.functions import HostFunctions
    from simulator import Simulator


@pytest_asyncio.fixture
async def sim() -> AsyncIterator["Simulator"]:
    """The API in its strictest profile."""
    from simulator import Simulator

    async with Simulator() as simulator:
        yield simulator


@pytest.fixture(params=["Open WebUI", "Pipelines server"])
def door(
    request: pytest.FixtureRequest,
    sim: "Simulator",
    host_functions: "HostFunctions",
) -> "Door":
    """One of the two."""
    from doors.talk import OpenWebUIDoor, PipelinesDoor

    doors = {each.name: each for each in (OpenWebUIDoor, PipelinesDoor)}
    return doors[request.param](sim, host_functions)
