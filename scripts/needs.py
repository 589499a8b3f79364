"""What each script of ours, and each mark of a test, needs to be installed."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Collection
from pathlib import Path

from debian import Package
from environment import Environment
from progress import Progress

ROOT = Path(__file__).resolve().parent.parent
Need = Environment | Package

DEVELOPMENT = Environment(
    name="development tools",
    directory=ROOT / ".venv",
    requirements=ROOT / "requirements/dev.txt",
    megabytes=(100, 420),
)


def _open_webui(version: str) -> Environment:
    """Return the environment of a version of Open WebUI."""
    return Environment(
        name=f"Open WebUI {version}",
        directory=ROOT / f".venv/hosts/open-webui-{version}",
        requirements=ROOT / f"requirements/open-webui-{version}.txt",
        megabytes=(270, 900),
    )


NEWEST = _open_webui("0.12.4")
OLDEST = _open_webui("0.11.4")
PIPELINES = Environment(
    name="Pipelines server",
    directory=ROOT / ".venv/hosts/pipelines",
    requirements=ROOT / "requirements/pipelines.txt",
    megabytes=(40, 140),
)
VENV = Package(
    f"python{sys.version_info.major}.{sys.version_info.minor}-venv",
    # Debian leaves ensurepip out of Python, which makes environments with pip in them.
    (str(Path(sysconfig.get_path("stdlib"), "ensurepip/__init__.py")),),
)
CHROMIUM = Package(
    "chromium", ("chromium", "chromium-browser", "google-chrome"), "CHROMIUM"
)
BUBBLEWRAP = Package("bubblewrap", ("bwrap",))
# The sandbox runs as nobody, who may not be allowed to reach the Python of the tests.
SYSTEM_PYTHON = Package("python3", ("/usr/bin/python3",))
# Debian keeps the programs of PostgreSQL off PATH, in a directory for each version.
POSTGRESQL = Package(
    "postgresql", ("/usr/lib/postgresql/*/bin/initdb", "initdb"), "DATABASE_URL"
)
REDIS = Package("redis-server", ("redis-server",))

MARKS: dict[str, tuple[Need, ...]] = {
    "host": (NEWEST,),
    "oldest": (OLDEST,),
    "pipelines": (PIPELINES,),
    "browser": (CHROMIUM,),
    "databases": (POSTGRESQL, REDIS),
    "sandbox": (BUBBLEWRAP, SYSTEM_PYTHON),
}
"""What a test with a mark needs beside the development tools."""


def is_installed(need: Need) -> bool:
    """Say whether something is there; what is old counts, too."""
    if isinstance(need, Environment):
        return need.stamp.exists()
    return not need.is_missing()


def needs_of(script: str, arguments: list[str]) -> list[Need]:
    """Return what a script needs in addition to the development tools.

    `others.py` installs its servers itself, and says so.
    """
    match script:
        case "demo.py":
            return [NEWEST, PIPELINES] if "--agent" in arguments else [NEWEST]
        case "screenshots.py":
            return [NEWEST, CHROMIUM]
        case "verify.py" if arguments == ["--fast"]:
            return []
        case "verify.py" if arguments in ([], ["--long"]):
            return needs_of_marks(MARKS)
        case "verify.py":
            return needs_of_marks(marks_of_tests(arguments))
    return []


def interpreter_of(script: str) -> Environment:
    """Return whose Python runs a script: a demo needs no tools of development."""
    return NEWEST if script == "demo.py" else DEVELOPMENT


def needs_of_marks(marks: Collection[str]) -> list[Need]:
    """Return what the tests with these marks need, in the order of the table."""
    needs: list[Need] = []
    for mark, needed in MARKS.items():
        if mark in marks:
            needs += needed
    return needs


def marks_of_tests(arguments: list[str]) -> list[str]:
    """Return the marks of the tests that these arguments of pytest choose."""
    progress = Progress("tests: what was chosen")
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "marks.txt")
        options = ["--collect-only", "-p", "marks", *arguments]
        subprocess.run(
            [str(DEVELOPMENT.python), "-m", "pytest", *options],
            cwd=ROOT,
            env=os.environ | {"MARKS_FILE": str(file)},
            check=False,  # what is wrong with the arguments is said when they run
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        marks = file.read_text().split() if file.exists() else []
    progress.end(", ".join(mark for mark in marks if mark in MARKS))
    return marks
