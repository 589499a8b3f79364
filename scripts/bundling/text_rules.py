"""What a module's text may not say, wherever it is."""

import ast
from collections.abc import Iterator

from bundling.modules import Module
from bundling.refusals import Refusal

# Open WebUI 0.12.4, utils/plugin.py, replace_imports: rewritten in the whole text.
PHRASES = tuple(f"from {place}" for place in ("utils", "apps", "main", "config"))
# One file has one of each, and whoever loads it chooses the values.
LOADER_NAMES = frozenset({"__name__", "__file__", "__all__", "TYPE_CHECKING"})


def check_docstring(module: Module) -> Iterator[Refusal]:
    """Refuse a module without a sentence about its subject."""
    if not module.docstring.strip():
        yield module.refuse(1, "a module needs a docstring")


def check_phrases(module: Module) -> Iterator[Refusal]:
    """Refuse the texts that Open WebUI replaces before it executes a function."""
    for number, line in enumerate(module.text.splitlines(), start=1):
        for phrase in PHRASES:
            if phrase in line:
                yield module.refuse(number, f'Open WebUI rewrites the text "{phrase}"')


def check_loader_names(module: Module) -> Iterator[Refusal]:
    """Refuse names whose value depends on how the file was loaded."""
    for node in ast.walk(module.tree):
        for name in LOADER_NAMES.intersection(_names_in(node)):
            yield module.refuse(node, f"{name} means something else in a bundle")


def _names_in(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.ImportFrom):
        return tuple(alias.name for alias in node.names)
    if isinstance(node, ast.Attribute) and node.attr == "TYPE_CHECKING":
        return (node.attr,)
    return ()
