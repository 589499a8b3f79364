"""Annotations that hold both as values and as strings.

The Pipelines server loads a file that `sys.modules` does not know, so strings cannot be
resolved there; Open WebUI turns every annotation into a string, so a name that is local
to a function cannot be resolved there.
"""

import ast
from collections.abc import Iterator

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.syntax import Function, Scope, own_nodes


def check_annotations(module: Module) -> Iterator[Refusal]:
    """Refuse quoted annotations, or ones that name what is local to a function."""
    for node in ast.walk(module.tree):
        for part in _annotation_parts(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield module.refuse(part, f'the quoted annotation "{part.value}"')
        if isinstance(node, Function):
            yield from _check_locals(node, module)


def _annotation_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that stand for types in the annotations of a node itself."""
    for annotation in _annotations_of(node):
        yield from _type_parts(annotation)


def _annotations_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        yield node.annotation
        if _last_name(node.annotation) == "TypeAlias" and node.value:
            yield node.value
    elif isinstance(node, ast.arg) and node.annotation:
        yield node.annotation
    elif isinstance(node, Function) and node.returns:
        yield node.returns


def _type_parts(annotation: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that stand for types, not values of Literal or other metadata."""
    if isinstance(annotation, ast.Subscript):
        generic = _last_name(annotation.value)
        if generic == "Literal":
            return
        inside = annotation.slice
        if generic == "Annotated" and isinstance(inside, ast.Tuple):
            yield from _type_parts(inside.elts[0])
            return
    yield annotation
    for part in ast.iter_child_nodes(annotation):
        yield from _type_parts(part)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _check_locals(function: Function, module: Module) -> Iterator[Refusal]:
    local = set(_locals_of(function))
    for inner in _scopes_in(function):
        for node in ast.walk(inner):
            for part in _annotation_parts(node):
                if isinstance(part, ast.Name) and part.id in local:
                    reason = f"the annotation {part.id} is local to {function.name}"
                    yield module.refuse(part, reason)


def _scopes_in(function: Function) -> Iterator[Scope]:
    """Return the functions and classes that are defined directly in a function."""
    for node in own_nodes(function):
        if isinstance(node, Scope):
            yield node


def _locals_of(function: Function) -> Iterator[str]:
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield argument.arg
    for node in own_nodes(function):
        if isinstance(node, Scope):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
