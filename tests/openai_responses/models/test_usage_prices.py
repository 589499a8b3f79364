"""The cost of a run, from tokens and searches."""

from datetime import date

import pytest

from openai_responses.models.facts import ModelPrices
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import (
    RequestTerms,
    Usage,
    cost_of_run,
    window_share,
)

PRICES = ModelPrices(input=2.0, cached=0.5, cache_write=4.0, output=10.0)
FACTS = resolve_model("our-model").facts._replace(prices=PRICES)
USAGE = Usage(input=1000, output=200, total=1200, cached=600, cache_writes=100)
TODAY = date(2026, 11, 22)


def cost(
    *usages: Usage, model: str = "gpt-6.1-sol", today: date = TODAY, host: str = ""
) -> float | None:
    """Return the cost of responses of a model of the catalog."""
    facts = resolve_model(model).facts
    found = cost_of_run(usages, facts, [], today, RequestTerms(host))
    return found.dollars if found else None


@pytest.mark.parametrize(
    ("cached", "cache_write", "expected"),
    [
        pytest.param(0.5, 4.0, 300 * 2.0 + 600 * 0.5 + 100 * 4.0, id="known"),
        pytest.param(None, None, 1000 * 2.0, id="missing ones are those of the input"),
    ],
)
def test_each_kind_of_token_has_its_price(
    cached: float | None, cache_write: float | None, expected: float
) -> None:
    """Cached and written tokens are part of the input, not on top of it."""
    prices = PRICES._replace(cached=cached, cache_write=cache_write)
    found = cost_of_run([USAGE], FACTS._replace(prices=prices), [], TODAY)
    assert found is not None
    assert found.dollars == pytest.approx((expected + 200 * 10.0) / 1_000_000)


@pytest.mark.parametrize(
    "prices",
    [None, ModelPrices(None, 0.5, None, 10.0), ModelPrices(2.0, None, None, None)],
)
def test_an_unknown_price_makes_the_cost_unknown(prices: ModelPrices | None) -> None:
    """A sum without one of its parts would look like an answer."""
    facts = FACTS._replace(prices=prices)
    output = [{"type": "web_search_call"}]
    assert cost_of_run([USAGE], facts, output, TODAY) is None


MILLION = Usage(input=200_000, output=100_000)
"""On gpt-6.1-sol 0.40 for the input and 1.00 for the output."""


@pytest.mark.parametrize(
    ("model", "tier", "expected"),
    [
        ("gpt-6.1-sol", "", 1.4),
        ("gpt-6.1-sol", "flex", 0.7),
        ("gpt-6.1-sol", "fast", 2.8),
        ("gpt-6.1-sol", "ultrafast", 8.4),
        ("gpt-6.2-sol", "ultrafast", 4.2),
        ("gpt-6.1-sol", "scale", None),
        ("gpt-5.4-nano", "fast", None),
    ],
)
def test_each_tier_has_its_price(model: str, tier: str, expected: float | None) -> None:
    """By the tier that served the response; an unknown one has no price."""
    dollars = cost(MILLION._replace(tier=tier), model=model)
    assert dollars == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("today", "expected"), [(date(2027, 2, 28), 4.2), (date(2027, 3, 1), 8.4)]
)
def test_a_price_that_changes_on_a_day(today: date, expected: float) -> None:
    """Ultrafast on gpt-6.2-sol costs half until the end of February 2027."""
    used = MILLION._replace(tier="ultrafast")
    assert cost(used, model="gpt-6.2-sol", today=today) == pytest.approx(expected)


def test_a_long_request_costs_more_as_a_whole() -> None:
    """Twice for all of its input and cache, one and a half times for its output."""
    used = Usage(input=272_001, output=1_000, cached=200_000, cache_writes=2_001)
    standard = (70_000 * 2 + 200_000 * 0.1 + 2_001 * 2.5) / 1e6
    assert cost(used) == pytest.approx(2 * standard + 1.5 * 1_000 * 10 / 1e6)
    assert cost(used, model="gpt-4.1") == pytest.approx(
        (72_001 * 2 + 200_000 * 0.5 + 1_000 * 8) / 1e6
    )


def test_the_limit_is_that_of_one_request() -> None:
    """Two rounds of 200,000 tokens are not one of 400,000."""
    assert cost(MILLION, MILLION) == pytest.approx(2.8)
    assert cost(Usage(input=272_000)) == pytest.approx(0.272 * 2)
    long_and_fast = Usage(input=300_000, tier="fast")
    assert cost(long_and_fast) == pytest.approx(0.3 * 2 * 2 * 2)


def test_each_response_has_its_own_tier() -> None:
    """A request that was served at the standard tier pays no more; one unknown tier
    makes the sum unknown."""
    fast = MILLION._replace(tier="fast")
    other = MILLION._replace(tier="scale")
    assert cost(fast, MILLION) == pytest.approx(4.2)
    assert cost(fast, MILLION, other) is None


@pytest.mark.parametrize(
    ("model", "host", "expected"),
    [
        ("gpt-6.1-sol", "eu.api.openai.com", 1.54),
        ("gpt-6.1-sol", "api.openai.com", 1.4),
        ("gpt-6.1-sol", "eu.api.openai.com.example.org", 1.4),
        ("gpt-5.2", "eu.api.openai.com", 1.75),
    ],
)
def test_hosts_of_a_region_cost_more(model: str, host: str, expected: float) -> None:
    """For models since March 2026, by a tenth."""
    assert cost(MILLION, model=model, host=host) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("last", "window", "most_input", "share"),
    [
        (Usage(input=500, output=100, total=600), 1000, None, 60),
        (Usage(input=1500, output=100, total=1600), 1000, None, 100),
        (Usage(input=500, output=100, total=600), 1000, 800, 75),
        (Usage(input=500, output=100, total=600), None, 800, 75),
        (Usage(total=600), None, None, 0),
        (None, 1000, 800, 0),
    ],
)
def test_window_fills_with_the_last_response(
    last: Usage | None, window: int | None, most_input: int | None, share: int
) -> None:
    """The next request begins with its input and its output."""
    facts = FACTS._replace(context_window=window, max_input_tokens=most_input)
    assert window_share(last, facts) == share
