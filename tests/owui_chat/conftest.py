"""The real Open WebUI's functions for tests of what it makes of our events."""

from collections.abc import Iterator

import pytest

from hosts.servers.functions import HostFunctions, run_host_functions


@pytest.fixture(scope="session")
def host_functions(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[HostFunctions]:
    """One process of the host's interpreter for all tests."""
    with run_host_functions(tmp_path_factory.mktemp("open-webui")) as functions:
        yield functions
