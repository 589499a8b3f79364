"""What the tests of the agent share."""

from pathlib import Path

import pytest

from agents.sample import SIMULATORS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the server's pipelines; no key is in its environment.

    It allows the addresses of the simulators.
    """
    monkeypatch.setenv("PIPELINES_DIR", str(tmp_path))
    monkeypatch.setenv("GPT5_AGENT_ALLOW", SIMULATORS)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path
