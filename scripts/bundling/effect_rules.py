"""What may happen while a module is imported: nothing but definitions.

At the top level and in class bodies there are only imports, functions, classes,
docstrings and assignments. What is evaluated there (values, decorators, defaults, base
classes) may call, but not into the modules and builtins below; functions and lambdas
may call anything, because they run later.
"""

import ast
from collections.abc import Iterator

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.syntax import Function, is_constant

OUTSIDE_WORLD = frozenset(
    {"asyncio", "importlib", "os", "random", "secrets", "socket", "subprocess", "time"}
)
OUTSIDE_CALLS = frozenset({"__import__", "eval", "exec", "input", "open", "print"})
Allowed = (
    ast.Import | ast.ImportFrom | Function | ast.ClassDef | ast.Assign | ast.AnnAssign
)


def check_effects(module: Module) -> Iterator[Refusal]:
    """Refuse what an import of this module would do besides defining names."""
    origins = {name.bound: name.origin for name in module.externals}
    for node in _statements(module.tree.body):
        yield from _check_statement(node, module, origins)
    for inner in ast.walk(module.tree):
        if isinstance(inner, ast.Global):
            names = ", ".join(inner.names)
            yield module.refuse(inner, f"rebinds the global {names}; importers differ")


def _check_statement(
    node: ast.stmt, module: Module, origins: dict[str, str]
) -> Iterator[Refusal]:
    """Refuse what one statement would do at import."""
    if not isinstance(node, Allowed):
        yield module.refuse(node, "an effect at import; only definitions may stand")
        return
    if _assigns_inside(node):
        yield module.refuse(node, "changes another object at import")
    for part in _evaluated_at_import(node):
        reason = _effect(part, origins)
        if reason:
            yield module.refuse(part, reason)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import, without docstrings, `...` and `pass`."""
    for node in body:
        if is_constant(node) or isinstance(node, ast.Pass):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _statements(node.body)


def _assigns_inside(node: ast.stmt) -> bool:
    """Tell whether a statement assigns to an attribute or an element, not to a name."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    parts = (part for target in targets for part in ast.walk(target))
    return any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts)


def _evaluated_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a statement that run at import."""
    if isinstance(node, Function):
        parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
        parts += [default for default in node.args.kw_defaults if default]
    elif isinstance(node, ast.ClassDef):
        parts = [*node.decorator_list, *node.bases, *node.keywords]
    elif isinstance(node, ast.Lambda):
        parts = [*node.args.defaults]
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield part
        yield from _evaluated_at_import(part)


def _effect(node: ast.AST, origins: dict[str, str]) -> str:
    """Return why an expression must not be evaluated at import; empty if it may be."""
    if isinstance(node, ast.NamedExpr):
        return "an assignment inside an expression at import"
    if isinstance(node, ast.Call):
        called = _dotted(node.func, origins)
        if called in OUTSIDE_CALLS or called.partition(".")[0] in OUTSIDE_WORLD:
            return f"calls {called} at import; call it when it is needed"
    if _dotted(node, origins) == "os.environ":
        return "reads the environment at import; read it when it is needed"
    return ""


def _dotted(node: ast.AST, origins: dict[str, str]) -> str:
    """Return the dotted origin of a name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, origins)
        return f"{inner}.{node.attr}" if inner else ""
    if isinstance(node, ast.Name):
        return origins.get(node.id, node.id)
    return ""
