"""Event loops whose clock stands still while there is anything to do.

A limit in a test is there to pass when nothing happens any more. On a machine that has
much else to do it would also pass while a request is still on its way, and what such a
test shows then depends on the machine. Here a loop counts only the time that it waited,
with nothing of its own left to do: what a test and its server, who share a loop, have
to tell each other costs no time, however long it takes.

Where a test and its server are all there is, nothing can come any more once both have
been idle for a moment: there `skip_waiting` lets the clock jump to the next timer. What
runs in threads is waited for all the same.
"""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any
from weakref import WeakSet

from event_loops.skipping_loop import BEGINNING

GLANCE = 0.01
"""Seconds; asyncio's connections send at once (TCP_NODELAY), and what goes to the machine
itself arrives while it is sent."""
MOMENT = 0.1
"""Where the machine was late for the glance, the kernel may be late as well: twice the
time that it holds anything back."""
Ready = list[tuple[selectors.SelectorKey, int]]


class _CountingSelector(selectors.DefaultSelector):
    """Adds up the seconds in which nothing was ready."""

    skips = False
    """Of all of them: whether the clock jumps where nothing can come."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0
        self.jobs = set[asyncio.Future[Any]]()  # in threads
        _SELECTORS.add(self)

    def select(self, timeout: float | None = None) -> Ready:
        """Return what is ready, at once or within the time that a timer leaves."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.skips and timeout is not None and not self.jobs:
            ready = self._look(timeout)
            self.waited += 0.0 if ready else timeout
            return ready
        began = time.monotonic()
        ready = super().select(timeout)
        waited = time.monotonic() - began
        if timeout is not None:
            # What comes from elsewhere comes before the limit that passed meanwhile.
            waited = min(waited, timeout / 2 if ready else timeout)
        self.waited += waited
        return ready

    def _look(self, timeout: float) -> Ready:
        """Return what comes within a moment."""
        began = time.monotonic()
        ready = super().select(min(timeout, GLANCE))
        if not ready and time.monotonic() - began > 2 * GLANCE:
            return super().select(min(timeout, MOMENT))
        return ready


_SELECTORS = WeakSet[_CountingSelector]()


_OURS = (
    "openai_responses",
    "owui_",
    "shells",
    "strategies",
    "manifold",
    "gpt5_agent",
    "sandbox.",
)
"""How the names of the modules begin that are tested."""


class IdleClockLoop(asyncio.SelectorEventLoop):
    """A loop whose time is made of what it waited."""

    def __init__(self) -> None:
        self._counting = _CountingSelector()
        self._timers = WeakSet[asyncio.TimerHandle]()
        self._threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
        super().__init__(self._counting)
        self.set_default_executor(self._threads)
        _LOOPS.add(self)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, **more: Any
    ) -> asyncio.TimerHandle:
        """Note the timers of what is tested."""
        timer = super().call_at(when, callback, *args, **more)
        if str(getattr(callback, "__module__", "")).startswith(_OURS):
            self._timers.add(timer)
        return timer

    def under_way(self) -> set[object]:
        """Return the tasks that go on, and the timers that have not come."""
        timers = {
            timer
            for timer in self._timers
            if not timer.cancelled() and timer.when() > self.time()
        }
        return timers | asyncio.all_tasks(self)

    def time(self) -> float:
        return BEGINNING + self._counting.waited

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Count what runs in threads."""
        job = super().run_in_executor(executor, func, *args)
        self._counting.jobs.add(job)
        job.add_done_callback(self._counting.jobs.discard)
        return job

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for no thread: one that hangs would keep the loop from closing."""
        self._threads.shutdown(wait=False)


class IdleClockPolicy(asyncio.DefaultEventLoopPolicy):
    """Gives such loops to the tests; those of other threads keep the time of the machine.

    Who speaks with another thread counts in that, and work that never pauses would stop
    the clock there.
    """

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        if threading.current_thread() is threading.main_thread():
            return IdleClockLoop()
        return super().new_event_loop()


_LOOPS = WeakSet[IdleClockLoop]()


def under_way() -> set[object]:
    """Return what goes on in all loops that are open."""
    found = set[object]()
    for loop in _LOOPS:
        if not loop.is_closed():
            found |= loop.under_way()
    return found


def skip_waiting(skips: bool) -> None:
    """Let the clocks jump from now on, or go as they do for everybody else."""
    _CountingSelector.skips = skips


def forget_threads() -> None:
    """Wait for nothing that an earlier test left in a thread, for ever maybe."""
    for selector in _SELECTORS:
        selector.jobs.clear()
