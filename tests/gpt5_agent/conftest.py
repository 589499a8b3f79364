"""What the tests of the agent share.

The simulator, the host and HTTP are imported by the fixtures that need them: half a
second or more, which many tests here can do without.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from agents.sample import SIMULATORS

if TYPE_CHECKING:
    from openai_responses.transport.connections import Connections
    from simulator import Simulator


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the server's pipelines; no key is in its environment.

    It allows the addresses of the simulators.
    """
    monkeypatch.setenv("PIPELINES_DIR", str(tmp_path))
    monkeypatch.setenv("GPT5_AGENT_ALLOW", SIMULATORS)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


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
