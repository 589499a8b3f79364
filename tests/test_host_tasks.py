"""The pipe knows each task for which the newest host asks a model."""

import re
import sys
from pathlib import Path

import pytest

from owui_manifold.call.context import HOST_TASKS

ROOT = Path(__file__).parents[1]
HOSTS = ROOT / ".venv" / "hosts"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGE = f"lib/{PYTHON}/site-packages/open_webui"
NEWEST = "0.12.4"


needs_newest = pytest.mark.skipif(
    not (HOSTS / f"open-webui-{NEWEST}").exists(),
    reason=f"Open WebUI {NEWEST} is not installed",
)


TASK_NAMES = (
    ("constants.py", re.compile(r"^    [A-Z_]+ = '(\w+)'$", re.MULTILINE)),
    ("utils/context_compaction.py", re.compile(r"'task': '(\w+)'")),
    ("utils/memory.py", re.compile(r"'task': '(\w+)'")),
)


@needs_newest
def test_pipe_knows_the_hosts_tasks() -> None:
    """A task that it does not know is answered like a question of a program."""
    tasks: set[str] = set()
    for file, pattern in TASK_NAMES:
        text = host_file(NEWEST, file).read_text("utf-8")
        if file == "constants.py":
            _, text = text.split("class TASKS(")
        found = pattern.findall(text)
        assert found, file
        tasks |= set(found)

    assert tasks == HOST_TASKS


def host_folder(version: str) -> Path:
    """The sources of a host, if it is installed."""
    return HOSTS / f"open-webui-{version}" / PACKAGE


def host_file(version: str, file: str) -> Path:
    """A file of an installed host."""
    return host_folder(version) / file
