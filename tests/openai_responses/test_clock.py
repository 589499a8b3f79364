"""Our ids are ULIDs as another implementation reads and writes them; recent texts expire."""

import asyncio
import gc
import threading
import time
from functools import partial

import pytest
import ulid

from openai_responses.clock import RecentTexts, new_ulid, pause_collection, run_work


def test_other_implementation_reads_ours() -> None:
    """It finds the same number in each, and writes the same text."""
    for text in (new_ulid() for _ in range(1000)):
        assert len(text) == 26
        assert str(ulid.from_int(int(ulid.parse(text)))) == text


def test_order_is_that_of_time() -> None:
    """Ids sort as texts like their times, then like their random bits."""
    ids = [new_ulid() for _ in range(1000)]
    assert sorted(ids) == sorted(ids, key=lambda text: int(ulid.parse(text)))


def test_random_bits_are_all_used() -> None:
    """Each of the 80 is set in some id and clear in another."""
    found = [ulid.parse(new_ulid()).randomness().int for _ in range(1000)]
    for place in range(80):
        assert {number >> place & 1 for number in found} == {0, 1}


def test_fresh_ids() -> None:
    """They hold the present time, and differ."""
    before = time.time_ns() // 1_000_000
    ids = {new_ulid() for _ in range(1000)}
    after = time.time_ns() // 1_000_000
    assert len(ids) == 1000
    assert all(before <= ulid.parse(i).timestamp().int <= after for i in ids)


def test_recent_texts_are_known_for_a_day() -> None:
    """Then they are news again."""
    times = [0.0, 86_399.0, 86_400.0, 86_401.0]
    texts = RecentTexts(lambda: times[0])

    assert texts.first_time("one")
    times.pop(0)
    assert not texts.first_time("one")
    assert "one" in texts
    assert "other" not in texts
    times.pop(0)
    assert "one" not in texts
    assert texts.first_time("one")


def test_recent_texts_take_no_more_memory_than_five_thousand() -> None:
    """However many come, and however long they are."""
    texts = RecentTexts()

    for number in range(10_000):
        assert texts.first_time(f"{number} " + "x" * 1000)

    assert len(texts._ends) <= 5000
    assert "x" not in str(vars(texts)["_ends"])


def test_large_work_is_not_interrupted_by_the_search_for_cycles() -> None:
    """Small work, in the thread of the server, changes nothing for others."""
    assert asyncio.run(run_work(3001, gc.isenabled)) is False
    assert asyncio.run(run_work(3000, gc.isenabled)) is True
    assert gc.isenabled()


def test_search_for_cycles_goes_on_after_each_work() -> None:
    """Also after one that failed, and while another work began later."""

    def fail() -> None:
        raise ValueError("no work")

    def during(ended: threading.Event) -> None:
        begun.set()
        ended.wait(5)

    with pytest.raises(ValueError, match="no work"):
        pause_collection(fail)
    assert gc.isenabled()
    begun, ends = threading.Event(), [threading.Event(), threading.Event()]
    works = [
        threading.Thread(target=pause_collection, args=[partial(during, end)])
        for end in ends
    ]
    for work in works:
        begun.clear()
        work.start()
        begun.wait(5)
    ends[0].set()
    works[0].join()
    assert gc.isenabled()
    ends[1].set()
    works[1].join()
    assert gc.isenabled()


def test_who_switched_the_search_for_cycles_off_finds_it_off() -> None:
    """Work of the pipe does not switch it on."""
    gc.disable()
    try:
        pause_collection(list)
        assert not gc.isenabled()
    finally:
        gc.enable()
