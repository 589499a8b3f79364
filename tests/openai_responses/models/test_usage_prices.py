"""The cost of a run, from tokens and hosted tools."""

import pytest

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models.resolve import ModelPrices, resolve_model
from openai_responses.models.usage import Usage, cost_of_run, read_prices

PRICES = ModelPrices(input=2.0, cached=0.5, cache_write=4.0, output=10.0)
USAGE = Usage(input=1000, output=200, total=1200, cached=600, cache_writes=100)


def test_each_kind_of_token_has_its_price() -> None:
    """Cached and written tokens are part of the input, not on top of it."""
    expected = (300 * 2.0 + 600 * 0.5 + 100 * 4.0 + 200 * 10.0) / 1_000_000
    assert cost_of_run(USAGE, PRICES, []) == pytest.approx(expected)


def test_missing_cache_prices_are_those_of_the_input() -> None:
    """Nobody gives a discount that no source tells of."""
    prices = ModelPrices(input=2.0, cached=None, cache_write=None, output=10.0)
    expected = (1000 * 2.0 + 200 * 10.0) / 1_000_000
    assert cost_of_run(USAGE, prices, []) == pytest.approx(expected)


@pytest.mark.parametrize(
    "prices",
    [None, ModelPrices(None, 0.5, None, 10.0), ModelPrices(2.0, None, None, None)],
)
def test_an_unknown_price_makes_the_cost_unknown(prices: ModelPrices | None) -> None:
    """A sum without one of its parts would look like an answer."""
    assert cost_of_run(USAGE, prices, [{"type": "web_search_call"}]) is None


def test_hosted_tools_have_fees() -> None:
    """Searches by the call, code by the container."""
    output: list[Item] = [
        {"type": "web_search_call"},
        {"type": "web_search_call"},
        {"type": "file_search_call"},
        {"type": "code_interpreter_call", "container_id": "a"},
        {"type": "code_interpreter_call", "container_id": "a"},
        {"type": "code_interpreter_call", "container_id": "b"},
        {"type": "message"},
    ]
    expected = 2 * 0.01 + 0.0025 + 2 * 0.03
    assert cost_of_run(Usage(), PRICES, output) == pytest.approx(expected)


def test_every_priced_model_of_the_catalog_has_a_cost() -> None:
    """The catalog's own prices are complete enough to be used."""
    prices = resolve_model("gpt-6.1-sol").facts.prices
    assert cost_of_run(Usage(input=1_000_000), prices, []) == pytest.approx(2.0)


def test_own_prices() -> None:
    """What is not given is not known."""
    text = '{"my-model": {"input": 2, "output": 8.5, "cached": 0}}'
    assert read_prices(text) == {"my-model": ModelPrices(2, 0, None, 8.5)}
    assert read_prices("  ") == {}


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"m": 1}',
        '{"m": {}}',
        '{"m": {"input": 1}}',
        '{"m": {"input": 1, "output": -1}}',
        '{"m": {"input": 1, "output": Infinity}}',
        '{"m": {"input": 1, "output": "2"}}',
        '{"m": {"input": 1, "output": 2, "color": 3}}',
    ],
)
def test_prices_that_cannot_be_meant(text: str) -> None:
    """The sentence names the valve and shows an example."""
    with pytest.raises(InvalidRequest, match=r"CUSTOM_MODEL_PRICING_JSON .* example"):
        read_prices(text)
