"""The tokens that a run used, and what they cost.

Costs are in US dollars for the standard tier, by the prices of the catalog or of the
administrator. Without a price the cost is unknown, never estimated.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from openai_responses.errors import valve_error
from openai_responses.items import Item, item_type, kind_of
from openai_responses.json_input import JsonObject, as_mapping, parse_json_object
from openai_responses.models.resolve import ModelPrices


class Usage(NamedTuple):
    """Counts of one response, or of several added together.

    `cached` is part of `input`, `reasoning` of `output`
    (docs/reference/responses-api.md, "Usage").
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum, field by field."""
    if one is None or other is None:
        return one or other
    pairs = zip(one, other, strict=True)
    return Usage(*(a + b for a, b in pairs))


def read_usage(wire: object) -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none."""
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    outputs = as_mapping(wire.get("output_tokens_details"))
    given, made = _count(wire.get("input_tokens")), _count(wire.get("output_tokens"))
    return Usage(
        input=given,
        output=made,
        total=_count(wire.get("total_tokens")) or given + made,
        cached=_count(inputs.get("cached_tokens")),
        cache_writes=_count(inputs.get("cache_write_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 10**12 else 0


_MILLION = 1_000_000

_PRICE_NAMES = ModelPrices._fields
_NOT_PRICES = "CUSTOM_MODEL_PRICING_JSON is not a JSON object of prices"
_SOME_PRICES = '{"my-model": {"input": 2, "output": 8}}'


def cost_of_run(
    usage: Usage, prices: ModelPrices | None, output: Iterable[Item]
) -> float | None:
    """Return the cost of the tokens and hosted tools of a run; None if unknown."""
    tokens = _cost_of_tokens(usage, prices) if prices else None
    return None if tokens is None else tokens + _cost_of_tools(output)


def read_prices(text: str) -> dict[str, ModelPrices]:
    """Return prices by model id from a JSON object; raises InvalidRequest."""
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        raise valve_error(_NOT_PRICES, _SOME_PRICES)
    return {model: _read_row(row) for model, row in table.items()}


def _cost_of_tokens(usage: Usage, prices: ModelPrices) -> float | None:
    if prices.input is None or prices.output is None:
        return None
    # Cached tokens and tokens written to the cache are part of the input.
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    plain = max(0, usage.input - usage.cached - usage.cache_writes)
    sums = (
        plain * prices.input,
        usage.cached * cached,
        usage.cache_writes * written,
        usage.output * prices.output,
    )
    return sum(sums) / _MILLION


def _cost_of_tools(output: Iterable[Item]) -> float:
    fees = {
        (item_type(item), item.get(kind.fee_field) if kind.fee_field else place): kind
        for place, item in enumerate(output)
        if (kind := kind_of(item)).fee
    }
    counts = Counter(kind.fee for kind in fees.values())
    return sum(fee * count for fee, count in counts.items())


def _read_row(row: object) -> ModelPrices:
    prices: JsonObject = row if isinstance(row, Mapping) else {"": row}
    numbers = all(
        name in _PRICE_NAMES
        and isinstance(price, int | float)
        and 0 <= price < _MILLION
        for name, price in prices.items()
    )
    if not numbers or not {"input", "output"} <= set(prices):
        raise valve_error(_NOT_PRICES, _SOME_PRICES)
    return ModelPrices(**{name: prices.get(name) for name in _PRICE_NAMES})
