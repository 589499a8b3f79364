"""The tokens that a run used, and what they cost.

Costs are in US dollars, response by response: what the server says of a response, else
by the prices of the model's facts. There, the tier that the server named and the length
of the input count (docs/reference/responses-api.md, "Prices"). Without either the cost
is unknown. Only a picture whose tokens the server does not tell is estimated, because a
limit in money must not take it for nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple

from openai_responses.items import (
    Item,
    container_ids,
    is_billed_search,
    is_image_call,
    maker_of,
)
from openai_responses.json_input import JsonObject, as_mapping, as_text, value_at
from openai_responses.models.catalog import CATALOG_IMAGE_PRICES
from openai_responses.models.facts import ModelFacts, ModelPrices
from openai_responses.tool_kinds import TOOL_KINDS


class ImageTokens(NamedTuple):
    """What the pictures of a response took; what was cached is part of the input."""

    text: int = 0
    image: int = 0
    cached_text: int = 0
    cached_image: int = 0
    output: int = 0


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
    """The service tier; a sum has none, nor the two that follow."""
    searches: int | None = None
    """Web searches that are billed; None if the server does not tell."""
    images: ImageTokens | None = None
    """What drawing took; None if the server does not tell."""
    cache_writes_12h: int = 0
    """Those of `cache_writes` that are kept for 12 hours, not for 30 minutes."""
    cost: float | None = None
    """US dollars, as the server says, with the fees for tools."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum of the counts and the costs; it has no tier, searches or images."""
    if first is None or second is None:
        return first or second
    cost = None
    if first.cost is not None and second.cost is not None:
        cost = first.cost + second.cost
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        total=first.total + second.total,
        cached=first.cached + second.cached,
        cache_writes=first.cache_writes + second.cache_writes,
        reasoning=first.reasoning + second.reasoning,
        cache_writes_12h=first.cache_writes_12h + second.cache_writes_12h,
        cost=cost,  # unknown if either is
    )


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Return the sum of several responses, None for none."""
    return reduce(add_usage, usages, None)


def read_usage(
    wire: object, tier: object = "", tool_usage: object = None
) -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none.

    `tool_usage` is what OpenAI's tools used in addition.
    """
    if not isinstance(wire, Mapping):
        return None

    def either(api_name: str, name: str) -> object:
        """Return a field by its name in Chat Completions, if the API's is not there.

        Gateways to its servers keep these, as does SGLang without a stream; a host adds
        some of the API's.
        """
        return wire.get(api_name) or wire.get(name)

    inputs = as_mapping(either("input_tokens_details", "prompt_tokens_details"))
    outputs = as_mapping(either("output_tokens_details", "completion_tokens_details"))
    writes = as_mapping(inputs.get("cache_write_tokens_details"))
    input_tokens = _read_count(either("input_tokens", "prompt_tokens"))
    output_tokens = _read_count(either("output_tokens", "completion_tokens"))
    total = _read_count(wire.get("total_tokens"))

    def first_of(names: Iterable[str]) -> int:
        """Return the first count of these names, in the details or next to them."""
        told = [fields.get(name) for fields in (inputs, wire) for name in names]
        return next(filter(None, map(_read_count, told)), 0)

    cached = first_of(_CACHED)
    written = first_of(_WRITTEN)
    if cached + written > input_tokens:
        # Anthropic counts apart what it reads from its cache and what it writes to it,
        # and gateways pass that on.
        input_tokens += cached + written
        total = max(total, input_tokens + output_tokens)
    searches = value_at(tool_usage, "web_search", "num_requests")
    is_count = type(searches) is int and 0 <= searches < _MAX_TOKENS
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total=total or input_tokens + output_tokens,
        cached=cached,
        cache_writes=written,
        reasoning=_read_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
        cost=_read_cost(wire),
        searches=searches if is_count else None,  # not told
        images=_read_image_tokens(value_at(tool_usage, "image_gen")),
        cache_writes_12h=_read_count(writes.get("ttl_12h_tokens")),
    )


_CACHED = (
    "cached_tokens",  # Kimi has it next to the other counts (earendil-works/pi 8119)
    "prompt_cache_hit_tokens",  # DeepSeek
    "cache_read_input_tokens",  # Anthropic, Perplexity
    "cache_read_tokens",  # caigee-cmd/cli2api 221
)
"""What was read from the cache."""
_WRITTEN = (
    "cache_write_tokens",
    "cache_creation_input_tokens",  # Anthropic, Perplexity
    "cache_creation_tokens",  # LiteLLM
)
"""What was written to it."""


