"""How long a run waits for the server."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from openai_responses.errors import TimedOut, TimeoutKind


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds; a `total` of 0 is none.

    `first_event` runs from the sending to the first event, `idle` from one event to
    the next; a `keepalive` is an event. Reasoning at high effort is silent for
    minutes, so there is no total limit unless somebody asks for one; the time of tools
    and of people does not count in it.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


class Deadlines:
    """The limit that is running now, over all attempts of one run."""

    def __init__(self, timeouts: Timeouts) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        now = asyncio.get_running_loop().time()
        self._end = now + timeouts.total if timeouts.total else float("inf")
        self._next = now + timeouts.first_event
        self._kind: TimeoutKind = "first_event_timeout"

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.first_event, "first_event_timeout"

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.idle, "idle_timeout"

    def leave(self, seconds: float) -> bool:
        """Say whether the total limit leaves time for a wait."""
        return asyncio.get_running_loop().time() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the total limit stand still."""
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._end += asyncio.get_running_loop().time() - began

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._next, self._end))

    def passed(self) -> TimedOut:
        """Return the error of the limit that passed."""
        return TimedOut("total_timeout" if self._end <= self._next else self._kind)
