"""The real Open WebUI's functions for tests of what it makes of our events.

The simulator, the host and HTTP are imported by the fixtures that need them: half a
second or more, which many tests here can do without.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hosts.servers.functions import HostFunctions


@pytest.fixture(scope="session")
def host_functions(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["HostFunctions"]:
    """One process of the host's interpreter for all tests."""
    from hosts.servers.functions import run_host_functions

    with run_host_functions(tmp_path_factory.mktemp("open-webui")) as functions:
        yield functions
