"""Files that code left in a container are fetched, within limits."""

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.errors import AnswerTooLarge, ApiRefused
from openai_responses.transport.connections import Connections, container_file
from openai_responses.transport.deadlines import Deadlines, Timeouts
from simulator import Simulator
from simulator.files import CONTAINER, EXPIRED, TABLE, TABLE_FILE
from upstream.server import Upstream, replying

pytestmark = pytest.mark.asyncio

IDS = (CONTAINER, TABLE_FILE)


def soon() -> Deadlines:
    return Deadlines(Timeouts())


async def test_a_file_is_fetched(connections: Connections) -> None:
    async with Simulator() as sim:
        endpoint = Endpoint(sim.base_url, sim.api_key)
        assert await container_file(endpoint, connections, *IDS, 1000, soon()) == TABLE
    (asked,) = sim.requests
    path = f"/v1/containers/{CONTAINER}/files/{TABLE_FILE}/content"
    assert (asked.path, asked.headers["Authorization"]) == (path, "***")


@pytest.mark.parametrize(
    ("key", "ids", "status"),
    [
        ("sk-wrong", IDS, 401),
        ("sk-simulator-2", IDS, 404),
        ("sk-simulator-1", (EXPIRED, TABLE_FILE), 404),
        ("sk-simulator-1", (CONTAINER, "cfile_other"), 404),
        ("sk-simulator-1", (CONTAINER, "cfile_\ud800"), 404),
    ],
)
async def test_refused_container_file_raises(
    connections: Connections, key: str, ids: tuple[str, str], status: int
) -> None:
    """A wrong key, another organization, an expired container, no such file.

    Nor is there one whose id holds half a character.
    """
    async with Simulator() as sim:
        with pytest.raises(ApiRefused) as caught:
            await container_file(
                Endpoint(sim.base_url, key), connections, *ids, 1000, soon()
            )
    assert caught.value.failure.status == status


@pytest.mark.parametrize(("size", "is_read"), [(1000, True), (1001, False)])
async def test_a_large_file_is_not_read_on(
    connections: Connections, size: int, is_read: bool
) -> None:
    async with Upstream(replying(bytes(size))) as upstream:
        asked = container_file(upstream.endpoint, connections, *IDS, 1000, soon())
        if is_read:
            assert await asked == bytes(size)
        else:
            with pytest.raises(AnswerTooLarge):
                await asked


async def test_ids_cannot_lead_anywhere_else(connections: Connections) -> None:
    """What a server writes into its answer is one step of a path, whatever it is.

    What is packed could be of any size, so it is not asked for.
    """
    async with Upstream(replying(b"x")) as upstream:
        ids = ("../../models", "a?b#c/d")
        await container_file(upstream.endpoint, connections, *ids, 10, soon())
    (asked,) = upstream.requests
    path = "/v1/containers/..%2F..%2Fmodels/files/a%3Fb%23c%2Fd/content"
    assert asked.raw_path == path
    assert asked.headers["Accept-Encoding"] == "identity"
