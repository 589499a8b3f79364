"""What the tests of the connection and of runs share."""

import os

import pytest

from openai_responses.transport.connections import Connections
from runs.against_server import Runs


@pytest.fixture(autouse=True)
def no_proxy_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def runs(connections: Connections) -> Runs:
    """Runs over connections that are closed after the test."""
    return Runs(connections)