def _read_image_tokens(wire: object) -> ImageTokens | None:
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    cached = as_mapping(wire.get("cached_tokens_details"))
    return ImageTokens(
        text=_read_count(inputs.get("text_tokens")),
        image=_read_count(inputs.get("image_tokens")),
        cached_text=_read_count(cached.get("cached_text_tokens")),
        cached_image=_read_count(cached.get("cached_image_tokens")),
        output=_read_count(wire.get("output_tokens")),
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


_MAX_TOKENS = 10**9
"""A count above that is none: no response has it, and sums have to fit a column."""


def _read_count(value: Any) -> int:
    """Return a count of tokens; gateways write `3.0` and `"3"` as well."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if 0 < number < _MAX_TOKENS and number.is_integer() else 0


def window_share(last: Usage | None, facts: ModelFacts) -> int:
    """Return how much of what a model takes as input a chat fills, in percent.

    `last` is that of the chat's last response: its input and output are the beginning
    of the next one. The window is for input and output together, so most models refuse
    a question long before it is full. 0 if either is unknown.
    """
    limits = (facts.max_input_tokens, facts.context_window)
    most = min((limit for limit in limits if limit), default=0)
    if last is None or not most:
        return 0
    return min(100, 100 * last.total // most)


_MILLION = 1_000_000


class Cost(NamedTuple):
    """What something costs in US dollars."""

    dollars: float
    is_estimate: bool = False


class RequestTerms(NamedTuple):
    """What in a request, in addition to the model, decides what it costs."""

    host: str = ""
    tools: Sequence[Item] = ()
    completion_window: str = ""
    """How long the answer of a background model may take."""


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    terms: RequestTerms,
) -> Cost | None:
    """Return the cost of a run: its responses, searches, pictures and containers.

    None if it is unknown. What a server says of all responses has the fees in it.
    """
    usages = list(usages)
    items = list(output)
    stated: list[float] = []
    dollars = 0.0
    for usage in usages:
        if usage.cost is not None:
            stated.append(usage.cost)
            continue
        tokens = _cost_of_tokens(usage, facts, today, terms.completion_window)
        if tokens is None:
            return None
        dollars += tokens
    if usages and len(stated) == len(usages):
        return Cost(sum(stated))
    if facts.regional and terms.host.endswith(_REGIONAL_HOST_SUFFIX):
        dollars *= _REGIONAL_FACTOR
    dollars += sum(stated)  # what a server says has its own prices in it
    fee = facts.search_fee or TOOL_KINDS["web_search"].fee
    dollars += fee * count_searches(usages, items)
    makers = map(maker_of, items)
    dollars += sum(maker.fee for maker in makers if maker.type != "web_search")
    code = _tool_options(terms.tools, "code_interpreter")
    memory = as_text(value_at(code, "container", "memory_limit"))
    fee = TOOL_KINDS["code_interpreter"].container_fee * _GIGABYTES.get(memory, 1)
    dollars += fee * len(container_ids(items))
    pictures = _cost_of_pictures(usages, items, terms.tools)
    return Cost(dollars + pictures.dollars, pictures.is_estimate)


def _tool_options(tools: Iterable[Item], kind: str) -> JsonObject:
    """Return the first tool of a type; an empty one if there is none."""
    return next((tool for tool in tools if tool.get("type") == kind), {})


_GIGABYTES = {"1g": 1, "4g": 4, "16g": 16, "64g": 64}
"""By the memory of a container of code, which its price follows."""


def count_searches(usages: Sequence[Usage], items: Sequence[Item]) -> int:
    """Return the searches that are billed.

    OpenAI counts some of them at a discount, so its own count is right; if a response
    has none, the searches of the output count.
    """
    told = [usage.searches for usage in usages if usage.searches is not None]
    if told and len(told) == len(usages):
        return sum(told)
    return sum(is_billed_search(item) for item in items)


_DRAWS_BY_DEFAULT = "gpt-image-2.6-sunburst"
"""The tool's default (openai-python 3.57.0)."""


def _cost_of_pictures(
    usages: Sequence[Usage], items: Sequence[Item], tools: Iterable[Item]
) -> Cost:
    """Return what the pictures of a run cost.

    By the tokens that the server tells; it may skip calls (openai-python 3.57.0,
    `ToolUsage`), and if it tells none, by the size and quality of each picture.
    """
    told = [usage.images for usage in usages if usage.images and usage.images.output]
    drawn = [item for item in items if is_image_call(item)]
    drawn = [item for item in drawn if item.get("status") != "failed"]
    if not told and not drawn:
        return Cost(0.0)
    model = as_text(_tool_options(tools, "image_generation").get("model"))
    # The longest name counts that fits, also with a date after it. The prices of a
    # deployment with another name are unknown: the usual ones are assumed.
    prices = CATALOG_IMAGE_PRICES[_DRAWS_BY_DEFAULT]
    for name in sorted(CATALOG_IMAGE_PRICES, key=len):
        if model.startswith(name):
            prices = CATALOG_IMAGE_PRICES[name]
    costs: list[float] = []
    for tokens in told:
        cost = max(0, tokens.text - tokens.cached_text) * prices.text
        cost += tokens.cached_text * prices.cached_text
        cost += max(0, tokens.image - tokens.cached_image) * prices.image
        cost += tokens.cached_image * prices.cached_image
        cost += tokens.output * prices.output
        costs.append(cost / _MILLION)
    if told:
        return Cost(sum(costs))
    drawn_tokens = sum(map(_picture_tokens, drawn))
    return Cost(drawn_tokens * prices.output / _MILLION, is_estimate=True)


_SQUARE = 1024 * 1024
_MOST_SQUARES = 16
_TOKENS_OF_SQUARE = {"low": 272, "medium": 1056, "high": 4160}
"""Tokens of a picture of 1024 x 1024, by its quality (OpenAI's guide "Image generation").

LiteLLM's prices for each picture of gpt-image-1.5 are these tokens at 32 dollars for a
million, for the other sizes by their area.
"""


def _picture_tokens(item: Item) -> float:
    """Return about how many tokens a picture took; an unknown quality is the highest."""
    tokens = _TOKENS_OF_SQUARE.get(
        as_text(item.get("quality")), _TOKENS_OF_SQUARE["high"]
    )
    size = re.fullmatch(r"(\d{1,9})x(\d{1,9})", as_text(item.get("size")))
    squares = int(size[1]) * int(size[2]) / _SQUARE if size else 1
    return tokens * min(squares, _MOST_SQUARES)


_REGIONAL_HOST_SUFFIX = ".api.openai.com"
_REGIONAL_FACTOR = 1.1
"""OpenAI's guide "Data residency": 10 % more at the hosts of a region."""


def describe_cost(cost: Cost) -> str:
    """Return what something costs, as users read it."""
    amount = format_money(cost.dollars)
    return f"about {amount}" if cost.is_estimate else amount


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


LONG_TTL_FACTOR = 2
"""Writing to the cache for 12 hours costs twice as much as for 30 minutes, with each
model of which LiteLLM 1.110.2 has both prices."""


def _cost_of_tokens(
    usage: Usage, facts: ModelFacts, today: date, completion_window: str
) -> float | None:
    """Return what a response costs; None if a price or the tier is unknown.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices = facts.prices
    if prices is None or prices.input is None or prices.output is None:
        return None
    factor = _tier_factor(usage.tier, prices, today, completion_window)
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
    if prices.cache_write is not None:
        kept_long = min(usage.cache_writes_12h, usage.cache_writes)
        input_cost += kept_long * written * (LONG_TTL_FACTOR - 1)
    output_cost = usage.output * prices.output
    if facts.long_prices and usage.input > _LONG_INPUT:
        input_cost *= _LONG_INPUT_FACTOR
        output_cost *= _LONG_OUTPUT_FACTOR
    return factor * (input_cost + output_cost) / _MILLION


_STANDARD_TIERS = ("", "auto", "default")
"""The empty tier is that of a sum, or of a server that names none."""
_WINDOW_FACTORS = {"2h": 0.7, "8h": 0.6}
"""By the time that a background answer may take, at the standard tier: "30% below
Standard token pricing", "40% below" (OpenAI's guide "Flex processing", 2026-11)."""


def _tier_factor(
    tier: str, prices: ModelPrices, today: date, completion_window: str
) -> float | None:
    """Return how often the standard price is paid; None if it is unknown."""
    if tier in _STANDARD_TIERS:
        return _WINDOW_FACTORS.get(completion_window, 1)
    # `priority` was renamed `fast` on 2026-07-30; either may come back.
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        last_day = prices.ultrafast_until
        if last_day and today.isoformat() > last_day:
            return prices.ultrafast_later
        return prices.ultrafast
    return 0.5 if tier == "flex" else None
