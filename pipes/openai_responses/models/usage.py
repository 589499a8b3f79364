"""The tokens that a run used, and what they cost.

Costs are in US dollars: what the server says of a response, else by the prices of the
model's facts. There, the tier that the server named and the length of the input count
(docs/reference/responses-api.md, "Prices"). Without either the cost is unknown, never
estimated.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from openai_responses.items import Item, call_fee, container_fees
from openai_responses.json_input import JsonObject, as_mapping, as_text, value_at
from openai_responses.models.facts import ModelFacts, ModelPrices


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
    cost: float | None = None
    """US dollars, as the server says, with the fees for tools."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum, field by field."""
    if first is None or second is None:
        return first or second
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        total=first.total + second.total,
        cached=first.cached + second.cached,
        cache_writes=first.cache_writes + second.cache_writes,
        reasoning=first.reasoning + second.reasoning,
        cost=_add_costs(first.cost, second.cost),
    )


def _add_costs(first: float | None, second: float | None) -> float | None:
    """Return the sum, None if either is unknown."""
    return None if first is None or second is None else first + second


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Return the sum of several responses, None for none."""
    total: Usage | None = None
    for usage in usages:
        total = add_usage(total, usage)
    return total


def read_usage(wire: object, tier: object = "") -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none."""
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    outputs = as_mapping(wire.get("output_tokens_details"))
    input_tokens = _read_count(wire.get("input_tokens"))
    output_tokens = _read_count(wire.get("output_tokens"))
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total=_read_count(wire.get("total_tokens")) or input_tokens + output_tokens,
        cached=_read_count(inputs.get("cached_tokens")),
        cache_writes=_read_count(inputs.get("cache_write_tokens")),
        reasoning=_read_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
        cost=_read_cost(wire),
    )


def _read_cost(wire: JsonObject) -> float | None:
    """Return what a server says that a response costs; None if it says nothing.

    OpenRouter and LiteLLM send a number, Perplexity an object with the total. OpenRouter
    adds what the provider bills directly, if the account has a key of its own there.
    """
    cost = read_dollars(wire.get("cost"))
    if cost is None:
        return read_dollars(value_at(wire, "cost", "total_cost"))
    if wire.get("is_byok") is True:
        upstream = value_at(wire, "cost_details", "upstream_inference_cost")
        cost += read_dollars(upstream) or 0.0
    return cost


_MAX_STATED_COST = 10**6
"""More is no cost of a response."""


def read_dollars(value: object) -> float | None:
    """Return an amount of money; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_STATED_COST else None


_MAX_TOKENS = 10**12
"""A count above that is none."""


def _read_count(value: Any) -> int:
    """Return a count of tokens; gateways write `3.0` and `"3"` as well."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if 0 < number < _MAX_TOKENS and number.is_integer() else 0


def window_share(last: Usage | None, facts: ModelFacts) -> int:
    """Return how much of a model's context window a chat fills, in percent.

    `last` is that of the chat's last response: its input and output are the beginning
    of the next one. 0 if either is unknown.
    """
    if last is None or not facts.context_window:
        return 0
    return min(100, 100 * last.total // facts.context_window)


_MILLION = 1_000_000


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    host: str = "",
) -> float | None:
    """Return the cost of a run: its responses, searches and containers of code.

    None if it is unknown. What a server says of all responses has the fees in it.
    """
    stated: list[float] = []
    counted = 0.0
    rows = list(usages)
    for usage in rows:
        if usage.cost is not None:
            stated.append(usage.cost)
            continue
        tokens = _cost_of_tokens(usage, facts, today)
        if tokens is None:
            return None
        counted += tokens
    if rows and len(stated) == len(rows):
        return sum(stated)
    if facts.regional and host.endswith(_REGIONAL_HOST_SUFFIX):
        counted *= _REGIONAL_FACTOR
    items = list(output)
    fees = sum(call_fee(item) for item in items) + container_fees(items)
    return sum(stated) + counted + fees


_REGIONAL_HOST_SUFFIX = ".api.openai.com"
_REGIONAL_FACTOR = 1.1
"""OpenAI's guide "Data residency": 10 % more at the hosts of a region."""


def format_money(dollars: float) -> str:
    """Return an amount with its first two digits, even if it is tiny."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    rounded = Decimal(f"{dollars:.2g}")
    return f"${rounded:f}"


_LONG_INPUT = 272_000
_LONG_INPUT_FACTOR = 2
_LONG_OUTPUT_FACTOR = 1.5
"""Above that, from gpt-5.4 on, the whole request costs more, also what was cached
(OpenAI's pages of the models; LiteLLM 1.109.1)."""


def _cost_of_tokens(usage: Usage, facts: ModelFacts, today: date) -> float | None:
    """Return what a response costs; None if a price or the tier is unknown.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices = facts.prices
    if prices is None or prices.input is None or prices.output is None:
        return None
    factor = _tier_factor(usage.tier, prices, today)
    if not factor:
        return None
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    # A token is billed as input, as read or as written, never twice (guide "Prompt
    # caching"). The counts of a server may not add up.
    uncached_tokens = max(0, usage.input - usage.cached - usage.cache_writes)
    input_cost = uncached_tokens * prices.input
    input_cost += usage.cached * cached
    input_cost += usage.cache_writes * written
    output_cost = usage.output * prices.output
    if facts.long_prices and usage.input > _LONG_INPUT:
        input_cost *= _LONG_INPUT_FACTOR
        output_cost *= _LONG_OUTPUT_FACTOR
    return factor * (input_cost + output_cost) / _MILLION


_TIER_FACTORS = {"": 1, "auto": 1, "default": 1, "flex": 0.5}
"""Factors that all models have in common; the empty tier is that of a sum, or of a
server that names none."""


def _tier_factor(tier: str, prices: ModelPrices, today: date) -> float | None:
    """Return how often the standard price is paid; None if nobody says it."""
    # `priority` was renamed `fast` on 2026-07-30; either may come back.
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        last_day = prices.ultrafast_until
        if last_day and today.isoformat() > last_day:
            return prices.ultrafast_later
        return prices.ultrafast
    return _TIER_FACTORS.get(tier)
