"""What all calls of the pipe remember: of keys, models and files, and what was told."""

from collections import Counter
from collections.abc import Callable, Mapping

from openai_responses.clock import monotonic_seconds
from openai_responses.recent_texts import RecentTexts, UserReports
from openai_responses.repairs.memory import RepairMemory
from owui_manifold.call.uploads import UploadMemory
from shells.model_list import ModelList

_MAX_REASONS = 50
_MAX_REASON_CHARACTERS = 64
"""The reasons come from the server, so both are limited."""


class PipeMemory(RecentTexts):
    """The memory of all calls; itself it knows which notices were shown and logged."""

    def __init__(
        self,
        listed: ModelList | None = None,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Start empty, but for the models that are `listed`."""
        super().__init__(now=now)
        self.listed = listed or ModelList()
        self.repairs = RepairMemory(now)
        self.uploads = UploadMemory(now)
        self.refused_uploads = UserReports(now=now)
        """Accounts that take no files for Python, by the users who met it."""
        self.left_out = RecentTexts(now=now)
        """What the log has said of callers' requests: they choose the names in it."""
        self.dropped = Counter[str]()
        """How often the API left items out of the input, by its reasons."""

    def count_dropped(self, removed: Mapping[str, int]) -> None:
        """Count what the API left out of an input."""
        for reason, count in removed.items():
            name = reason[:_MAX_REASON_CHARACTERS]
            if name in self.dropped or len(self.dropped) < _MAX_REASONS:
                self.dropped[name] += count
