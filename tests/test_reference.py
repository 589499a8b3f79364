"""Citations lead somewhere: to sections of docs/reference, to lines of the hosts."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

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


def host_line(version: str, file: str, number: int) -> str:
    """One line of an installed host."""
    path = HOSTS / f"open-webui-{version}" / PACKAGE / file
    return path.read_text("utf-8").splitlines()[number - 1]
