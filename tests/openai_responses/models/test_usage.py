"""Tokens are read from any server, and added up."""

from datetime import date

import pytest

from openai_responses.models.facts import ModelFacts, ModelPrices
from openai_responses.models.usage import (
    Cost,
    RequestTerms,
    Usage,
    add_usage,
    cost_of_run,
    describe_cost,
    read_usage,
)
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
        ({}, Usage()),
        ({"input_tokens": 3, "total_tokens": 9}, Usage(3, 0, 9)),
        ({"input_tokens": "x", "output_tokens": -4, "total_tokens": None}, Usage()),
        ({"input_tokens": "3", "output_tokens": 4.0}, Usage(3, 4, 7)),
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
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(3, 4, 7, 2, 0, 1),
        ),
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


@pytest.mark.parametrize(
    ("wire_usage", "cost"),
    [
        ({"cost": 0.00125}, 0.00125),
        ({"cost": {"total_cost": 0.5, "currency": "USD"}}, 0.5),
        (
            {
                "cost": 0.25,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.5},
            },
            0.75,
        ),
        (
            {
                "cost": 0.01,
                "is_byok": False,
                "cost_details": {"upstream_inference_cost": 0.2},
            },
            0.01,
        ),
        ({"cost": 0.01, "is_byok": True, "cost_details": None}, 0.01),
        ({"cost": True}, None),
        ({"cost": "0.1"}, None),
        ({"cost": -0.1}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 10**6}, None),
        ({"cost": {"total_cost": "x"}}, None),
        ({}, None),
    ],
)
def test_what_a_server_says_that_a_response_costs(
    wire_usage: dict[str, object], cost: float | None
) -> None:
    """OpenRouter, LiteLLM and Perplexity say it; what is no amount is nothing."""
    usage = read_usage({"input_tokens": 3, **wire_usage})

    assert usage == Usage(3, 0, 3, cost=cost)


def test_a_sum_has_a_cost_if_all_have_one() -> None:
    """A part is not the whole."""
    known = Usage(1, cost=0.5)

    assert add_usage(known, known) == Usage(2, cost=1.0)
    assert add_usage(known, Usage(1)) == add_usage(Usage(1), known) == Usage(2)


PRICED = ModelFacts(prices=ModelPrices(2.0, None, None, 8.0), regional=True)
MILLION = Usage(input=1_000_000, total=1_000_000)
STATED = MILLION._replace(cost=0.5)
SEARCH = {
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search"},
}


@pytest.mark.parametrize(
    ("usages", "facts", "cost"),
    [
        ([STATED], PRICED, 0.5),
        ([STATED, STATED], ModelFacts(), 1.0),
        ([STATED, MILLION], ModelFacts(), None),
        ([STATED, MILLION], PRICED, 0.5 + 1.1 * 2.0 + 0.01),
        ([MILLION], PRICED, 1.1 * 2.0 + 0.01),
        ([], PRICED, 0.01),
    ],
)
def test_what_the_server_says_wins(
    usages: list[Usage], facts: ModelFacts, cost: float | None
) -> None:
    """It has the fees in it; the rest is counted by the prices."""
    terms = RequestTerms("eu.api.openai.com")
    known = cost_of_run(usages, facts, [SEARCH], date(2026, 11, 28), terms)

    assert (known and known.dollars) == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0.000001234, "$0.0000012"),
        (0.0123456, "$0.012"),
        (0.994, "$0.99"),
        (1.0, "$1.00"),
        (1234.567, "$1,234.57"),
    ],
)
def test_people_read_two_digits_of_a_cost(dollars: float, text: str) -> None:
    assert describe_cost(Cost(dollars)) == text
    assert describe_cost(Cost(dollars, is_estimate=True)) == f"about {text}"
