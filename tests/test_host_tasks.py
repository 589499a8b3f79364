"""The pipe knows each task for which the newest host asks a model."""

import re
import sys
from pathlib import Path

import pytest

from shells.caller import HOST_TASKS

NEWEST = "0.12.4"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
HOST = (
    Path(__file__).parents[1]
    / f".venv/hosts/open-webui-{NEWEST}/lib/{PYTHON}/site-packages/open_webui"
)
TASK_NAMES = (
    ("constants.py", re.compile(r"^    [A-Z_]+ = '(\w+)'$", re.MULTILINE)),
    ("utils/context_compaction.py", re.compile(r"'task': '(\w+)'")),
    ("utils/memory.py", re.compile(r"'task': '(\w+)'")),
)


@pytest.mark.skipif(not HOST.exists(), reason=f"Open WebUI {NEWEST} is not installed")
def test_pipe_knows_the_hosts_tasks() -> None:
    """A task that it does not know is answered like a question of a program."""
    tasks: set[str] = set()
    for file, pattern in TASK_NAMES:
        text = (HOST / file).read_text("utf-8")
        if file == "constants.py":
            _, text = text.split("class TASKS(")
        found = pattern.findall(text)
        assert found, file
        tasks |= set(found)

    assert tasks == HOST_TASKS
