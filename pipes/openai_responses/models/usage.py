"""The tokens that a run used, and what they cost.

Costs are in US dollars, by the prices of the catalog or of the administrator, response
by response: the tier that the server named and the length of the input count
(docs/reference/responses-api.md, "Prices"). Without a price the cost is unknown, never
estimated.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from openai_responses.errors import valve_error
from openai_responses.items import Item, kind_of
from openai_responses.json_input import (
    as_mapping,
    as_text,
    fits_form,
    parse_json_object,
)
from openai_responses.models.resolve import ModelFacts, ModelPrices


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
    tier: str = ""
    """That served the response; a sum has none."""


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum, field by field."""
    if one is None or other is None:
        return one or other
    return Usage._make((*map(int.__add__, one[:-1], other[:-1]), ""))


def read_usage(wire: object, tier: object = "") -> Usage | None:
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
        tier=as_text(tier),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 10**12 else 0


_MILLION = 1_000_000


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _MILLION


_PRICES = dict.fromkeys(ModelPrices._fields, _is_price)


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    host: str = "",
) -> float | None:
    """Return the cost of the responses and the searches of a run; None if unknown."""
    costs = [_cost_of_tokens(one, facts, today) for one in usages]
    if None in costs:
        return None
    is_regional = facts.regional and host.endswith(".api.openai.com")
    tokens = sum(filter(None, costs)) * (1.1 if is_regional else 1)
    return tokens + sum(kind_of(item).fee for item in output)


def format_money(dollars: float) -> str:
    """Return an amount with its first two digits, even if it is tiny."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${Decimal(f'{dollars:.2g}'):f}"


def read_prices(text: str) -> dict[str, ModelPrices]:
    """Return prices by model id from a JSON object; raises InvalidRequest."""
    table = parse_json_object(text.strip() or "{}")
    wrong = [model for model, row in (table or {}).items() if not _are_prices(row)]
    if table is None or wrong:
        model = f" for {wrong[0]}" if wrong else ""
        raise valve_error(
            f"CUSTOM_MODEL_PRICING_JSON has no valid prices{model}",
            '{"my-model": {"input": 2, "output": 8}}',
        )
    return {
        model: ModelPrices(**dict.fromkeys(_PRICES) | row)
        for model, row in table.items()
    }


def _are_prices(row: Any) -> bool:
    return fits_form(row, _PRICES) and {"input", "output"} <= row.keys()


_LONG_INPUT = 272_000


def _cost_of_tokens(usage: Usage, facts: ModelFacts, today: date) -> float | None:
    """Return what a response costs.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices, is_long = facts.prices, facts.long_prices and usage.input > _LONG_INPUT
    factor = prices and _tier_factor(usage.tier, prices, today)
    if not (prices and factor) or prices.input is None or prices.output is None:
        return None
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    plain = max(0, usage.input - usage.cached - usage.cache_writes)
    read = plain * prices.input + usage.cached * cached + usage.cache_writes * written
    made = usage.output * prices.output
    return factor * (2 * read + 1.5 * made if is_long else read + made) / _MILLION


def _tier_factor(tier: str, prices: ModelPrices, today: date) -> float | None:
    """Return how often the standard price is paid; None if nobody says it."""
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        is_later = (prices.ultrafast_until or 99999999) < int(f"{today:%Y%m%d}")
        return prices.ultrafast_later if is_later else prices.ultrafast
    return {"": 1, "auto": 1, "default": 1, "flex": 0.5}.get(tier)
