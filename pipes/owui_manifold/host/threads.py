"""Threads of each user, for tools that are not coroutines.

A thread cannot be stopped: a tool that hangs keeps it after its time limit. In one pool
a single user could take the threads of all.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

_MAX_THREADS = 8
"""Of one user; an answer runs as many calls at once."""

_USED_UP = (
    f"Error: The tool was not started: {_MAX_THREADS} earlier calls are still running after "
    "their time limit or a stop. Tell the user to try again later, and to tell an administrator "
    "if the problem persists."
)


class UserThreads(ThreadPoolExecutor):
    """The threads of one user; `abandoned` calls run on after their time limit or a stop."""

    def __init__(self) -> None:
        super().__init__(_MAX_THREADS, "sync-tool")
        self.abandoned = set[Future[Any]]()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work`; an error if abandoned calls hold all threads."""
        if len(self.abandoned) >= _MAX_THREADS:
            return _USED_UP
        future = self.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.abandoned.add(future)
            future.add_done_callback(self._forget)
            raise

    def _forget(self, future: Future[Any]) -> None:
        """Free the thread of an abandoned call.

        As the future's callback it keeps this object alive in the weak mapping.
        """
        self.abandoned.discard(future)


ToolThreads = WeakValueDictionary[str, UserThreads]
"""By user, as long as a call of theirs runs."""
