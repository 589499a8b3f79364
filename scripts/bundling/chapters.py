"""A module as a bundle shows it: its docstring as a banner, then its body.

The body is the module's text without its docstring and its imports, which are merged
at the head of the bundle. Nothing else is changed: docstrings and comments stay.
"""

import ast

from bundling.frontmatter import split_docstring
from bundling.merged_imports import LINE_LENGTH
from bundling.modules import Module
from bundling.targets import Target

RULER = "# " + "-" * (LINE_LENGTH - 2)


def print_chapter(module: Module, target: Target) -> str:
    """Return the banner and the body of a module, two blank lines apart."""
    body = _body_of(module)
    banner = _banner_of(module, target)
    return f"{banner}\n\n\n{body}" if body else banner


def _banner_of(module: Module, target: Target) -> str:
    """Return the module's name and its docstring as lines of comment."""
    text = module.docstring.strip()
    if module.name == target.entry:
        _, text = split_docstring(text)
    lines = [module.name, "", *text.splitlines()]
    comments = [f"# {line}".rstrip() for line in lines]
    return "\n".join([RULER, *comments, RULER])


def _body_of(module: Module) -> str:
    """Return the text of a module without its docstring and its imports."""
    docstring = module.tree.body[0]
    left_out: set[int] = set()
    for node in module.tree.body:
        if node is docstring or isinstance(node, ast.Import | ast.ImportFrom):
            end = node.end_lineno or node.lineno
            left_out.update(range(node.lineno, end + 1))
    numbered_lines = enumerate(module.text.splitlines(), start=1)
    lines = [line for number, line in numbered_lines if number not in left_out]
    return "\n".join(lines).strip("\n")
