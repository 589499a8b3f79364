"""What a bundle holds of its modules: all that the host class leads to by names.

A definition that no other part names is left out. This is safe: importing a module
defines names and does nothing else (`effect_rules` refuses the rest), and a top-level
name stands for one thing in all modules (`name_rules`). A local variable of the same
name keeps more than needed, never less.

The host stores, formats and compiles every line of a bundle. So docstrings and lines of
comment stay in the sources; `...` stands for a docstring that is all there is of a
definition. Nothing else of a part is changed.
"""

import ast
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from bundling.modules import ExternalImport, Module
from bundling.name_rules import defined_names
from bundling.targets import Target


@dataclass(frozen=True)
class Part:
    """A top-level definition."""

    text: str
    defines: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Chapter:
    """The parts of one module that a bundle holds."""

    module: Module
    parts: tuple[Part, ...]

    @property
    def body(self) -> str:
        """Their text."""
        return "\n".join(part.text for part in self.parts).strip("\n")

    @property
    def externals(self) -> Iterator[ExternalImport]:
        """The foreign imports that they name."""
        names = {name for part in self.parts for name in part.names}
        return (each for each in self.module.externals if each.bound in names)


def reachable_chapters(modules: Sequence[Module], target: Target) -> list[Chapter]:
    """What the bundle holds of each module; a module without such a part is left out."""
    chapters = [Chapter(module, tuple(_read_parts(module))) for module in modules]
    kept = _follow((part for each in chapters for part in each.parts), target)
    chapters = [
        Chapter(each.module, tuple(part for part in each.parts if part.defines & kept))
        for each in chapters
    ]
    return [chapter for chapter in chapters if chapter.parts]


def _follow(parts: Iterable[Part], target: Target) -> set[str]:
    """The top-level names that the host class leads to, itself included."""
    leads: dict[str, set[str]] = {}
    for part in parts:
        for name in part.defines:
            leads.setdefault(name, set()).update(part.names)
    found: set[str] = set()
    waiting = {target.host_class}
    while waiting:
        found |= waiting
        named = {name for each in waiting for name in leads[each]}
        waiting = (named & leads.keys()) - found
    return found


def _read_parts(module: Module) -> Iterator[Part]:
    """Its definitions in order; the lines above each, without imports, belong to it."""
    first, *body = module.tree.body
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    unread = (first, *imports, *_unread_docstrings(module.tree))
    lines = module.text.splitlines()
    for text in _only_docstrings(module.tree):
        dots, *rest = _lines_of(text)
        lines[dots - 1] = " " * text.col_offset + "..."
        for number in rest:
            lines[number - 1] = ""
    left_out = {line for node in unread for line in _lines_of(node)}
    left_out.update(_gaps(module.tree, lines))
    left_out.update(_comment_lines(module.text))
    begin = 1
    for nodes in _group_definitions(node for node in body if node not in imports):
        end = _lines_of(nodes[-1]).stop
        numbers = (line for line in range(begin, end) if line not in left_out)
        yield _make_part("\n".join(lines[line - 1] for line in numbers), nodes)
        begin = end


def _unread_docstrings(tree: ast.AST) -> Iterator[ast.stmt]:
    """The texts that stand as statements beside others."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1:
            yield from filter(_is_text, body)


_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _only_docstrings(tree: ast.AST) -> Iterator[ast.stmt]:
    """The texts that are all there is of a class or function."""
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and len(node.body) == 1:
            yield from filter(_is_text, node.body)


def _gaps(tree: ast.Module, lines: Sequence[str]) -> Iterator[int]:
    """The blank line behind the docstring of a class with more than that."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and ast.get_docstring(node) and node.body[1:]:
            behind = _lines_of(node.body[0]).stop
            if not lines[behind - 1].strip():
                yield behind


def _comment_lines(text: str) -> Iterator[int]:
    """The lines with nothing but a comment."""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            yield token.start[0]


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _group_definitions(body: Iterable[ast.stmt]) -> list[list[ast.stmt]]:
    """Each definition with the docstring below it."""
    groups: list[list[ast.stmt]] = []
    for node in body:
        if groups and isinstance(node, ast.Expr):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _make_part(text: str, nodes: Sequence[ast.stmt]) -> Part:
    inside = [each for node in nodes for each in ast.walk(node)]
    names = frozenset(each.id for each in inside if isinstance(each, ast.Name))
    defines = frozenset(name for name, _ in defined_names(nodes))
    return Part(text, defines, names)


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
