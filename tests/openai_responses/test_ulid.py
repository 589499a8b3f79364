"""Our ids are ULIDs as another implementation reads and writes them."""

import time

import ulid

from openai_responses.ulid import new_ulid


def test_other_implementation_reads_ours() -> None:
    """It finds the same number in each, and writes the same text."""
    for text in (new_ulid() for _ in range(1000)):
        assert len(text) == 26
        assert str(ulid.from_int(int(ulid.parse(text)))) == text


def test_random_bits_are_all_used() -> None:
    """Each of the 80 is set in some id and clear in another."""
    numbers = [ulid.parse(new_ulid()).randomness().int for _ in range(1000)]
    for bit in range(80):
        assert {number >> bit & 1 for number in numbers} == {0, 1}


def test_new_ids_hold_the_present_time_and_differ() -> None:
    before = time.time_ns() // 1_000_000
    ids = {new_ulid() for _ in range(1000)}
    after = time.time_ns() // 1_000_000
    assert len(ids) == 1000
    assert all(before <= ulid.parse(i).timestamp().int <= after for i in ids)
