"""Each row of the specification has tests that are there, and that are about it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGE = DOCS / "reference" / "specification.md"
ROW = re.compile(
    r"^\| ([A-Z]\d+) \| (.+?) \| (.+?) \| `([^`]+)` \| (.+) \|$", re.MULTILINE
)
ROWS = {row: cells for row, *cells in ROW.findall(PAGE.read_text("utf-8"))}
CASES = [
    (row, word, test)
    for row, (_, _, word, tests) in ROWS.items()
    for test in re.findall(r"`([^`]+::[^`]+)`", tests)
]


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


def source_of(test: str) -> str:
    """The source of a test, with what it uses of its own file."""
    path, _, name = test.partition("::")
    parts = parts_of(path)
    used = set(re.findall(r"\w+", parts[name])) & parts.keys()
    return "\n".join(parts[each] for each in sorted(used))


def test_every_line_of_the_table_is_a_row() -> None:
    """None is passed over because of its form."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line[:2] == "| "]
    assert len(lines) - 2 == len(ROWS)


@pytest.mark.parametrize(("row", "word", "test"), CASES)
def test_each_test_of_a_row_is_about_it(row: str, word: str, test: str) -> None:
    """It is there, and deals with the word of its row."""
    name = test.partition("::")[2]
    assert name.startswith("test_")
    assert word in source_of(test), row


@pytest.mark.parametrize("row", ROWS)
def test_each_row_has_a_test_and_says_whether_it_holds(row: str) -> None:
    """One that differs says why."""
    _, here, _, _ = ROWS[row]

    assert row in {case[0] for case in CASES}
    assert here.startswith(("As specified", "Differs"))
    assert here.startswith("As") or len(here.split()) > 10


def test_page_of_differences_has_each_row_that_differs() -> None:
    """So that nobody has to look for one."""
    differing = [row for row, (_, here, *_) in ROWS.items() if here[:3] == "Dif"]
    shown = re.findall(
        r"^\| ([A-Z]\d+) \|", (DOCS / "differences.md").read_text("utf-8"), re.MULTILINE
    )
    assert shown == differing
