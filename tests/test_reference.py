"""Citations lead somewhere: to sections of docs/reference, to lines of the hosts."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from owui_manifold.call.context import HOST_TASKS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
HOSTS = ROOT / ".venv" / "hosts"
PACKAGE = "lib/python3.11/site-packages/open_webui"
NEWEST = "0.12.4"
CITATION = re.compile(r'docs/reference/([\w-]+\.md),\s+(?:#\s+)?"([^"]+)"')
HOST_LINE = re.compile(r"`([\w/]+\.py):(\d+)`(?:\s+of\s+([\d.]+))?\s+\(`([^`]+)`\)")
ABSENT = re.compile(
    r"\b(?:responses-api|open-webui|markers|gpt-6|pipelines-and-agents|peers)\.md\s+§"
)
PLACES = ("pipes", "pipelines", "scripts", "tests", "docs")


def texts() -> Iterator[tuple[Path, str]]:
    """Every source and page of the project, without this module."""
    for folder in PLACES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md") and path != Path(__file__):
                yield path, path.read_text("utf-8")


@cache
def sections(page: str) -> frozenset[str]:
    """The titles of the sections of a page."""
    text = (REFERENCE / page).read_text("utf-8")
    return frozenset(re.findall(r"^## (.+)$", text, re.MULTILINE))


def test_every_citation_names_a_section() -> None:
    """A title that was changed is changed where it is cited, too."""
    cited = [
        (path, citation)
        for path, text in texts()
        for citation in CITATION.findall(text)
    ]

    lost = [
        (str(path), *citation)
        for path, citation in cited
        if re.sub(r"\s+(?:#\s+)?", " ", citation[1]) not in sections(citation[0])
    ]

    assert cited
    assert not lost


def test_nothing_cites_a_page_that_is_not_here() -> None:
    """A reader has this repository and no other notes."""
    assert not [str(path) for path, text in texts() if ABSENT.search(text)]


@pytest.mark.skipif(not HOSTS.exists(), reason="no host is installed")
def test_the_hosts_lines_say_what_the_page_says() -> None:
    """The text in brackets stands on that line of the installed host."""
    page = (REFERENCE / "open-webui.md").read_text("utf-8")
    cited = HOST_LINE.findall(page)

    compared = HOST_LINE.findall((ROOT / "docs/compare.md").read_text("utf-8"))
    wrong = [
        (file, line, text)
        for file, line, version, text in [*cited, *compared]
        if text not in host_line(version or NEWEST, file, int(line))
    ]

    assert len(cited) == len(re.findall(r"\.py:\d+", page)), "a line without its text"
    assert compared
    assert not wrong


TASK_NAMES = (
    ("constants.py", re.compile(r"^    [A-Z_]+ = '(\w+)'$", re.MULTILINE)),
    ("utils/context_compaction.py", re.compile(r"'task': '(\w+)'")),
    ("utils/memory.py", re.compile(r"'task': '(\w+)'")),
)


@pytest.mark.skipif(not HOSTS.exists(), reason="no host is installed")
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


def host_file(version: str, file: str) -> Path:
    """A file of an installed host."""
    return HOSTS / f"open-webui-{version}" / PACKAGE / file


def host_line(version: str, file: str, number: int) -> str:
    """One line of an installed host."""
    return host_file(version, file).read_text("utf-8").splitlines()[number - 1]
