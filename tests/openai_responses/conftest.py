"""What the tests of the connection and of runs share."""

import os
from collections.abc import Iterator

import pytest

from openai_responses.transport.connections import Connections
from runs.against_server import Runs


@pytest.fixture(scope="module", autouse=True)
def no_proxy_of_the_developer() -> Iterator[None]:
    """Leave out the proxies of the machine that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture
def runs(connections: Connections) -> Runs:
    """Runs over connections that are closed after the test."""
    return Runs(connections)
