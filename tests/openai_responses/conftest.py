"""What the tests of the connection share.

The simulator and HTTP are imported by the fixtures that need them: half a second, which
most tests here can do without.
"""

import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from openai_responses.transport.connections import Connections
    from simulator import Simulator


@pytest.fixture(autouse=True)
def no_proxy_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest_asyncio.fixture
async def connections() -> AsyncIterator["Connections"]:
    """Return connections that are closed after the test."""
    from openai_responses.transport.connections import Connections

    opened = Connections()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def sim() -> AsyncIterator["Simulator"]:
    """Return a strict server."""
    from simulator import Simulator

    async with Simulator() as simulator:
        yield simulator
