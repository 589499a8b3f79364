"""An event loop in which waiting takes no time.

When nothing is left to do before a timer, its clock jumps there. What would wait for
ever is an error at once.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")
BEGINNING = 4_096.0
"""A loop whose time begins at 0 hides that a time was taken for the seconds since another."""


class _SkippingSelector(selectors.SelectSelector):
    """Adds up the seconds that it did not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everything waits and nothing will ever happen")
        if not ready and timeout:
            self.skipped += timeout
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose time is made of what it skipped."""

    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return BEGINNING + self._skipping.skipped


def skipped_seconds() -> float:
    """Return how much time has passed in the running loop."""
    return asyncio.get_running_loop().time() - BEGINNING


def run_skipping(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of `work` in a loop of its own; fails if a task is left."""

    async def watched() -> _Result:
        result = await work
        for _ in range(3):  # what was cancelled gets its turn
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(watched())
