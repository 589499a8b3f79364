"""A bundle, from its modules to its text."""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bundling.annotation_rules import check_annotations
from bundling.chapters import print_chapter
from bundling.effect_rules import check_effects
from bundling.frontmatter import check_frontmatter, opening
from bundling.host_rules import check_host_methods
from bundling.import_rules import check_imports
from bundling.merged_imports import merge_imports
from bundling.modules import Module
from bundling.name_rules import check_names
from bundling.order import in_reading_order
from bundling.refusals import BundleRefused, Refusal
from bundling.syntax import is_constant
from bundling.targets import Target
from bundling.text_rules import check_docstring, check_loader_names, check_phrases

MODULE_RULES = (
    check_docstring,
    check_loader_names,
    check_phrases,
    check_annotations,
    check_effects,
)


def build(target: Target, root: Path) -> str:
    """Return the text of a bundle, or raise BundleRefused with every broken rule.

    The sources are formatted by Black already, and what is added here is written in
    Black's form: a save in Open WebUI's editor, which runs Black, changes nothing.
    """
    modules = in_reading_order(target, root)
    refusals = list(_refusals(modules, target, root))
    if refusals:
        raise BundleRefused(refusals)
    head = opening(modules[-1], target)
    imports = merge_imports(name for module in modules for name in module.externals)
    chapters = "\n\n\n".join(print_chapter(module, target) for module in modules)
    parts = [head, imports, chapters] if imports else [head, chapters]
    return "\n\n".join(parts) + "\n"


def _refusals(
    modules: Sequence[Module], target: Target, root: Path
) -> Iterator[Refusal]:
    for module in modules:
        for check in MODULE_RULES:
            yield from check(module)
        yield from check_imports(module, target)
    yield from check_names(modules, target)
    yield from check_host_methods(modules[-1], target)
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    yield from check_frontmatter(modules[-1], target, project["version"])
    yield from _check_packages(target, root)


def _check_packages(target: Target, root: Path) -> Iterator[Refusal]:
    """Refuse code in the `__init__` of a package or room: nothing imports it by name."""
    for name, path in target.inits(root):
        for node in ast.parse(path.read_text("utf-8")).body:
            if not is_constant(node):
                reason = "a package's __init__ has a docstring only"
                yield Refusal(name, node.lineno, reason)
