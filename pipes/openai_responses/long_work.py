"""Work on large chats, which must not hold up the server's event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

_LARGE = 3000
"""Entries from which on the work takes so long that others would notice it."""
_Done = TypeVar("_Done")


async def run_work(size: int, work: Callable[[], _Done]) -> _Done:
    """Return the result of `work` on a chat with so many entries.

    A large chat takes a thread, so that the server answers others meanwhile.
    """
    if size > _LARGE:
        return await asyncio.to_thread(work)
    return work()
