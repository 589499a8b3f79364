"""Commands of the README start, and links and pictures of the pages are there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^]]*\]\(([^)]+)\)")
LARGEST_PICTURE = 200_000
MOST_README_BYTES = 9_000
STARTED = {
    "bash scripts/demo": ("--help", "--keep-data"),
    "bash scripts/test": ("--version", "pytest alone runs"),
    "bash scripts/screenshots": ("--help", "pictures"),
}
"""Commands that take their time: arguments with which they end soon, and a word that
they say then."""


def test_integration_runs_the_command_of_the_readme() -> None:
    """Neither more nor less than what a reader types."""
    last_line = (ROOT / ".ci/run").read_text("utf-8").splitlines()[-1]
    assert last_line == 'exec bash scripts/test "$@"'


@pytest.mark.parametrize("command", STARTED)
def test_a_command_starts(command: str) -> None:
    """The program that its starter names, as that runs it, but for the setting up."""
    starter = (ROOT / command.removeprefix("bash ")).read_text("utf-8")
    [program] = re.findall(r'start\.sh" (\w+\.py) "\$@"', starter)
    argument, expected = STARTED[command]

    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / program, argument],
        env={**os.environ, "PYTHONPATH": str(ROOT / "testkit")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file of this repository, and to a heading of it where one is named."""
    without_code = re.sub(r"`[^`\n]*`", "", page.read_text("utf-8"))
    for target in LINK.findall(without_code):
        file, _, heading = target.partition("#")
        if file.startswith("https://"):
            continue
        linked = (page.parent / file) if file else page
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            assert heading in [slug(title) for title in titles], target


def slug(title: str) -> str:
    """A heading as GitHub puts it into an address."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_pictures_are_small_and_shown() -> None:
    """Each belongs to a page; none is heavy."""
    pictures = sorted((ROOT / "docs/pictures").glob("*.png"))
    texts = "".join(page.read_text("utf-8") for page in PAGES)

    assert len(pictures) >= 8
    assert [picture.name for picture in pictures if picture.name not in texts] == []
    assert max(picture.stat().st_size for picture in pictures) <= LARGEST_PICTURE


LOOKED_FOR = {
    "bash scripts/test": "../CONTRIBUTING.md",
    "images on": "tools.md#images-and-code",
    "notes": "tools.md#what-the-last-line-says",
    "Import from URL": "install.md#install",
    "sub-agents": "agent.md#features-of-open-webui-that-agents-use",
    "update": "install.md#update",
}
"""What people looked for in the first hours, and where it is."""


@pytest.mark.parametrize("words", LOOKED_FOR)
def test_index_leads_to_what_people_look_for(words: str) -> None:
    """In one entry of the list: the words, and a link to the heading."""
    index = (ROOT / "docs/README.md").read_text("utf-8")
    entries = [" ".join(entry.split()) for entry in index.split("\n- ")]
    assert any(
        words.lower() in entry.lower() and f"({LOOKED_FOR[words]})" in entry
        for entry in entries
    )
