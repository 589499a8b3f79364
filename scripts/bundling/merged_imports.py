"""The foreign imports of a bundle, each once, in the form that Black gives them.

Black leaves an import that fits its line; a longer `from` import becomes one name a
line, in parentheses, with a comma after the last.
"""

import sys
from collections.abc import Iterable

from bundling.modules import ExternalImport

LINE_LENGTH = 88


def merge_imports(imports: Iterable[ExternalImport]) -> str:
    """Return the import lines: the standard library, a blank line, the rest."""
    modules: set[tuple[str, str]] = set()
    names_by_module: dict[str, set[str]] = {}
    for each in imports:
        renamed = f" as {each.alias}" if each.alias else ""
        if each.name is None:
            modules.add((each.module, f"import {each.module}{renamed}"))
        else:
            names = names_by_module.setdefault(each.module, set())
            names.add(each.name + renamed)
    statements = sorted(modules)
    for module in sorted(names_by_module):
        names_in_order = sorted(names_by_module[module])
        statements.append((module, _print_from_import(module, names_in_order)))
    standard: list[str] = []
    foreign: list[str] = []
    for module, text in statements:
        group = standard if _is_standard(module) else foreign
        group.append(text)
    groups = [standard, foreign]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _print_from_import(module: str, names: list[str]) -> str:
    """Return a `from` import on one line if it fits, else with a line for each name."""
    on_one_line = f"from {module} import {', '.join(names)}"
    if len(on_one_line) <= LINE_LENGTH:
        return on_one_line
    rows = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{rows})"


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names
