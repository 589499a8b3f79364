"""What the tests of the connection share."""

from collections.abc import AsyncIterator

import pytest_asyncio

from openai_responses.transport import Connections


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    """Return connections that are closed after the test."""
    opened = Connections()
    yield opened
    await opened.close()
