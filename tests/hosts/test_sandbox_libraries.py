"""The sandbox's tool on a server whose Python is no virtual environment.

Open WebUI is installed as by pip in conda, pyenv or the `python` images: without
DATA_DIR, its database lies in a folder below that of the standard library.
"""

# ruff: noqa: F401 - pytest uses the fixtures that are imported

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.servers.offline import host_python
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.own_server import admin, member, pipe
from hosts.setup.sandbox_tool import output_of, sandbox_installed, use
from marking import require_mark
from sandboxes.installed import install_python
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio, pytest.mark.usefixtures("pipe")]

FOLDERS = {"default": "open_webui/data", "library": "../data"}
"""The data folder, from that of the packages."""
FIND_DATA = """
import os, sys
found = []
for folder, _, names in os.walk(sys.prefix):
    found += [os.path.join(folder, name) for name in names if name == "webui.db"]
[sys.prefix, found]
"""


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """The folder of packages of a Python with Open WebUI; the others are elsewhere."""
    source = Path(host_python().parents[1], "lib", f"python3.{sys.version_info.minor}")
    # Not in /tmp, over which the sandbox has its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        python = install_python(Path(folder, "python"))
        if python.name != source.name:
            pytest.skip(f"the system's Python is no {source.name}")
        asked = [str(python), "-c", "import site; print(site.getsitepackages()[-1])"]
        made = Path(subprocess.check_output(asked, text=True).strip())
        host = source / "site-packages" / "open_webui"
        without_page = shutil.ignore_patterns("frontend", "data", "__pycache__")
        shutil.copytree(host, made / host.name, ignore=without_page)
        (made / host.name / "frontend").symlink_to(host / "frontend")
        (made / "others.pth").write_text(str(host.parent))
        # Of the system's Python; redis wants another package before Python 3.11.3.
        (made / "async_timeout.py").write_text("from asyncio import timeout\n")
        yield made


@pytest.fixture(scope="module", params=FOLDERS)
def place(request: pytest.FixtureRequest) -> str:
    """Where the data is."""
    return str(request.param)


@pytest_asyncio.fixture(scope="module")
async def server(place: str, packages: Path) -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI in this Python."""
    require_mark("sandbox")
    python = packages.parents[2] / "bin" / packages.parent.name
    data = (packages / FOLDERS[place]).resolve()
    async with OpenWebUI(python=python, env={"DATA_DIR": str(data)}) as running:
        assert (data / "webui.db").stat().st_mode & 0o004  # everybody may read it
        yield running


async def test_database_among_the_libraries_is_not_read(
    tab: Tab, server: OpenWebUI, place: str, packages: Path, simulator: Simulator
) -> None:
    """Among the packages it is hidden; among the modules, another Python is used."""
    async with sandbox_installed(server.admin):
        await use(tab, "python_execute", {"code": FIND_DATA})
        used, found = json.loads(output_of(simulator))["result"]

    assert found == []
    assert (used == str(packages.parents[2])) == (place == "default")
