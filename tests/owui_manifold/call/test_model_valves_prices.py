"""Prices as an administrator states them."""

import pytest

from openai_responses.errors import InvalidRequest
from openai_responses.models.facts import ModelPrices
from owui_manifold.call.model_valves import read_prices


def test_prices_are_read_from_the_valve() -> None:
    """What is not given is not known."""
    text = '{"my-model": {"input": 2, "output": 8.5, "cached": 0}}'
    assert read_prices(text) == ({"my-model": ModelPrices(2, 0, None, 8.5)}, "")
    text = '{"my-model": {"input": 2, "output": 8, "fast": 2}}'
    assert read_prices(text)[0]["my-model"].fast == 2
    assert read_prices("  ") == ({}, "")


def test_cached_input_is_the_price_of_the_cache() -> None:
    """So jrkropp's pipe calls it; an administrator may have stored that."""
    text = '{"gpt-5": {"input": 1.25, "cached_input": 0.125, "output": 10.0}}'
    assert read_prices(text)[0]["gpt-5"] == ModelPrices(1.25, 0.125, None, 10.0)
    both = '{"m": {"input": 2, "cached": 1, "cached_input": 0.5, "output": 8}}'
    assert read_prices(both)[0]["m"].cached == 1
    most = '{"m": {"input": 0, "output": 999999}}'
    assert read_prices(most)[0]["m"] == ModelPrices(0, None, None, 999_999)


@pytest.mark.parametrize("text", ["no JSON", "[]"])
def test_text_that_is_no_table(text: str) -> None:
    """The message names the valve and shows an example."""
    with pytest.raises(InvalidRequest, match=r"CUSTOM_MODEL_PRICING_JSON .* example"):
        read_prices(text)


@pytest.mark.parametrize(
    "row",
    [
        "1",
        '{"input": 1}',
        '{"output": 1}',
        '{"input": 1000000, "output": 1}',
        '{"input": 1, "output": -1}',
        '{"input": 1, "output": Infinity}',
        '{"input": 1, "output": true}',
        '{"input": 1, "output": "2"}',
        '{"input": 1, "output": 2, "color": 3}',
        '{"input": 1, "output": 2, "cached_input": "free"}',
    ],
)
def test_prices_that_cannot_be_meant_are_unknown(row: str) -> None:
    """Those of the others are kept; the catalog's would be a guess."""
    text = f'{{"wrong": {row}, "right": {{"input": 2, "output": 8}}}}'
    prices, problem = read_prices(text)

    assert prices["wrong"] == ModelPrices(None, None, None, None)
    assert prices["right"] == ModelPrices(2, None, None, 8)
    assert problem.startswith("CUSTOM_MODEL_PRICING_JSON has no valid prices for wrong")
    assert "example" in problem
