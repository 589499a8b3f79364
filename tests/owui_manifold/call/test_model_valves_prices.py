"""Prices as an administrator states them."""

import pytest

from openai_responses.errors import InvalidRequest
from openai_responses.models.facts import ModelPrices
from owui_manifold.call.model_valves import read_prices


def test_prices_are_read_from_the_valve() -> None:
    """What is not given is not known."""
    text = '{"my-model": {"input": 2, "output": 8.5, "cached": 0}}'
    assert read_prices(text) == {"my-model": ModelPrices(2, 0, None, 8.5)}
    text = '{"my-model": {"input": 2, "output": 8, "fast": 2}}'
    assert read_prices(text)["my-model"].fast == 2
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
