"""A simulator, and a client that knows nothing but HTTP."""

from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from simulator import Simulator
from upstream.simulated import Client


@pytest_asyncio.fixture
async def client(sim: Simulator) -> AsyncIterator[Client]:
    """Return a client of that simulator."""
    async with aiohttp.ClientSession() as session:
        yield Client(sim, session)
