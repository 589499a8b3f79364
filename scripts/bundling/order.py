"""The reading order of a bundle: every module after the ones it imports."""

from pathlib import Path

from bundling.modules import Module, OurImport, read_module
from bundling.refusals import BundleRefused
from bundling.targets import Target


def in_reading_order(target: Target, root: Path) -> list[Module]:
    """The entry module with all it needs, package by package, what is needed first.

    The order follows the imports as they are written, so it depends on nothing else.
    """
    finished: dict[str, Module] = {}
    entry = target.path_of(target.entry, root)
    if entry is None:
        raise FileNotFoundError(f"{target.entry} does not exist")
    _visit(read_module(target.entry, entry, target), (), finished, (target, root))

    def package_index(module: Module) -> int:
        return target.packages.index(module.package)

    return sorted(finished.values(), key=package_index)


def _visit(
    module: Module,
    above: tuple[str, ...],
    finished: dict[str, Module],
    place: tuple[Target, Path],
) -> None:
    chain = (*above, module.name)
    for needed in module.ours:
        if needed.module in chain:
            cycle = " -> ".join((*chain[chain.index(needed.module) :], needed.module))
            reason = f"this import closes the cycle {cycle}"
            raise BundleRefused([module.refuse(needed.line, reason)])
        if needed.module not in finished:
            _visit(_read(needed, module, place), chain, finished, place)
    finished[module.name] = module


def _read(needed: OurImport, module: Module, place: tuple[Target, Path]) -> Module:
    target, root = place
    packages = target.packages
    package = needed.module.partition(".")[0]
    path = target.path_of(needed.module, root)
    if packages.index(package) > packages.index(module.package):
        reason = f"{module.package} comes before {package}, so it must not import it"
    elif path is None:
        reason = f"{needed.module} is no module of ours; import from package.module"
    else:
        return read_module(needed.module, path, target)
    raise BundleRefused([module.refuse(needed.line, reason)])
