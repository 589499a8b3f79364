"""What the tests of the agent share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from agents.sample import SIMULATORS

if TYPE_CHECKING:
    from agents.desk import Desk
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
async def desk(sim: "Simulator") -> AsyncIterator["Desk"]:
    """A pipeline whose server is the simulator; it is shut down at the end."""
    from agents.desk import Desk

    made = Desk(sim)
    yield made
    await made.pipeline.on_shutdown()
