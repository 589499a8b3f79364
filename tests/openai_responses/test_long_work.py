"""Work on a large chat takes a thread; the server answers others meanwhile."""

import asyncio
import gc
import threading
from typing import Any

import pytest

from openai_responses.long_work import count_entries, run_work


def test_only_large_work_takes_a_thread() -> None:
    """The search for cycles belongs to the whole process, and goes on there."""
    small = asyncio.run(run_work(3000, threading.current_thread))
    large = asyncio.run(run_work(3001, threading.current_thread))
    assert small is threading.main_thread() is not large
    assert asyncio.run(run_work(3001, gc.isenabled)) is True


@pytest.mark.parametrize(
    ("chat", "size"),
    [
        ([{"content": "x" * 10_240}, {"content": "short"}], 14),
        ([[[[1, 2, 3]]]], 3),
        ("x" * 2048, 2),
        (None, 0),
    ],
)
def test_size_counts_entries_and_kilobytes_to_a_depth(chat: object, size: int) -> None:
    """So that a chat of few but long messages is large, too."""
    assert count_entries(chat, 2) == size


class CountedMessage(dict[str, str]):
    """A message that counts how often its values are read."""

    read = 0

    def values(self) -> Any:
        CountedMessage.read += 1
        return super().values()


@pytest.mark.parametrize("groups", [1, 10])
def test_counting_ends_where_a_chat_is_large(groups: int) -> None:
    """The event loop waits for it: only as many entries are read as decide it."""
    CountedMessage.read = 0
    chat = [[CountedMessage(role="user")] * (20_000 // groups) for _ in range(groups)]

    assert count_entries(chat, 2) > 3000
    assert CountedMessage.read <= 3000
