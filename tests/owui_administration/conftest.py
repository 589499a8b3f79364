"""The database of the stand-in for the host."""

import pytest

from stand_in.host import StandInHost
from stand_in.usage_database import UsageDatabase


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, host: StandInHost) -> UsageDatabase:
    """The host's database, in memory."""
    return UsageDatabase(monkeypatch, host)
