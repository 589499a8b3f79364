"""What a module may import, and in which form."""

import ast
import sys
from collections.abc import Iterator, Sequence

from bundling.modules import Module
from bundling.refusals import Refusal
from bundling.targets import Target

AnyImport = ast.Import | ast.ImportFrom


def check_imports(module: Module, target: Target) -> Iterator[Refusal]:
    """Refuse every import that cannot be moved to the head of a bundle."""
    at_top = [node for node in module.tree.body if isinstance(node, AnyImport)]
    for node in ast.walk(module.tree):
        if isinstance(node, AnyImport) and node not in at_top:
            yield module.refuse(node, "an import below the top level; move it up")
    for node in at_top:
        reason = _why_not(node, target)
        if reason:
            yield module.refuse(node, reason)
        if _shares_its_line(node, module):
            yield module.refuse(node, "an import shares its line; give it its own")


def _why_not(node: AnyImport, target: Target) -> str:
    if isinstance(node, ast.Import):
        for alias in node.names:
            reason = _why_not_module(alias.name, target)
            if reason:
                return reason
        return ""
    if node.level:
        return "a relative import; name the module in full"
    source = node.module or ""
    if source == "__future__":
        return "a __future__ import; the Pipelines server cannot resolve its strings"
    return _why_not_names(node.names, source, target)


def _why_not_names(names: Sequence[ast.alias], source: str, target: Target) -> str:
    if any(alias.name == "*" for alias in names):
        return f"a star import from {source}; name what is needed"
    top = source.partition(".")[0]
    if top == "open_webui":
        return "open_webui is imported as a module; a missing name must not fail a load"
    if top not in target.packages:
        return _why_not_foreign(source, target)
    if any(alias.asname for alias in names):
        return f"an alias for a name of {source}; bundled names keep their own"
    return ""


def _why_not_module(name: str, target: Target) -> str:
    if name.partition(".")[0] in target.packages:
        return f"imports {name} as a module; write: from {name} import ..."
    return _why_not_foreign(name, target)


def _why_not_foreign(name: str, target: Target) -> str:
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top in target.requirements:
        return ""
    allowed = ", ".join(sorted(target.requirements))
    return f"imports {top}; a bundle has the standard library, {allowed}"


def _shares_its_line(node: AnyImport, module: Module) -> bool:
    return any(
        other is not node
        and other.lineno <= (node.end_lineno or node.lineno)
        and node.lineno <= (other.end_lineno or other.lineno)
        for other in module.tree.body
    )
