"""Both doors, one after the other, with the simulator behind them."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from doors.talk import Door
    from hosts.servers.functions import HostFunctions
    from simulator import Simulator


@pytest.fixture(params=["Open WebUI", "Pipelines server"])
def door(
    request: pytest.FixtureRequest, sim: "Simulator", host_functions: "HostFunctions"
) -> "Door":
    """One of the two."""
    from doors.talk import OpenWebUIDoor, PipelinesDoor

    doors = {each.name: each for each in (OpenWebUIDoor, PipelinesDoor)}
    return doors[request.param](sim, host_functions)
