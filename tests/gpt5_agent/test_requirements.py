"""Every requirement of the agent has a test that names it, and docs/reference has both."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/reference/agent-requirements.md"
ROW = re.compile(r"^\| (R\d+) \| [^|]+ \| (.+) \|$", re.MULTILINE)
NAMED: dict[str, list[str]] = {
    row[1]: re.findall(r"`([^`]+::[^`]+)`", row[2])
    for row in ROW.finditer(PAGE.read_text("utf-8"))
}


def words_of(test: str) -> str:
    """The name of a test and its docstring; KeyError for one that there is not."""
    path, _, name = test.partition("::")
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name: node for node in tree.body if isinstance(node, functions)}
    return f"{name} {ast.get_docstring(found[name])}"


def test_all_requirements_are_listed() -> None:
    """From the first to the last, each with a test."""
    assert list(NAMED) == [f"R{number}" for number in range(1, 35)]
    assert all(NAMED.values())


@pytest.mark.parametrize("requirement", NAMED)
def test_each_test_of_a_requirement_names_it(requirement: str) -> None:
    """In its name or in its docstring, so that both are found by searching."""
    pattern = re.compile(rf"(?<![a-z0-9]){requirement}(?![0-9])", re.IGNORECASE)

    for test in NAMED[requirement]:
        assert pattern.search(words_of(test).replace("_", " ")), test
