"""What docs/reference and the pipe say of the hosts is what the hosts have."""

import re
import sys
from pathlib import Path

import pytest

from owui_manifold.call.context import HOST_TASKS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
HOSTS = ROOT / ".venv" / "hosts"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGE = f"lib/{PYTHON}/site-packages/open_webui"
NEWEST = "0.12.4"
HOST_LINE = re.compile(r"`([\w/]+\.py):(\d+)`(?:\s+of\s+([\d.]+))?\s+\(`([^`]+)`\)")


needs_newest = pytest.mark.skipif(
    not (HOSTS / f"open-webui-{NEWEST}").exists(),
    reason=f"Open WebUI {NEWEST} is not installed",
)


@needs_newest
def test_the_hosts_lines_say_what_the_page_says() -> None:
    """The text in brackets is on that line of the installed host."""
    page = (REFERENCE / "open-webui.md").read_text("utf-8")
    cited = HOST_LINE.findall(page)

    compared = HOST_LINE.findall((ROOT / "docs/compare.md").read_text("utf-8"))
    wrong = [
        (file, line, text)
        for file, line, version, text in [*cited, *compared]
        if host_folder(version or NEWEST).exists()
        and text not in host_line(version or NEWEST, file, int(line))
    ]

    assert len(cited) == len(re.findall(r"\.py:\d+", page)), "a line without its text"
    assert compared
    assert not wrong


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


def host_line(version: str, file: str, number: int) -> str:
    """One line of an installed host."""
    return host_file(version, file).read_text("utf-8").splitlines()[number - 1]
