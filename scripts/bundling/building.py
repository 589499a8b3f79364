"""A bundle, from its modules to its text."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import black

from bundling.annotation_rules import check_annotations
from bundling.effect_rules import check_effects
from bundling.frontmatter import check_frontmatter, opening
from bundling.host_rules import check_host_methods
from bundling.import_rules import check_imports
from bundling.modules import ExternalImport, Module
from bundling.name_rules import check_names
from bundling.order import in_reading_order
from bundling.reachability import Chapter, reachable_chapters
from bundling.refusals import BundleRefused, Refusal
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
    """The text of a bundle; raises BundleRefused with all that stands against it."""
    modules = in_reading_order(target, root)
    if refusals := list(_refusals(modules, target, root)):
        raise BundleRefused(refusals)
    chapters = reachable_chapters(modules, target)
    imports = _merged_imports(name for each in chapters for name in each.externals)
    head = opening([each.module for each in chapters], target)
    text = "\n\n".join((head, imports, *map(_print_chapter, chapters)))
    # The mode of Open WebUI's editor, which formats at every save.
    return black.format_str(text, mode=black.Mode())


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
            if not (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            ):
                reason = "a package's __init__ has a docstring only"
                yield Refusal(name, node.lineno, reason)


def _merged_imports(names: Iterable[ExternalImport]) -> str:
    """Each foreign import once: the standard library, a blank line, the rest."""
    whole: set[str] = set()
    parts: dict[str, set[str]] = {}
    for each in names:
        renamed = f" as {each.alias}" if each.alias else ""
        if each.name is None:
            whole.add(each.module + renamed)
        else:
            parts.setdefault(each.module, set()).add(each.name + renamed)
    lines = [(name, f"import {name}") for name in sorted(whole)]
    lines += [
        (module, f"from {module} import {', '.join(sorted(parts[module]))}")
        for module in sorted(parts)
    ]
    standard = [line for name, line in lines if _is_standard(name)]
    foreign = [line for name, line in lines if not _is_standard(name)]
    return "\n".join((*standard, "", *foreign))


def _is_standard(name: str) -> bool:
    return re.split(r"[. ]", name, maxsplit=1)[0] in sys.stdlib_module_names


def _print_chapter(chapter: Chapter) -> str:
    """A module as the bundle shows it: a banner with its name, then its body.

    Docstrings stay in the sources: the host stores and formats every line.
    """
    return f"# {chapter.module.name}\n\n{chapter.body}\n"
