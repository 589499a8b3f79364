"""What the harness itself promises where nothing else would show it."""

import sys
from pathlib import Path

import pytest

from hosts.servers.offline import BootError
from hosts.servers.open_webui import OpenWebUI

pytestmark = pytest.mark.host


@pytest.mark.asyncio
async def test_boot_error_quotes_the_servers_log() -> None:
    """The log is in the error, and the directory is gone."""
    broken = OpenWebUI(python=Path(sys.executable))

    with pytest.raises(BootError, match="No module named"):
        await broken.__aenter__()

    assert not broken.home.exists()
