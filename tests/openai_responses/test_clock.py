"""Our ids are ULIDs as another implementation reads and writes them."""

import time

import ulid
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.clock import encode_ulid, new_ulid

MILLISECONDS = st.integers(0, 2**48 - 1)
RANDOMNESS = st.integers(0, 2**80 - 1)


@given(milliseconds=MILLISECONDS, randomness=RANDOMNESS)
def test_other_implementation_reads_ours(milliseconds: int, randomness: int) -> None:
    """It finds the time and the random bits in it, and writes the same text."""
    number = (milliseconds << 80) | randomness
    text = encode_ulid(milliseconds, randomness)
    assert int(ulid.parse(text)) == number
    assert ulid.parse(text).timestamp().int == milliseconds
    assert ulid.parse(text).randomness().int == randomness
    assert str(ulid.from_int(number)) == text


@given(
    one=st.tuples(MILLISECONDS, RANDOMNESS), other=st.tuples(MILLISECONDS, RANDOMNESS)
)
def test_order_is_that_of_time(one: tuple[int, int], other: tuple[int, int]) -> None:
    """Ids sort as texts like their times, then like their random bits."""
    assert (encode_ulid(*one) < encode_ulid(*other)) == (one < other)


def test_length() -> None:
    """The first and the last id there can be have 26 characters."""
    assert encode_ulid(0, 0) == "0" * 26
    assert encode_ulid(2**48 - 1, 2**80 - 1) == "7" + "Z" * 25


def test_fresh_ids() -> None:
    """They hold the present time, and differ."""
    before = time.time_ns() // 1_000_000
    ids = {new_ulid() for _ in range(1000)}
    after = time.time_ns() // 1_000_000
    assert len(ids) == 1000
    assert all(before <= ulid.parse(i).timestamp().int <= after for i in ids)
