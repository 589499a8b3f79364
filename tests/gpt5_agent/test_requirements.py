"""Every requirement of the agents has tests for both homes, which are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/reference/agent-requirements.md"
ROW = re.compile(r"^\| (R\d+) \| [^|]+ \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
SHARED = "the shared test"


def named(cell: str) -> list[str]:
    """The node ids in a cell of the table."""
    return re.findall(r"`([^`]+::[^`]+)`", cell)


ROWS: dict[str, list[str]] = {
    requirement: cells for requirement, *cells in ROW.findall(PAGE.read_text("utf-8"))
}


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in tree.body if isinstance(node, functions)]
    return frozenset(name for name in names if name.startswith("test_"))


def test_all_requirements_are_listed() -> None:
    """From the first to the last."""
    assert list(ROWS) == [f"R{number}" for number in range(1, 41)]


@pytest.mark.parametrize("requirement", ROWS)
def test_requirement_has_tests_for_both_homes(requirement: str) -> None:
    """A home without a test of its own has the shared one."""
    both, *homes = ROWS[requirement]

    for cell in homes:
        assert named(cell) or (cell == SHARED and named(both))


@pytest.mark.parametrize("requirement", ROWS)
def test_each_test_of_a_requirement_is_there(requirement: str) -> None:
    """Under the node id that the table has."""
    for node_id in named(" ".join(ROWS[requirement])):
        path, _, name = node_id.partition("::")
        assert name in names_in(path), node_id
