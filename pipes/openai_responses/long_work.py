"""Work on large chats, which must not hold up the server's event loop."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from openai_responses.json_input import as_list

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


_KILOBYTE = 1024


def count_entries(value: object, depth: int) -> int:
    """Return about how large a JSON value is: entries and kilobytes, to a depth.

    Nothing is counted beyond what makes a chat large: the event loop waits for it.
    """
    if isinstance(value, str):
        return len(value) // _KILOBYTE
    rows = as_list(value)
    if isinstance(value, Mapping):
        rows = list(value.values())
    count = len(rows)
    if depth <= 0:
        return count
    for row in rows:
        if count > _LARGE:
            break
        # Most values are short texts and numbers; a call for each would be half the time.
        if isinstance(row, str):
            count += len(row) // _KILOBYTE
        elif isinstance(row, (dict, list)):
            count += count_entries(row, depth - 1)
    return count
