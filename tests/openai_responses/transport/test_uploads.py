"""Files are uploaded for code containers, and expire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.errors import UnreadableAnswer
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts
from openai_responses.transport.uploads import UPLOAD_SECONDS, upload_file
from simulator import Simulator
from upstream.server import Upstream, replying

pytestmark = pytest.mark.asyncio

CONTENTS = [b"PK\x03\x04\r\n--\r\n\x00", b"\r\n\r\n"]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", ["sales.csv", 'Zürich "2".csv'])
async def test_a_file_arrives_whole(
    name: str, content: bytes, connections: Connections
) -> None:
    async with Simulator() as sim:
        endpoint = Endpoint(sim.base_url, sim.api_key)
        file_id = await upload_file(
            endpoint, connections, name, content, Deadlines(Timeouts())
        )
        kept = sim.uploads.files[file_id]
    assert (kept.name.replace("%22", '"'), kept.content) == (name, content)
    assert kept.purpose == "user_data"
    assert kept.expires_at == kept.created_at + UPLOAD_SECONDS


class Recording(Connections):
    """Connections that note what is sent, and answer with an id."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    @asynccontextmanager
    async def request(self, *given: Any) -> AsyncIterator[Any]:
        self.sent.append(given[2].content)
        yield self

    async def read_json(self) -> dict[str, str]:
        return {"id": "file_1"}


async def test_nobody_foresees_what_ends_a_file() -> None:
    """With the next ones in a file of a megabyte, nobody else was answered for 2 s."""
    connections = Recording()
    endpoint = Endpoint("https://api.openai.com/v1", "key-1")

    for _ in range(2):
        await upload_file(endpoint, connections, "a", b"a", Deadlines(Timeouts()))

    first, second = (body.partition(b"\r\n")[0] for body in connections.sent)
    assert first != second


@pytest.mark.parametrize(
    ("host", "purpose"),
    [
        ("mine.openai.azure.com", b"assistants"),
        ("api.openai.com", b"user_data"),
        ("gateway.example", b"user_data"),
    ],
)
async def test_purpose_of_a_file_is_one_that_the_server_knows(
    host: str, purpose: bytes
) -> None:
    """Azure refuses OpenAI's own word for it."""
    connections = Recording()
    endpoint = Endpoint(f"https://{host}/openai/v1", "key-1")

    assert (
        await upload_file(endpoint, connections, "a", b"a", Deadlines(Timeouts()))
        == "file_1"
    )

    [body] = connections.sent
    assert b'name="purpose"\r\n\r\n' + purpose + b"\r\n" in body


@pytest.mark.parametrize("body", [b"{}", b"[]"])
async def test_an_answer_without_an_id_is_none(
    connections: Connections, body: bytes
) -> None:
    async with Upstream(replying(body)) as upstream:
        with pytest.raises(UnreadableAnswer):
            await upload_file(
                upstream.endpoint, connections, "a", b"a", Deadlines(Timeouts())
            )


async def test_name_of_a_file_stays_in_its_header() -> None:
    """It is written as browsers do."""
    connections = Recording()
    endpoint = Endpoint("https://gateway.example/v1", "key-1")

    await upload_file(
        endpoint, connections, 'a "b"\r\nX: y\rz', b"a", Deadlines(Timeouts())
    )

    [body] = connections.sent
    assert b'; filename="a %22b%22%0D%0AX: y%0Dz"\r\n' in body
