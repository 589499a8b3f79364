"""What a run sees of the folders in which Python and its libraries are installed.

The Python is no virtual environment: what its server keeps lies below its libraries.
"""

import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sandbox.bubblewrap import BubblewrapBackend
from sandboxes.installed import install_python, write_secrets
from sandboxes.owned import OwnedTools
from sandboxes.real import CANARY, TIGHT, sandboxed

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ_ALL = f"""
import os
held = []
for folder, folders, files in os.walk("/"):
    folders[:] = [] if folder == "/proc" else folders
    for name in files:
        path = os.path.join(folder, name)
        if path.startswith({{prefix!r}}) and os.path.getsize(path) < 1000:
            with open(path, errors="replace") as file:
                held += [path] if {CANARY!r} in file.read() else []
held
"""


@pytest.fixture
def python() -> Iterator[Path]:
    """An interpreter with a standard library, and nothing else yet."""
    # Not in /tmp, over which the sandbox has its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield install_python(Path(folder, "python"))


DATA_FOLDERS = (
    "lib/{}/site-packages/open_webui/data",
    "lib/{}/dist-packages/open_webui/data",
    "lib/open-webui/data",
    "lib",
    "share",
)
"""Where pip, conda or an administrator may put them; the name is the interpreter's."""


async def test_data_next_to_the_libraries_is_not_there(python: Path) -> None:
    """Everybody on the server may read it; code in the sandbox finds nothing."""
    prefix = python.parents[1]
    for folder in DATA_FOLDERS:
        write_secrets(prefix / folder.format(python.name))

    async with sandboxed(pythons=[python]) as chat:
        ran = await chat.run(READ_ALL.format(prefix=str(prefix)))

    assert ran.result == []


async def test_standard_library_and_wheels_are_there(
    python: Path, tmp_path: Path
) -> None:
    """With the libraries that lie next to them, as conda has them."""
    lib = python.parents[1] / "lib"
    (lib / "libexample.so.1.0").write_text("shared")
    (lib / "libexample.so").unlink(missing_ok=True)
    (lib / "libexample.so").symlink_to("libexample.so.1.0")
    with zipfile.ZipFile(tmp_path / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
    code = f"""
import ctypes, decimal, hashlib, sqlite3, ssl, sys, tiny, zoneinfo
assert sys.prefix == {str(lib.parent)!r}
[open("{lib}/libexample.so").read(), tiny.ANSWER]
"""
    async with sandboxed(pythons=[python], wheels=str(tmp_path)) as chat:
        ran = await chat.run(code)

    assert ran.result == ["shared", 42]


async def test_packages_of_the_system_are_not_there() -> None:
    """Debian's own are next to the libraries of the system; one of them is pip."""
    code = """
import glob, os, site
folders = [*site.getsitepackages(), *glob.glob("/usr/lib*/*/*-packages")]
[name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)]
"""
    async with sandboxed() as chat:
        ran = await chat.run(code)

    assert ran.result == []


async def offered(python: Path, private: Mapping[str, Path]) -> tuple[int, list[str]]:
    log: list[str] = []
    tools = OwnedTools(
        TIGHT, "", log.append, lambda _: [BubblewrapBackend(python)], private=private
    )
    specs = await tools.specs()
    await tools.close()
    return len(specs), log


async def test_data_below_the_standard_library_stops_the_sandbox(python: Path) -> None:
    """Where nothing hides it: by its own path, by a link, and as a single file."""
    library = python.parents[1] / "lib" / python.name
    data = write_secrets(library / "data")
    link = python.parents[2] / "data"
    link.symlink_to(data)
    private = {
        "DATA_DIR": link,
        "UPLOAD_DIR": data / "uploads",
        ".env": library / "os.py",
    }

    number, [line] = await offered(python, private)

    assert number == 0
    assert line.endswith(
        ": code in it could read DATA_DIR, UPLOAD_DIR, .env of the server, which must "
        "not lie among programs or libraries."
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="the run has another user than root")
async def test_data_that_only_permissions_keep_stops_the_sandbox(python: Path) -> None:
    closed = python.parents[1] / "lib" / python.name / "closed"
    write_secrets(closed / "data")
    closed.chmod(0)
    try:
        number, [line] = await offered(python, {"DATA_DIR": closed / "data"})
    finally:
        closed.chmod(0o700)

    assert number == 0
    assert "DATA_DIR" in line


async def test_data_elsewhere_stops_nothing(python: Path, tmp_path: Path) -> None:
    """Nor that among the packages, which are hidden, nor what is not there."""
    packages = python.parents[1] / "lib" / python.name / "site-packages"
    private = {
        "DATA_DIR": write_secrets(packages / "open_webui/data"),
        "UPLOAD_DIR": tmp_path,
        "TMP_DIR": Path("/tmp"),  # the sandbox has another folder of this name
        ".webui_secret_key": tmp_path / "none",
    }

    assert await offered(python, private) == (6, [])
