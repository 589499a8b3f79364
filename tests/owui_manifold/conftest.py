"""The pipe in a stand-in for the host, with the simulator as the API.

They and HTTP are imported by the fixtures that need them: half a second or more, which
many tests here can do without.
"""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from calls.desk import Desk
    from calls.turns import StoredChat
    from openai_responses.transport.connections import Connections
    from owui_manifold.pipe import Pipe
    from simulator import Simulator
    from stand_in.host import StandInHost


@pytest.fixture(scope="module", autouse=True)
def nothing_in_the_environment() -> Iterator[None]:
    """Whoever runs the tests may have a key there, or the audit log turned on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        patch.delenv("OPENAI_GPT5_AUDIT_LOG", raising=False)
        yield


@pytest_asyncio.fixture
async def pipe(sim: "Simulator", host: "StandInHost") -> AsyncIterator["Pipe"]:
    """The pipe as an administrator has set it up."""
    from calls.sample import valves_for
    from owui_manifold.pipe import Pipe
    from stand_in.host import close_connections

    made = Pipe()
    made.valves = valves_for(sim)
    yield made
    await close_connections(made)


@pytest.fixture
def chat(
    sim: "Simulator", host: "StandInHost", connections: "Connections"
) -> "StoredChat":
    """A stored chat that nothing has been asked in."""
    from calls.turns import StoredChat

    return StoredChat(sim, host, connections)


@pytest.fixture
def desk(pipe: "Pipe", sim: "Simulator", host: "StandInHost") -> "Desk":
    """The pipe as an administrator has set it up, and who asks it."""
    from calls.desk import Desk

    return Desk(pipe, sim, host)
