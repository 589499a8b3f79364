"""Tokens are read from any server, and added up."""

import pytest

from openai_responses.models.usage import Usage, add_usage, read_usage
from upstream import wire


def test_usage_of_the_api() -> None:
    """All six counts are there."""
    assert read_usage(wire.USAGE) == Usage(30, 12, 42, 20, 4, 5)
    assert read_usage(wire.USAGE, "flex") == Usage(30, 12, 42, 20, 4, 5, "flex")
    assert read_usage(wire.USAGE, {"tier": 1}) == read_usage(wire.USAGE, None)


@pytest.mark.parametrize(
    ("given_usage", "expected"),
    [
        (None, None),
        ("x", None),
        ([], None),
        ({}, Usage()),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4, 7)),
        ({"input_tokens": 3, "total_tokens": 9}, Usage(3, 0, 9)),
        ({"input_tokens": "x", "output_tokens": -4, "total_tokens": None}, Usage()),
        ({"input_tokens": "3", "output_tokens": 4.0}, Usage(3, 4, 7)),
        ({"input_tokens": "3.0", "output_tokens": "-4"}, Usage(3, 0, 3)),
        (
            {"input_tokens": 3, "output_tokens": "nan", "total_tokens": 1e12},
            Usage(3, 0, 3),
        ),
        (
            {"input_tokens": 999_999_999_999.0, "output_tokens": [4]},
            Usage(10**12 - 1, 0, 10**12 - 1),
        ),
        ({"input_tokens": float("inf"), "output_tokens": "1" * 9_000}, Usage()),
        ({"input_tokens": 3, "input_tokens_details": None}, Usage(3, 0, 3)),
        ({"output_tokens_details": {"reasoning_tokens": 2.5}}, Usage()),
        ({"input_tokens": 10**4_000, "output_tokens": 4}, Usage(0, 4, 4)),
    ],
)
def test_usage_of_other_servers(given_usage: object, expected: Usage | None) -> None:
    """What is missing or no count is nothing; a missing sum is added up."""
    assert read_usage(given_usage) == expected


def test_each_count_of_a_sum_is_added_to_its_own() -> None:
    """In either order; nothing adds nothing."""
    first = Usage(1, 2, 3, 4, 5, 6)
    second = Usage(10, 20, 30, 40, 50, 60)
    expected = Usage(11, 22, 33, 44, 55, 66)

    assert add_usage(first, second) == add_usage(second, first) == expected
    assert add_usage(first, None) == add_usage(None, first) == first
    assert add_usage(None, None) is None
