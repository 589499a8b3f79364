"""The table of what is kept names its tests, and they exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/reference/history.md")
    .read_text("utf-8")
    .partition("\n## What the owner")[0]
    .splitlines()
    if line.startswith("| ") and not line.startswith(("| Output", "| ---"))
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_row_names_its_tests(row: list[str]) -> None:
    """Shown, kept and sent, each told; and at least one test that shows it."""
    assert all(row)
    assert len(row) == 5
    named = NAMED.findall(row[4])
    assert named
    for path, function in named:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert function in {n.name for n in tree.body if isinstance(n, kinds)}


@pytest.mark.parametrize(
    "kind",
    [
        *("message", "reasoning", "compaction", "function_call", "custom_tool_call"),
        *("web_search_call", "file_search_call", "code_interpreter_call"),
        *("image_generation_call", "mcp_list_tools", "mcp_call"),
        "mcp_approval_request",
    ],
)
def test_every_kind_has_a_row(kind: str) -> None:
    """Of those that a run can bring."""
    assert any(f"`{kind}`" in row[0] for row in ROWS)
