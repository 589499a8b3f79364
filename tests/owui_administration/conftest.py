"""A stand-in for the host, and its database."""

from pathlib import Path

import pytest

from stand_in.host import StandInHost
from stand_in.usage_database import UsageDatabase


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandInHost:
    """Open WebUI's names, in memory."""
    return StandInHost(monkeypatch, tmp_path)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, host: StandInHost) -> UsageDatabase:
    """The host's database, in memory."""
    return UsageDatabase(monkeypatch, host)
