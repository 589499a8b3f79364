"""A source module, read with its imports."""

import __future__

import ast
from dataclasses import dataclass
from pathlib import Path

from bundling.refusals import BundleRefused, Refusal
from bundling.targets import Target


@dataclass(frozen=True)
class OurImport:
    """`from package.module import name` of one of our own modules."""

    line: int
    module: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ExternalImport:
    """One name that a foreign import binds."""

    line: int
    module: str
    name: str | None
    alias: str | None

    @property
    def bound(self) -> str:
        """The name it binds in the importing module."""
        return self.alias or self.name or self.module.partition(".")[0]

    @property
    def origin(self) -> str:
        """What that name stands for."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module if self.alias else self.bound


@dataclass(frozen=True)
class Module:
    """One of our modules; `ours` and `externals` are its top-level imports."""

    name: str
    text: str
    tree: ast.Module
    ours: tuple[OurImport, ...]
    externals: tuple[ExternalImport, ...]

    @property
    def package(self) -> str:
        """The package it belongs to."""
        return self.name.partition(".")[0]

    @property
    def docstring(self) -> str:
        """Its docstring as written, line breaks included."""
        return ast.get_docstring(self.tree, clean=False) or ""

    def refuse(self, node: ast.AST | int, reason: str) -> Refusal:
        """A refusal at a node, or at a line, of this module."""
        line = node if isinstance(node, int) else int(getattr(node, "lineno", 1))
        return Refusal(self.name, line, reason)


def read_module(name: str, path: Path, target: Target) -> Module:
    """Read one of our modules from its file."""
    text = path.read_text("utf-8")
    tree = _parse(name, text)
    ours: list[OurImport] = []
    externals: list[ExternalImport] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            externals += _imported_modules(node)
        elif isinstance(node, ast.ImportFrom):
            if _is_ours(node, target):
                ours.append(_our_import(node))
            else:
                externals += _imported_names(node)
    return Module(name, text, tree, tuple(ours), tuple(externals))


def _is_ours(node: ast.ImportFrom, target: Target) -> bool:
    """Tell whether an import takes names from a package that the file is built of."""
    package = (node.module or "").partition(".")[0]
    return not node.level and package in target.packages


def _our_import(node: ast.ImportFrom) -> OurImport:
    names = tuple(alias.name for alias in node.names)
    return OurImport(node.lineno, node.module or "", names)


def _imported_modules(node: ast.Import) -> list[ExternalImport]:
    """Return the modules of `import a, b as c`."""
    return [
        ExternalImport(node.lineno, alias.name, None, alias.asname)
        for alias in node.names
    ]


def _imported_names(node: ast.ImportFrom) -> list[ExternalImport]:
    """Return the names of `from a import b, c`; none of a relative import.

    The import rules refuse a relative import.
    """
    if node.level or not node.module:
        return []
    return [
        ExternalImport(node.lineno, node.module, alias.name, alias.asname)
        for alias in node.names
    ]


def _parse(name: str, text: str) -> ast.Module:
    """Parse as Python 3.11, which must also compile under the annotations future.

    Open WebUI executes a function under that inherited future, where `await`, `yield`
    and `:=` in an annotation are syntax errors.
    """
    try:
        tree = ast.parse(text, name, feature_version=(3, 11))
        future = __future__.annotations.compiler_flag
        compile(text, name, "exec", flags=future, dont_inherit=True)
    except SyntaxError as error:
        reason = f"is not valid here: {error.msg}"
        raise BundleRefused([Refusal(name, error.lineno or 1, reason)]) from error
    return tree
