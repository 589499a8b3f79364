"""Each row of the specification has tests that are there, and that are about it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGE = DOCS / "reference" / "specification.md"
ROW = re.compile(
    r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \| (`.+?`) \| (`.+`) \|$", re.MULTILINE
)
ROWS = {row: cells for row, *cells in ROW.findall(PAGE.read_text("utf-8"))}
MOST = 0.02
"""The share of all tests that a word of a row may be in: more have `status`."""


@cache
def parts_of(path: str) -> dict[str, str]:
    """The source of each function, class and constant of a file of tests, by name."""
    source = (TESTS / path).read_text("utf-8")
    lines = source.splitlines()
    parts: dict[str, str] = {}
    for node in ast.parse(source).body:
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        marks = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(mark.lineno for mark in marks)])
        for name in names:
            parts[name] = "\n".join(lines[start - 1 : node.end_lineno])
    return parts


def source_of(path: str, name: str) -> str:
    """The source of a test, with what it uses of its own file."""
    parts = parts_of(path)
    used = set(re.findall(r"\w+", parts[name])) & parts.keys()
    return "\n".join(parts[each] for each in sorted(used))


@cache
def all_tests() -> dict[str, str]:
    """The source of every test, by its id."""
    found: dict[str, str] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        path = file.relative_to(TESTS).as_posix()
        for name in parts_of(path):
            if name.startswith("test_"):
                found[f"{path}::{name}"] = source_of(path, name)
    return found


@cache
def share_of(word: str) -> float:
    """The share of all tests that have a word."""
    sources = all_tests().values()
    return sum(word in source for source in sources) / len(sources)


def faults(here: str, words: str, tests: str) -> Iterator[str]:
    """Yield what is wrong with the cells of a row."""
    if not here.startswith(("As specified", "Differs: ")):
        yield "it does not say whether it holds"
    if here.startswith("Differs") and len(here.split()) <= 10:
        yield "it differs without a reason"
    wanted, named = words[1:-1].split("`, `"), tests[1:-1].split("`, `")
    sources: list[str] = []
    for test in named:
        source = all_tests().get(test)
        if source is None:
            yield f"{test} does not exist"
            continue
        sources.append(source)
        if not any(word in source for word in wanted):
            yield f"{test} has none of its words"
    for word in wanted:
        if not any(word in source for source in sources):
            yield f"no test of it has {word}"
        if share_of(word) > MOST:
            yield f"too many tests have {word}"


def test_every_line_of_the_table_is_a_row() -> None:
    """None is passed over because of its form."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line[:2] == "| "]
    assert len(lines) - 2 == len(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_each_row_says_whether_it_holds_and_what_shows_it(row: str) -> None:
    """Each of its tests is there, and deals with it."""
    _, *cells = ROWS[row]
    assert list(faults(*cells)) == []


REASON = "Differs: for a reason that a reader understands, in more than ten words."
SHOWS = "owui_chat/render/test_native.py::test_the_end_says_how_long_it_took"
OTHER = "test_layers.py::test_sources_keep_the_rule"


@pytest.mark.parametrize(
    ("here", "words", "tests", "found"),
    [
        (REASON, "`status_chunk`", f"`{SHOWS}`", []),
        (
            "Nearly.",
            "`status_chunk`",
            f"`{SHOWS}`",
            ["it does not say whether it holds"],
        ),
        (
            "Differs: so.",
            "`status_chunk`",
            f"`{SHOWS}`",
            ["it differs without a reason"],
        ),
        (
            REASON,
            "`status_chunk`",
            f"`{SHOWS}s`, `{SHOWS}`",
            [f"{SHOWS}s does not exist"],
        ),
        (
            REASON,
            "`status_chunk`",
            f"`{SHOWS}`, `{OTHER}`",
            [f"{OTHER} has none of its words"],
        ),
        (REASON, "`status_chunk`, `RULES`", f"`{SHOWS}`", ["no test of it has RULES"]),
        (REASON, "`assert`", f"`{SHOWS}`", ["too many tests have assert"]),
    ],
)
def test_rows_that_prove_nothing_are_found(
    here: str, words: str, tests: str, found: list[str]
) -> None:
    assert list(faults(here, words, tests)) == found


def test_page_of_differences_has_each_row_that_differs() -> None:
    """So that no one has to look for one."""
    differing = [row for row, (_, here, *_) in ROWS.items() if here[:3] == "Dif"]
    shown = re.findall(
        r"^\| ([A-Z]\d+) \|", (DOCS / "differences.md").read_text("utf-8"), re.MULTILINE
    )
    assert shown == differing
