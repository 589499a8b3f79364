"""Work on a large chat takes a thread; the server answers others meanwhile."""

import asyncio
import gc
import threading

import pytest

from openai_responses.long_work import run_work


def thread_of(size: int) -> threading.Thread:
    """The thread in which work on a chat of this size is done."""
    return asyncio.run(run_work(size, threading.current_thread))


def test_only_large_work_takes_a_thread() -> None:
    """Small work is done at once: a thread would take longer."""
    assert thread_of(3000) is threading.main_thread()
    assert thread_of(3001) is not threading.main_thread()


def test_failure_reaches_whoever_waits() -> None:
    """Work of this size runs in a thread; its exception is raised here."""

    def fail() -> None:
        raise ValueError("no work")

    with pytest.raises(ValueError, match="no work"):
        asyncio.run(run_work(3001, fail))


def test_search_for_cycles_is_left_to_the_host() -> None:
    """It belongs to the whole process."""
    assert asyncio.run(run_work(3001, gc.isenabled)) is True
