"""Methods that a host calls in one way only.

The Pipelines server calls `pipe` without awaiting it: a coroutine or an async generator
gives an empty answer there, without an error, and a generator gives garbage where a
whole answer is wanted. What it awaits must be a coroutine.
"""

import ast
from collections.abc import Iterator

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.syntax import Function, own_nodes
from bundling.targets import Target


def check_host_methods(entry: Module, target: Target) -> Iterator[Refusal]:
    """Refuse methods of the host class that its host cannot call."""
    for node in entry.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == target.host_class:
            for method in node.body:
                if isinstance(method, Function):
                    yield from _check_method(method, entry, target)


def _check_method(method: Function, entry: Module, target: Target) -> Iterator[Refusal]:
    is_async = isinstance(method, ast.AsyncFunctionDef)
    if method.name in target.called_methods:
        if is_async:
            yield entry.refuse(method, f"{method.name} is async; nobody awaits it")
        elif _yields(method):
            yield entry.refuse(method, f"{method.name} yields; return what yields")
    if method.name in target.awaited_methods and not is_async:
        yield entry.refuse(method, f"{method.name} is not async; it is awaited")


def _yields(method: Function) -> bool:
    """Tell whether a method is a generator; its inner functions do not count."""
    own = own_nodes(method)
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own)
