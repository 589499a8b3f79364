"""Faults that a person could make: where a source has room for one, and what it reads then.

Only code in functions is changed. A fault is a piece of text that takes the place of
another one, so that the rest of the file stays as it is.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

_SHIFTED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


@dataclass(frozen=True, slots=True)
class Fault:
    """The bytes from `start` to `end` of the file at `path` are replaced by `new`."""

    path: Path
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
    tree = ast.parse(source)
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    seen = set()
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                for target, kind, new in _changes(node):
                    end_line = target.end_lineno or target.lineno
                    start = begins[target.lineno - 1] + target.col_offset
                    end = begins[end_line - 1] + (target.end_col_offset or 0)
                    if (start, end, new) in seen:
                        continue  # a function in a function is walked twice
                    seen.add((start, end, new))
                    old = source[start:end].decode()
                    lines = range(target.lineno, end_line + 1)
                    yield Fault(path, lines, start, end, kind, old, new)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Say what a node could be instead: the part to replace, the kind, the new text."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, "condition the other way", f"(not ({ast.unparse(test)}))"
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
        case ast.Continue() | ast.Break():
            yield node, "statement gone", "pass"
