"""Why a bundle is not built."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Refusal:
    """One thing that the sources must not do, in one sentence."""

    module: str
    line: int
    reason: str

    def __str__(self) -> str:
        """The sentence, with its place in front."""
        return f"{self.module}, line {self.line}: {self.reason}."


class BundleRefused(Exception):
    """The sources break a rule of bundling; carries every place where they do."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        """Keep them in the order of the sources, each once."""
        self.refusals = tuple(sorted(set(refusals)))
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))
