"""What the README says can be typed, clicked and looked at."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^]]*\]\(([^)]+)\)")
LARGEST_PICTURE = 200_000
MOST_README_BYTES = 9_000
INLINE = re.compile(r"`((?:bash |python )?scripts/[^`]+)`")
BY_HAND = {"git clone REPOSITORY pipe && cd pipe"}
"""Nobody has a test for the download of this repository."""
STARTED = {
    "bash scripts/demo": ("--help", "--keep-data"),
    "bash scripts/test": ("--version", "pytest alone runs"),
    "bash scripts/screenshots": ("--help", "pictures"),
}
"""Commands that take their time: arguments with which they end soon, and a word that
they say then."""
ELSEWHERE = {
    ".venv/bin/python scripts/bundle.py --check": (
        "tests/test_bundle.py::test_check_names_the_stale_file_and_writes_nothing"
    ),
    ".venv/bin/python scripts/readme.py --check": (
        "tests/test_readme.py::test_every_page_is_current"
    ),
    ".venv/bin/python scripts/bench/all.py --quick": (
        "tests/test_bench.py::test_every_benchmark_runs_at_a_tiny_size"
    ),
    "cd scripts && ../.venv/bin/python -m simulator": (
        "tests/test_bench.py::test_every_benchmark_runs_at_a_tiny_size"
    ),
}
"""Commands that another test runs."""
PROOFS = {
    "bash scripts/demo --check": (
        "tests/hosts/test_demo.py::test_check_without_a_key_compares_the_bytes",
        "tests/hosts/test_demo.py::test_check_with_a_key_reads_the_chat",
    ),
    "scripts/fuzz.py": ("tests/test_fuzz_recovery.py::test_no_chat_gets_stuck",),
    "scripts/bench/all.py": (
        "tests/test_bench.py::test_every_benchmark_runs_at_a_tiny_size",
    ),
    "bash scripts/live": (
        "tests/simulator/test_live.py::test_the_simulator_holds_every_case",
    ),
    "python scripts/release.py --verify FILE": (
        "tests/test_release.py::test_verify_needs_the_standard_library_alone",
    ),
}
"""What the text of the README says a person can run, with the tests that run it."""


def commands() -> set[str]:
    """Every line of the blocks for a shell, without its comment."""
    pages = (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))
    blocks = [
        block for page in pages for block in BLOCK.findall(page.read_text("utf-8"))
    ]
    lines = (
        line.split(" # ")[0].strip() for block in blocks for line in block.split("\n")
    )
    return {line for line in lines if line and not line.startswith("#")}


def test_every_command_is_run_by_a_test() -> None:
    """A new one belongs in one of the lists above, an old one out of it."""
    assert commands() == STARTED.keys() | ELSEWHERE.keys() | BY_HAND


def test_every_proof_is_a_test() -> None:
    """What the README offers as one, and what it says that a person can check."""
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert set(INLINE.findall(text)) == PROOFS.keys()


def test_integration_runs_the_command_of_the_readme() -> None:
    """Neither more nor less than what a reader types."""
    last_line = (ROOT / ".ci/run").read_text("utf-8").splitlines()[-1]
    assert "bash scripts/test" in commands()
    assert last_line == 'exec bash scripts/test "$@"'


NAMED = {*ELSEWHERE.values(), *(test for tests in PROOFS.values() for test in tests)}


@pytest.mark.parametrize("named", sorted(NAMED), ids=lambda named: named.split("/")[-1])
def test_the_named_test_is_there(named: str) -> None:
    """A renamed test would leave a command without one."""
    file, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text("utf-8")


@pytest.mark.parametrize("command", STARTED)
def test_a_command_starts(command: str) -> None:
    """The program that its starter names, as that runs it, but for the setting up."""
    starter = (ROOT / command.removeprefix("bash ")).read_text("utf-8")
    [program] = re.findall(r'start\.sh" (\w+\.py) "\$@"', starter)
    argument, expected = STARTED[command]

    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / program, argument],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_the_readme_is_one_screen_after_another() -> None:
    """At most 9 kB; the rest is in docs/."""
    assert (ROOT / "README.md").stat().st_size <= MOST_README_BYTES


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
