"""Our ids are ULIDs as another implementation reads and writes them."""

import time

import ulid

from openai_responses.ulid import new_ulid


def test_ids_are_those_of_another_implementation() -> None:
    """They hold the present time, and each of 80 random bits is set in some of them."""
    before = time.time_ns() // 1_000_000
    ids = {new_ulid() for _ in range(1000)}
    after = time.time_ns() // 1_000_000
    read = {text: ulid.parse(text) for text in ids}
    assert len(ids) == 1000
    assert all(str(ulid.from_int(int(value))) == text for text, value in read.items())
    assert all(before <= value.timestamp().int <= after for value in read.values())
    numbers = [value.randomness().int for value in read.values()]
    for bit in range(80):
        assert {number >> bit & 1 for number in numbers} == {0, 1}
