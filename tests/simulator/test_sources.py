"""Each rule of the simulator says where it comes from, or that it is assumed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SIMULATOR = Path(__file__).parents[2] / "testkit" / "simulator"
OTHERS = ("containers", "diagnostics", "files", "storage", "tokens")
RULES = [*SIMULATOR.glob("checks/*.py"), *(SIMULATOR / f"{name}.py" for name in OTHERS)]
SOURCE = re.compile(r"\b(?:Sources?|Known):|\b[Aa]ssumed\b")


def raises_refusal(node: ast.AST) -> bool:
    """Whether a function itself refuses a request."""
    made = [
        inner.exc.func
        for inner in ast.walk(node)
        if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call)
    ]
    names = [node.id for node in made if isinstance(node, ast.Name)]
    return any(name.lstrip("_").startswith("refuse") for name in names)


def rules_without_source(text: str) -> Iterator[str]:
    """The functions that refuse, and neither they nor their module name a source."""
    module = ast.parse(text)
    if SOURCE.search(ast.get_docstring(module) or ""):
        return
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef) or not raises_refusal(node):
            continue
        if not SOURCE.search(ast.get_docstring(node) or ""):
            yield node.name


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_each_rule_has_a_source(path: Path) -> None:
    """A client is held against what somebody saw, or against a stated guess."""
    assert list(rules_without_source(path.read_text("utf-8"))) == []


def test_rule_without_a_source_is_found() -> None:
    """Its name is told; a source of the function or of the module counts."""
    rule = 'def check(x):\n    """Refuse x.{}"""\n    raise refuse("no")\n'
    assert list(rules_without_source(rule.format(""))) == ["check"]
    assert list(rules_without_source(rule.format("\n\n    Assumed."))) == []
    whole = '"""Source: a guide."""\n' + rule.format("")
    assert list(rules_without_source(whole)) == []
