"""The sandbox that most tests share; each has a chat of its own."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from sandboxes.real import Chat, sandboxed


@pytest_asyncio.fixture(scope="session")
async def shared_sandbox() -> AsyncIterator[Chat]:
    """Keep one sandbox with tight limits for all tests."""
    async with sandboxed() as chat:
        yield chat


@pytest.fixture
def chat(shared_sandbox: Chat, request: pytest.FixtureRequest) -> Chat:
    """Lend a chat that was not used before."""
    return replace(shared_sandbox, name=request.node.nodeid)
