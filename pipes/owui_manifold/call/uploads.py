"""Which files were uploaded lately, so that a chat uploads each of them once."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from openai_responses.clock import monotonic_seconds
from openai_responses.transport.uploads import UPLOAD_SECONDS

_KEPT_SECONDS = UPLOAD_SECONDS - 3600
"""An answer that is being written still needs the file."""
_MAX_UPLOADS = 5000
_FILES_AT_ONCE = 2
"""Of a user: each is in memory twice until it is uploaded."""


class UploadKey(NamedTuple):
    """A file of a chat, as one account has it."""

    account: str
    user_id: str
    chat_id: str
    file_id: str
    """The host's."""
    path: str
    """Where the host stores it: a new one if it was replaced."""
    size: int
    name: str


class UploadMemory:
    """The uploads that are still there.

    Of too many, whoever has the most loses the oldest: the next request of another user
    would name other files, which costs its prompt cache.

    They are known to this process alone: another one, or a restart, uploads again.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        self._now = now
        self._uploads: dict[UploadKey, tuple[float, str]] = {}
        """Until when a file is at the API, by this clock, and its id there."""
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    def turn(self, user_id: str) -> asyncio.Semaphore:
        """Return what one more file of a user waits for until it may be read."""
        return self._turns.setdefault(user_id, asyncio.Semaphore(_FILES_AT_ONCE))

    def find(self, key: UploadKey) -> str:
        """Return the API's id of a file; empty if it has to be uploaded."""
        end, file_id = self._uploads.get(key, (0.0, ""))
        return file_id if self._now() < end else ""

    def add(self, key: UploadKey, file_id: str) -> None:
        """Remember that a file was just uploaded."""
        self._uploads.pop(key, None)  # it is the newest now
        if len(self._uploads) >= _MAX_UPLOADS:
            counts = Counter(known.user_id for known in self._uploads)
            [(most, _)] = counts.most_common(1)
            oldest = next(known for known in self._uploads if known.user_id == most)
            del self._uploads[oldest]
        self._uploads[key] = (self._now() + _KEPT_SECONDS, file_id)

    def forget(self, key: UploadKey) -> None:
        """Let the next request upload a file again."""
        self._uploads.pop(key, None)
