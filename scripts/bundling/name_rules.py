"""Names that one file can hold only once.

Three things change when modules become one file: equal names collide, a name that a
module forgot to import may be found in another, a host class may appear twice.
"""

import ast
import symtable
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.targets import Target

# Open WebUI and the Pipelines server look for these to tell what a file is.
HOST_CLASSES = frozenset({"Pipe", "Filter", "Action", "Event", "Tools", "Pipeline"})
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Binding(NamedTuple):
    """A name at the top level of a module, with what it stands for."""

    name: str
    meaning: str
    line: int


def check_names(modules: Sequence[Module], target: Target) -> Iterator[Refusal]:
    """Refuse names that mean something else once all modules are one file."""
    owners: dict[str, tuple[Module, Binding]] = {}
    for module in modules:
        for binding in _bindings(module):
            owner, first = owners.setdefault(binding.name, (module, binding))
            if first.meaning != binding.meaning:
                reason = (
                    f"the top-level name {binding.name} is already {first.meaning} in "
                    f"{owner.name}, line {first.line}"
                )
                yield module.refuse(binding.line, reason)
    for module in modules:
        yield from _check_our_imports(module, modules)
        yield from _check_borrowed(module, owners.keys())
    yield from _check_host_classes(modules, target)


def _bindings(module: Module) -> Iterator[Binding]:
    for imported in module.externals:
        yield Binding(imported.bound, imported.origin, imported.line)
    for name, line in defined_names(module.tree.body):
        yield Binding(name, f"{module.name}.{name}", line)


def defined_names(nodes: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Yield the names that statements define, each with its line."""
    for node in nodes:
        if isinstance(node, Definition):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _stored(target)
        elif isinstance(node, ast.AnnAssign):
            yield from _stored(node.target)


def _stored(target: ast.expr) -> Iterator[tuple[str, int]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def _check_our_imports(module: Module, modules: Sequence[Module]) -> Iterator[Refusal]:
    """Refuse an import of one of our names from a module that does not define it."""
    defined = {
        each.name: {name for name, _ in defined_names(each.tree.body)}
        for each in modules
    }
    for needed in module.ours:
        for name in needed.names:
            if name != "*" and name not in defined[needed.module]:
                reason = f"{needed.module} does not define {name}"
                yield module.refuse(needed.line, reason)


def _check_borrowed(module: Module, bundled: Collection[str]) -> Iterator[Refusal]:
    """Refuse names that the module does not define, but that another one defines.

    In the module such a name is a builtin or missing, in a bundle it is the other's.
    """
    own = {binding.name for binding in _bindings(module)}
    for needed in module.ours:
        own.update(needed.names)
    table = symtable.symtable(module.text, module.name, "exec")
    foreign = set(_read_globals(table)) - own
    for name in foreign.intersection(bundled):
        line = min(_lines_of_uses(name, module.tree))
        reason = f"uses {name} without importing it; another module defines that name"
        yield module.refuse(line, reason)


def _lines_of_uses(name: str, tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            yield node.lineno


def _read_globals(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        top = table.get_type() == "module"
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _read_globals(inner)


def _check_host_classes(modules: Sequence[Module], target: Target) -> Iterator[Refusal]:
    first = f"{target.entry}.{target.host_class}"
    for module in modules:
        for binding in _bindings(module):
            if binding.name in HOST_CLASSES and binding.meaning != first:
                reason = f"a second host class, {binding.name}"
                yield module.refuse(binding.line, reason)
    entry = next(module for module in modules if module.name == target.entry)
    yield from _check_entry_class(entry, target.host_class)


def _check_entry_class(entry: Module, host_class: str) -> Iterator[Refusal]:
    """Refuse an entry module that does not define its host class exactly once."""
    own = [
        node
        for node in entry.tree.body
        if isinstance(node, ast.ClassDef) and node.name == host_class
    ]
    if not own:
        yield entry.refuse(1, f"the entry module defines no class {host_class}")
    for again in own[1:]:
        yield entry.refuse(again, f"a second host class, {host_class}")
