"""The reading order of a bundle: every module after the ones it imports."""

from dataclasses import dataclass
from pathlib import Path

from bundling.modules import Module, OurImport, read_module
from bundling.refusals import BundleRefused
from bundling.targets import Target


def in_reading_order(target: Target, root: Path) -> list[Module]:
    """Return the entry module and all that it imports, imported modules first.

    The order is that of the packages, then that of the imports as they are written.
    """
    finished: dict[str, Module] = {}
    entry = target.path_of(target.entry, root)
    if entry is None:
        raise FileNotFoundError(f"{target.entry} does not exist")
    _Visitor(target, root, finished).visit(read_module(target.entry, entry, target))

    def package_index(module: Module) -> int:
        return target.packages.index(module.package)

    return sorted(finished.values(), key=package_index)


@dataclass(frozen=True)
class _Visitor:
    """Reads modules along their imports, and puts each after what it imports."""

    target: Target
    root: Path
    finished: dict[str, Module]

    def visit(self, module: Module, importers: tuple[str, ...] = ()) -> None:
        """Finish the imports of a module, then the module; refuse a cycle."""
        chain = (*importers, module.name)
        for needed in module.ours:
            if needed.module in chain:
                start = chain.index(needed.module)
                cycle = " -> ".join((*chain[start:], needed.module))
                reason = f"this import closes the cycle {cycle}"
                raise BundleRefused([module.refuse(needed.line, reason)])
            if needed.module not in self.finished:
                self.visit(self._read(needed, module), chain)
        self.finished[module.name] = module

    def _read(self, needed: OurImport, module: Module) -> Module:
        """Read a module that another one imports, if it may import it."""
        packages = self.target.packages
        package = needed.module.partition(".")[0]
        path = self.target.path_of(needed.module, self.root)
        if packages.index(package) > packages.index(module.package):
            reason = (
                f"{module.package} comes before {package}, so it must not import it"
            )
        elif path is None:
            reason = f"{needed.module} is no module of ours; import from package.module"
        else:
            return read_module(needed.module, path, self.target)
        raise BundleRefused([module.refuse(needed.line, reason)])
