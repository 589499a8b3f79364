"""What the last day showed of keys and models, for all calls of the pipe."""

from collections import Counter
from collections.abc import Callable, Mapping

from openai_responses.clock import monotonic_seconds
from openai_responses.recent_texts import RecentTexts
from openai_responses.repairs.memory import RepairMemory
from owui_manifold.call.uploads import UploadMemory

_MAX_REASONS = 50
_MAX_REASON = 64
"""Reasons, and characters of one: a server writes them."""


class AccountCapabilities(RecentTexts):
    """What the last day showed of each key and model, and what was told."""

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        super().__init__(now)
        self.shutdown_dates: Mapping[str, str] = {}
        self.repairs = RepairMemory(now)
        self.uploads = UploadMemory(now)
        self.dropped = Counter[str]()
        """How often the API left items out of the input, by its reasons."""

    def count_dropped(self, removed: Mapping[str, int]) -> None:
        """Count what the API left out of an input."""
        for reason, count in removed.items():
            name = reason[:_MAX_REASON]
            if name in self.dropped or len(self.dropped) < _MAX_REASONS:
                self.dropped[name] += count
