"""What was said lately, so that a log line or a notice appears once."""

from collections.abc import Callable

from openai_responses.clock import monotonic_seconds

_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        self._now = now
        self._ends: dict[int, float] = {}
        """Until when each text counts, by its hash."""

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + _DAY_SECONDS
        return True
