"""Tokens are read from any server and added up; a run costs what its tokens and tools cost."""

from datetime import date
from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.models.facts import ModelFacts, ModelPrices
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import (
    Cost,
    ImageTokens,
    RequestTerms,
    Usage,
    add_usage,
    cost_of_run,
    describe_cost,
    read_usage,
    window_share,
)
from upstream import wire


def test_usage_of_the_api() -> None:
    assert read_usage(wire.USAGE) == Usage(30, 12, 42, 20, 4, 5)
    assert read_usage(wire.USAGE, "flex") == Usage(30, 12, 42, 20, 4, 5, "flex")
    assert read_usage(wire.USAGE, {"tier": 1}) == read_usage(wire.USAGE, None)


MOST = 10**9 - 1
ALL_CACHED = Usage(5, 0, 5, 5)
WRITTEN, READ = "cache_creation_input_tokens", "cache_read_input_tokens"


def counts(
    input: object, output: object = None, details: object = None, **more: object
) -> dict[str, object]:
    """What a server counted; the details are those of the input."""
    own = {"output_tokens": output, "input_tokens_details": details}
    given = {name: value for name, value in own.items() if value is not None}
    return {"input_tokens": input, **given, **more}


@pytest.mark.parametrize(
    ("given_usage", "expected"),
    [
        (None, None),
        ("x", None),
        ({}, Usage()),
        ({"input_tokens": 3, "total_tokens": 9}, Usage(3, 0, 9)),
        (counts("x", -4, total_tokens=None), Usage()),
        (counts("3", 4.0), Usage(3, 4, 7)),
        (counts(3, "nan", total_tokens=1e9), Usage(3, 0, 3)),
        (counts(10.0**9 - 1, [4]), Usage(MOST, 0, MOST)),
        (counts(float("inf"), "1" * 9_000), Usage()),
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
        # As Open WebUI stores it: the sums, and next to them the last response.
        (counts(30, 6, prompt_tokens=3, completion_tokens=4), Usage(30, 6, 36)),
        (counts(10**4_000, 4), Usage(0, 4, 4)),
        # A sum which has only what was not cached, as at Anthropic.
        (counts(3, 4, {"cached_tokens": 50}, total_tokens=7), Usage(53, 4, 57, 50)),
        (counts(5, details={"cached_tokens": 5}), ALL_CACHED),
        # Gateways keep the names of the servers behind them.
        (counts(5, prompt_cache_hit_tokens=5), ALL_CACHED),
        (counts(5, cached_tokens=5), ALL_CACHED),
        (counts(5, cache_read_tokens=5), ALL_CACHED),
        (counts(5, None, {"cached_tokens": 0}, cache_read_input_tokens=5), ALL_CACHED),
        (counts(5, None, {"cached_tokens": 5}, cached_tokens=4), ALL_CACHED),
        # Anthropic counts apart what it writes, too.
        (
            counts(337, 342, **{WRITTEN: 46_209, READ: 0}),
            Usage(46_546, 342, 46_888, 0, 46_209),
        ),
        (counts(9, total_tokens=9, **{WRITTEN: 7, READ: 5}), Usage(21, 0, 21, 5, 7)),
        (counts(9, details={"cache_creation_tokens": 7}), Usage(9, 0, 9, 0, 7)),
        # Perplexity has these names among the details.
        (counts(9, details={WRITTEN: 3, READ: 5}), Usage(9, 0, 9, 5, 3)),
    ],
)
def test_usage_of_other_servers(given_usage: object, expected: Usage | None) -> None:
    assert read_usage(given_usage) == expected


def test_each_count_of_a_sum_is_added_to_its_own() -> None:
    first = Usage(1, 2, 3, 4, 5, 6)
    second = Usage(10, 20, 30, 40, 50, 60)
    expected = Usage(11, 22, 33, 44, 55, 66)

    assert add_usage(first, second) == add_usage(second, first) == expected
    assert add_usage(first, None) == add_usage(None, first) == first
    assert add_usage(None, None) is None
    # A part is not the whole.
    known = Usage(1, cost=0.5)
    assert add_usage(known, known) == Usage(2, cost=1.0)
    free = Usage(1, cost=0.0)
    assert add_usage(known, free) == add_usage(free, known) == Usage(2, cost=0.5)
    assert add_usage(known, Usage(1)) == add_usage(Usage(1), known) == Usage(2)


UPSTREAM = {"upstream_inference_cost": 0.5}


