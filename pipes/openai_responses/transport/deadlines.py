"""Which time limit runs, and until when, over all attempts of one run."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from openai_responses.callbacks import ignore_report
from openai_responses.errors import TimedOut, TimeoutKind


class Timeouts(NamedTuple):
    """Limits in seconds; a `total` of 0 means no limit.

    They limit silences: until the first event `first_event`, then `idle`. Any byte ends
    a silence: some servers send comments alone while they read a long prompt. The time
    of tools and of users does not count in `total`.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()


class Deadlines:
    """The limit that is active now, over all attempts of one run.

    `set_waiting` is called with True when a wait for the server begins, and with False
    when something else takes the time, such as users who are asked.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        set_waiting: Callable[[bool], object] = ignore_report,
    ) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        self._set_waiting = set_waiting
        self._end = float("inf")
        """When the total limit is exceeded, by the event loop's clock."""
        if timeouts.total:
            self._end = _now() + timeouts.total
        self._silence = timeouts.first_event
        """The longest silence now."""
        self._kind: TimeoutKind = "first_event_timeout"
        """The limit that this is."""
        self._bytes_due = float("inf")
        """When the next bytes have to be there, by the same clock."""
        self.start_attempt()

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        self._silence = self.timeouts.first_event
        self._kind = "first_event_timeout"
        self._set_waiting(True)
        self.bytes_arrived()

    def bytes_arrived(self) -> None:
        """Wait for more bytes from now on."""
        self._bytes_due = _now() + self._silence

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        self._silence = self.timeouts.idle
        self._kind = "idle_timeout"
        self._set_waiting(True)
        self.bytes_arrived()

    def allow(self, seconds: float) -> bool:
        """Say whether the total limit leaves enough time for a wait."""
        return _now() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the total limit for a while."""
        self._set_waiting(False)
        began = _now()
        try:
            yield
        finally:
            self._end += _now() - began

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._bytes_due, self._end))

    def timeout_error(self) -> TimedOut:
        """Return the error of the limit that was exceeded."""
        if self._end <= self._bytes_due:
            return TimedOut("total_timeout")
        return TimedOut(self._kind)
