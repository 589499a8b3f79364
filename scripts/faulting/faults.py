"""Faults that a person could make: where a source has room for one, and what it reads then.

Code in functions is changed, and the tables and numbers of modules. A fault is a piece
of text that takes the place of another one, so that the rest of the file stays as it is.
"""

import ast
import builtins
import json
import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

_TIDYING = {"strip", "lstrip", "rstrip", "lower", "casefold", "copy"}
_OTHER_KIND = {
    name
    for kind in (str, bytes, dict, list, set, int, re.Pattern, re.Match)
    for name in dir(kind)
} | (set(dir(builtins)) - {"sorted", "min", "max", "list", "dict", "set", "tuple"})
"""Functions that give back something else than they get, so that leaving out their call
breaks any test."""
_SHIFTED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


@dataclass(frozen=True, slots=True)
class Fault:
    """The bytes from `start` to `end` of the file at `path` are replaced by `new`."""

    path: Path
    constant: str
    """The module's name for what this changes; empty for code in a function."""
    lines: range
    """The lines of the code that is replaced."""
    start: int
    end: int
    kind: str
    old: str
    new: str

    def __str__(self) -> str:
        """Say where it is and what it changes, in one line."""
        old, new = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"{self.path}:{self.lines.start} {self.kind}: {old} -> {new}"

    def apply(self, source: bytes) -> bytes:
        """Return the file with this fault."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def find_faults(root: Path, path: Path) -> Iterator[Fault]:
    """Find every place of a source file where one of the kinds fits."""
    source = (root / path).read_bytes()
    begins = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    seen = set()
    for constant, node in _places(ast.parse(source)):
        changes = _smaller(node) if constant else (*_changes(node), *_shorter(node))
        for target, kind, new in changes:
            end_line = target.end_lineno or target.lineno
            start = begins[target.lineno - 1] + target.col_offset
            end = begins[end_line - 1] + (target.end_col_offset or 0)
            if (start, end, new) in seen:
                continue  # a function in a function is walked twice
            seen.add((start, end, new))
            old = source[start:end].decode()
            lines = range(target.lineno, end_line + 1)
            yield Fault(path, constant, lines, start, end, kind, old, new)


def read_known_faults(root: Path, file: Path) -> list[Fault]:
    """Read the faults that people thought of, as they are in the sources at `root`.

    A row has the `file`, what it says (`old`, once in it), what it says with the fault
    (`new`), and what somebody would notice (`seen`). Raises ValueError for a row whose
    text is gone: the list moves with the code.
    """
    faults: list[Fault] = []
    for row in json.loads(file.read_text()):
        path = Path(row["file"])
        old = row["old"].encode()
        source = (root / path).read_bytes() if (root / path).exists() else b""
        if source.count(old) != 1:
            raise ValueError(f"{file.name}: not once in {path}: {row['old']!r}")
        start = source.index(old)
        first_line = source.count(b"\n", 0, start) + 1
        lines = range(first_line, first_line + len(old.splitlines()))
        constant = ""
        for name, value in _constants(_parse(source.decode())):
            if value.lineno < lines.stop and lines.start <= (value.end_lineno or 0):
                constant = name
        end = start + len(old)
        faults.append(
            Fault(
                path, constant, lines, start, end, row["seen"], row["old"], row["new"]
            )
        )
    return faults


def find_uses(
    name: str, root: Path, paths: Sequence[Path]
) -> Iterator[tuple[str, int]]:
    """Find the files and lines that use a constant, or another that is made of it."""
    names = [name]
    for used in names:  # it grows
        for path in paths:
            source = (root / path).read_text()
            if used not in source:
                continue
            tree = _parse(source)
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id == used:
                    yield str(path), node.lineno
            for made, value in _constants(tree):
                if made not in names and _mentions(value, used):
                    names.append(made)


_parse = lru_cache(maxsize=512)(ast.parse)
"""Each file is asked for many constants."""


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Find the values that a module has names for."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(
                target=ast.Name(id=name), value=ast.expr() as value
            ):
                yield name, value


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Walk through the functions, and through the values that a module has names for."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = [node for part in function.body for node in ast.walk(part)]
            # What a type is made of, as in `dict[str, Any]`, changes nothing.
            types = {
                id(node.slice) for node in nodes if isinstance(node, ast.Subscript)
            }
            for node in nodes:
                if not (isinstance(node, ast.Tuple) and id(node) in types):
                    yield "", node
    for name, value in _constants(tree):
        if not isinstance(value, ast.Subscript):  # a name of a type, as `Literal["a"]`
            yield from ((name, node) for node in ast.walk(value))


def _smaller(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """Leave one element out of a table; make a number one more."""
    match node:
        case (
            ast.Set(elts=elements) | ast.List(elts=elements) | ast.Tuple(elts=elements)
        ):
            for i, element in enumerate(elements):
                kept = [*elements[:i], *elements[i + 1 :]]
                if kept:
                    smaller = copy(node)
                    smaller.elts = kept
                    left_out = ast.unparse(element)
                    yield node, f"without {left_out[:60]}", ast.unparse(smaller)
        case ast.Dict(keys=keys, values=values):
            for i, key in enumerate(keys):
                rest = ast.Dict(keys[:i] + keys[i + 1 :], values[:i] + values[i + 1 :])
                left_out = ast.unparse(key) if key else "the rest"
                yield node, f"without {left_out[:60]}", ast.unparse(rest)
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() as number):
            yield node, "one more", f"({number} + 1)"


def _shorter(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """Leave one element out of what a function makes of several."""
    match node:
        case (
            ast.Set()
            | ast.Dict()
            | ast.List(ctx=ast.Load())
            | ast.Tuple(ctx=ast.Load())
        ):
            yield from _smaller(node)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Say what a node could be instead: the part to replace, the kind, the new text."""
    match node:
        case ast.While(test=test):
            yield test, "condition the other way", f"(not ({ast.unparse(test)}))"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, "never", "False"
            yield test, "always", "True"
        case ast.BoolOp(op=op, values=values):
            word = " and " if isinstance(op, ast.And) else " or "
            for left_out in values:
                rest = [f"({ast.unparse(v)})" for v in values if v is not left_out]
                yield node, "half of a condition", f"({word.join(rest)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if shifted := _SHIFTED.get(type(op)):
                new = f"({ast.unparse(left)} {shifted} {ast.unparse(right)})"
                yield node, "limit", new
        case ast.Constant(value=bool() as value):
            yield node, "the other of two", str(not value)
        case ast.Constant(value=int() as value):
            yield node, "one more", f"({value} + 1)"
        case ast.comprehension(ifs=filters):
            for condition in filters:
                yield condition, "filter", "True"
        case ast.Return(value=ast.expr() as value):
            if not isinstance(value, ast.Constant):
                yield value, "nothing returned", "None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            yield node, "statement gone", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
            yield node, "statement gone", "pass"
        case ast.Try(finalbody=[first, *_]):
            yield first, "statement gone", "pass"
        case ast.Subscript(slice=ast.Slice(), ctx=ast.Load()):
            yield node, "whole", ast.unparse(node.value)
        case ast.Call():
            yield from _calls(node)
        case ast.Continue() | ast.Break():
            yield node, "statement gone", "pass"


def _calls(node: ast.Call) -> Iterator[tuple[ast.expr, str, str]]:
    """Leave out a call that gives back its own kind, and what a call is told by name."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[]):
            if name in _TIDYING:
                yield node, "not called", ast.unparse(value)
        case ast.Call(
            func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *_]
        ) if not isinstance(first, ast.Constant | ast.Starred | ast.GeneratorExp):
            if name.islower() and name not in _OTHER_KIND:
                yield node, "not called", f"({ast.unparse(first)})"
    for keyword in node.keywords:
        if keyword.arg and len(node.args) + len(node.keywords) > 1:
            fewer = copy(node)
            fewer.keywords = [k for k in node.keywords if k is not keyword]
            yield node, f"without {keyword.arg}", ast.unparse(fewer)