@pytest.mark.parametrize(
    ("wire_usage", "cost"),
    [
        ({"cost": 0.00125}, 0.00125),
        ({"cost": {"total_cost": 0.5, "currency": "USD"}}, 0.5),
        ({"cost": 0.25, "is_byok": True, "cost_details": UPSTREAM}, 0.75),
        ({"cost": 0.01, "is_byok": False, "cost_details": UPSTREAM}, 0.01),
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


PRICED = ModelFacts(prices=ModelPrices(2.0, None, None, 8.0), regional=True)
MILLION = Usage(input=1_000_000, total=1_000_000)
STATED = MILLION._replace(cost=0.5)
SEARCH: Item = {"type": "web_search_call", "action": {"type": "search"}}


@pytest.mark.parametrize(
    ("usages", "facts", "cost"),
    [
        ([STATED], PRICED, 0.5),
        ([STATED._replace(cost=0.0)], PRICED, 0.0),
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


USAGE = Usage(1000, 200, 1200, cached=600, cache_writes=100, cache_writes_12h=50)
TODAY = date(2026, 11, 22)
FACTS = resolve_model("gpt-6.1-sol").facts


def cost(
    *usages: Usage, model: str = "gpt-6.1-sol", today: date = TODAY, host: str = ""
) -> float | None:
    """Return the cost of responses of a model of the catalog."""
    facts = resolve_model(model).facts
    found = cost_of_run(usages, facts, [], today, RequestTerms(host))
    return found.dollars if found else None


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        (
            ModelPrices(2.0, 0.5, 4.0, 10.0),
            300 * 2.0 + 600 * 0.5 + 150 * 4.0 + 200 * 10.0,
        ),
        # Missing ones are those of the input.
        (ModelPrices(2.0, None, None, 10.0), 1000 * 2.0 + 200 * 10.0),
        (ModelPrices(2.0, 0.0, 0.0, 10.0), 300 * 2.0 + 200 * 10.0),
        (ModelPrices(0.0, None, None, 10.0), 200 * 10.0),
        (ModelPrices(2.0, None, None, 0.0), 1000 * 2.0),
        # A sum without one of its parts would look like an answer.
        (ModelPrices(None, 0.5, None, 10.0), None),
        (ModelPrices(2.0, None, None, None), None),
        (None, None),
    ],
)
def test_each_kind_of_token_has_its_price(
    prices: ModelPrices | None, expected: float | None
) -> None:
    """Cached and written tokens are part of the input, not on top of it."""
    found = cost_of_run(
        [USAGE], FACTS._replace(prices=prices), [], TODAY, RequestTerms()
    )
    dollars = found and found.dollars
    assert dollars == (expected and pytest.approx(expected / 1_000_000))


ROUND = Usage(input=200_000, output=100_000)
"""On gpt-6.1-sol 0.40 for the input and 1.00 for the output."""


EU = "eu.api.openai.com"
FEBRUARY, MARCH = date(2027, 2, 28), date(2027, 3, 1)


@pytest.mark.parametrize(
    ("model", "tier", "host", "today", "expected"),
    [
        ("gpt-6.1-sol", "", "", TODAY, 1.4),
        ("gpt-6.1-sol", "flex", "", TODAY, 0.7),
        ("gpt-6.1-sol", "fast", "", TODAY, 2.8),
        ("gpt-6.1-sol", "ultrafast", "", TODAY, 8.4),
        ("gpt-6.1-sol", "scale", "", TODAY, None),
        ("gpt-5.4-nano", "fast", "", TODAY, None),
        # It costs half there until the end of February 2027.
        ("gpt-6.2-sol", "ultrafast", "", TODAY, 4.2),
        ("gpt-6.2-sol", "ultrafast", "", FEBRUARY, 4.2),
        ("gpt-6.2-sol", "ultrafast", "", MARCH, 8.4),
        # In a region, models since March 2026 cost a tenth more.
        ("gpt-6.1-sol", "", EU, TODAY, 1.54),
        ("gpt-6.1-sol", "", "api.openai.com", TODAY, 1.4),
        ("gpt-6.1-sol", "", f"{EU}.example.org", TODAY, 1.4),
        ("gpt-5.2", "", EU, TODAY, 1.75),
    ],
)
def test_tier_day_and_region_have_their_prices(
    model: str, tier: str, host: str, today: date, expected: float | None
) -> None:
    """By the tier that served the response."""
    dollars = cost(ROUND._replace(tier=tier), model=model, today=today, host=host)
    assert dollars == (None if expected is None else pytest.approx(expected))


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
    assert cost(ROUND, ROUND) == pytest.approx(2.8)
    # Each has its own tier; one that is unknown makes the sum unknown.
    fast = ROUND._replace(tier="fast")
    assert cost(fast, ROUND) == pytest.approx(4.2)
    assert cost(fast, ROUND, ROUND._replace(tier="scale")) is None
    assert cost(Usage(input=272_000)) == pytest.approx(0.272 * 2)
    long_and_fast = Usage(input=300_000, tier="fast")
    assert cost(long_and_fast) == pytest.approx(0.3 * 2 * 2 * 2)


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


OPENED: Item = {"type": "web_search_call", "action": {"type": "open_page"}}
FOUND: Item = {"type": "web_search_call", "action": {"type": "find_in_page"}}
TOKENS = {"input_tokens": 3, "output_tokens": 4}
IMAGE_USAGE = {
    "input_tokens": 1_500,
    "input_tokens_details": {"image_tokens": 1_000, "text_tokens": 500},
    "output_tokens": 4_160,
    "total_tokens": 5_660,
}


def about(dollars: float, abs: float = 1e-9) -> Any:
    return pytest.approx(dollars, abs=abs)


def picture(quality: str = "high", size: str = "1024x1024") -> Item:
    """A generated picture, in the form of the recordings 957, 1119 and 1136."""
    return {
        "type": "image_generation_call",
        "status": "completed",
        "quality": quality,
        "size": size,
        "result": "iVBORw0KGgo=",
    }


def billed(
    *output: Item, usages: list[Usage] | None = None, tools: list[Item] | None = None
) -> Cost:
    """Return what is billed for the output of a run whose tokens are free."""
    terms = RequestTerms(tools=[{"type": "mcp"}, *(tools or ())])
    found = cost_of_run(usages or [Usage()], FACTS, output, TODAY, terms)
    assert found is not None
    return found


def test_the_server_tells_what_its_tools_used() -> None:
    """In `tool_usage`, which a server can omit; a sum of responses has none."""
    wire = {"image_gen": IMAGE_USAGE, "web_search": {"num_requests": 2}}

    told = read_usage(TOKENS, "", wire)

    images = ImageTokens(text=500, image=1_000, output=4_160)
    assert told == Usage(3, 4, 7, searches=2, images=images)
    assert read_usage(TOKENS) == Usage(3, 4, 7)
    assert read_usage(TOKENS, "", {"web_search": None}) == Usage(3, 4, 7)
    for odd in ("x", -1, 2.5, True):
        searches = {"web_search": {"num_requests": odd}}
        assert read_usage(TOKENS, "", searches) == Usage(3, 4, 7), odd
    assert add_usage(told, Usage(3, 4, 7)) == Usage(6, 8, 14)
    names = ["text_tokens", "image_tokens", "cached_text_tokens", "cached_image_tokens"]
    counts = dict.fromkeys(names, "x")
    drawn = {"input_tokens_details": counts, "cached_tokens_details": counts}
    drew = {"image_gen": {**drawn, "output_tokens": "x"}}
    assert read_usage(TOKENS, "", drew) == Usage(3, 4, 7, images=ImageTokens())


def test_cached_tokens_of_pictures_are_part_of_their_input() -> None:
    details = {"cached_image_tokens": 400, "cached_text_tokens": 100}
    wire = {"image_gen": {**IMAGE_USAGE, "cached_tokens_details": details}}
    told = read_usage(TOKENS, "", wire)
    assert told is not None
    assert told.images == ImageTokens(500, 1_000, 100, 400, 4_160)


def test_only_searches_are_billed() -> None:
    """Opening a page and searching in it are not (openai 3.57.0, `ToolUsage`)."""
    assert billed(SEARCH, OPENED, FOUND, SEARCH) == Cost(about(0.02), False)
    assert billed({"type": "web_search_call"}).dollars == pytest.approx(0.01)
    in_files: Item = {"type": "file_search_call", "queries": ["a", "b"]}
    assert billed(in_files, SEARCH, usages=[Usage(searches=1)]) == Cost(about(0.0125))
    # Older models pay more for one.
    older = resolve_model("gpt-4.1").facts
    assert cost_of_run([Usage()], older, [SEARCH], TODAY, RequestTerms()) == Cost(
        about(0.025), False
    )


def test_the_servers_count_of_searches_wins() -> None:
    """Some of them are discounted; a response that tells nothing counts its items."""
    told = Usage(searches=1)
    assert billed(SEARCH, SEARCH, usages=[told]).dollars == pytest.approx(0.01)
    assert billed(SEARCH, usages=[Usage(searches=0)]).dollars == 0
    assert billed(SEARCH, SEARCH, usages=[told, Usage()]).dollars == pytest.approx(0.02)


def test_pictures_cost_the_tokens_that_the_server_tells() -> None:
    """By the prices of the model that draws, which is no estimate."""
    images = ImageTokens(500, 1_000, 100, 400, 4_160)
    expected = (400 * 5 + 100 * 1.25 + 600 * 8 + 400 * 2 + 4_160 * 30) / 1e6

    for items in ([picture()], []):  # a server may leave the picture out
        for usages in ([Usage(images=images)], [Usage(images=images)] * 2):
            told = billed(*items, usages=usages)
            assert told == Cost(about(expected * len(usages)), False)


@pytest.mark.parametrize(
    ("quality", "size", "dollars"),
    [
        ("low", "1024x1024", 0.009),
        ("medium", "1024x1536", 0.05),
        ("high", "1536x1024", 0.2),
    ],
)
def test_a_picture_without_told_tokens_is_estimated(
    quality: str, size: str, dollars: float
) -> None:
    """By size and quality: the list prices of gpt-image-1.5, to a tenth of a cent."""
    tools: list[Item] = [{"type": "image_generation", "model": "gpt-image-1.5"}]
    estimate = billed(picture(quality, size), tools=tools)
    assert estimate == Cost(about(dollars, abs=0.0011), True)


@pytest.mark.parametrize("images", [None, ImageTokens()])
def test_a_picture_is_never_free(images: ImageTokens | None) -> None:
    """A server may skip calls in its sum (openai 3.57.0), and tell zero for a picture.

    What is not known of a picture is taken for the most: limits in money rest on it.
    """
    usages = [Usage(images=images)]
    most = billed(picture("high"), usages=usages)
    assert most == Cost(about(4_160 * 30 / 1e6), True)
    assert billed(picture("auto", "auto"), usages=usages) == most
    failed: Item = {"type": "image_generation_call", "status": "failed"}
    assert billed(failed, usages=usages) == Cost(0)  # nothing was drawn
    bare: Item = {"type": "image_generation_call", "result": "iVBORw0KGgo="}
    assert billed(bare, usages=usages) == most
    huge = picture("high", "999999999x999999999")
    assert billed(huge, usages=usages).dollars == pytest.approx(16 * most.dollars, 0.05)
    tools: list[Item] = [{"type": "image_generation", "model": "my-deployment"}]
    assert billed(picture("high"), usages=usages, tools=tools) == most


@pytest.mark.parametrize(
    ("memory", "dollars"),
    [(None, 0.03), ("1g", 0.03), ("4g", 0.12), ("16g", 0.48), ("64g", 1.92)],
)
def test_a_larger_container_costs_more(memory: str | None, dollars: float) -> None:
    """By its memory, 0.03 for each GB."""
    code: Item = {"type": "code_interpreter_call", "container_id": "a"}
    container = {"type": "auto", "memory_limit": memory}
    tools: list[Item] = [{"type": "code_interpreter", "container": container}]
    other = {**code, "container_id": "b"}
    assert billed(code, code, tools=tools).dollars == pytest.approx(dollars)
    assert billed(code, other, tools=tools).dollars == pytest.approx(2 * dollars)


def test_what_is_kept_in_the_cache_for_long_costs_twice() -> None:
    """12 hours instead of 30 minutes; both are part of the input."""
    details = {"ttl_12h_tokens": 400, "ttl_30m_tokens": 200}
    inputs = {"cache_write_tokens": 600, "cache_write_tokens_details": details}
    usage = read_usage({"input_tokens": 1000, "input_tokens_details": inputs})
    assert usage == Usage(1000, 0, 1000, cache_writes=600, cache_writes_12h=400)
    assert billed(usages=[usage]).dollars == pytest.approx(
        (400 * 2 + 200 * 2.5 + 400 * 5) / 1e6
    )
    both = add_usage(usage, usage)
    assert both is not None
    assert both.cache_writes_12h == 800


@pytest.mark.parametrize(
    ("window", "tier", "factor"),
    [
        ("", "default", 1),
        ("2h", "default", 0.7),
        ("8h", "default", 0.6),
        ("8h", "flex", 0.5),
        ("8h", "fast", 2),
    ],
)
def test_who_can_wait_pays_less(window: str, tier: str, factor: float) -> None:
    """For tokens of the standard tier; a search costs the same."""
    terms = RequestTerms(completion_window=window)
    usage = Usage(input=1_000_000 // 4, tier=tier)
    found = cost_of_run([usage], FACTS, [SEARCH], TODAY, terms)
    assert found == Cost(about(0.5 * factor + 0.01), False)
