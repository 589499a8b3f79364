"""Why a bundle is not built."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Refusal:
    """One place where the sources break a rule, with the reason in one sentence."""

    module: str
    line: int
    reason: str

    def __str__(self) -> str:
        """Return the module, the line and the reason."""
        return f"{self.module}, line {self.line}: {self.reason}."


class BundleRefused(Exception):
    """The sources break rules of bundling; `refusals` are all places where they do."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        """Keep the refusals in the order of the sources, without duplicates."""
        self.refusals = tuple(sorted(set(refusals)))
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))
