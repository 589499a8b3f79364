"""What several rules ask about the nodes of a module."""

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef


def is_constant(node: ast.stmt) -> bool:
    """Tell whether a statement is nothing but a constant: a docstring or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def own_nodes(parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those of its inner scopes."""
    for node in ast.iter_child_nodes(parent):
        yield node
        if not isinstance(node, Scope | ast.Lambda):
            yield from own_nodes(node)
