"""What the tools that OpenAI runs cost: searches, pictures, containers."""

from datetime import date
from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import (
    Cost,
    ImageTokens,
    RequestTerms,
    Usage,
    add_usage,
    cost_of_run,
    read_usage,
)

TODAY = date(2026, 11, 28)
FACTS = resolve_model("gpt-6.1-sol").facts
SEARCH: Item = {"type": "web_search_call", "action": {"type": "search"}}
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
    """Return an amount that equals those next to it."""
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


def cost(
    *output: Item, usages: list[Usage] | None = None, tools: list[Item] | None = None
) -> Cost:
    """Return what is billed for the output of a run whose tokens are free."""
    terms = RequestTerms(tools=tools or ())
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
    assert add_usage(told, Usage(3, 4, 7)) == Usage(6, 8, 14)


@pytest.mark.parametrize("odd", ["x", -1, 2.5, True])
def test_a_count_of_searches_that_is_none_is_not_told(odd: Any) -> None:
    """The searches of the output count then."""
    told = read_usage(TOKENS, "", {"web_search": {"num_requests": odd}})
    assert told == Usage(3, 4, 7)


def test_cached_tokens_of_pictures_are_part_of_their_input() -> None:
    """As those of the answer are."""
    details = {"cached_image_tokens": 400, "cached_text_tokens": 100}
    wire = {"image_gen": {**IMAGE_USAGE, "cached_tokens_details": details}}
    told = read_usage(TOKENS, "", wire)
    assert told is not None
    assert told.images == ImageTokens(500, 1_000, 100, 400, 4_160)


def test_only_searches_are_billed() -> None:
    """Opening a page and searching in it are not (openai 3.57.0, `ToolUsage`)."""
    assert cost(SEARCH, OPENED, FOUND, SEARCH) == Cost(about(0.02), False)
    assert cost({"type": "web_search_call"}).dollars == pytest.approx(0.01)


def test_the_servers_count_of_searches_wins() -> None:
    """Some of them are discounted; a response that tells nothing counts its items."""
    told = Usage(searches=1)
    assert cost(SEARCH, SEARCH, usages=[told]).dollars == pytest.approx(0.01)
    assert cost(SEARCH, usages=[Usage(searches=0)]).dollars == 0
    assert cost(SEARCH, SEARCH, usages=[told, Usage()]).dollars == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [("gpt-4.1", 0.025), ("gpt-4o", 0.01)],
)
def test_a_search_costs_what_it_costs_with_a_model(model: str, dollars: float) -> None:
    """Older models pay more for one."""
    facts = resolve_model(model).facts
    found = cost_of_run([Usage(searches=1)], facts, [SEARCH], TODAY)
    assert found is not None
    assert found.dollars == pytest.approx(dollars)


def test_pictures_cost_the_tokens_that_the_server_tells() -> None:
    """By the prices of the model that draws, which is no estimate."""
    images = ImageTokens(500, 1_000, 100, 400, 4_160)
    expected = (400 * 5 + 100 * 1.25 + 600 * 8 + 400 * 2 + 4_160 * 30) / 1e6

    told = cost(picture(), usages=[Usage(images=images)])

    assert told == Cost(about(expected), False)


@pytest.mark.parametrize(
    ("quality", "size", "model", "dollars"),
    [
        ("low", "1024x1024", "gpt-image-1.5", 0.009),
        ("medium", "1024x1536", "gpt-image-1.5", 0.05),
        ("high", "1536x1024", "gpt-image-1.5", 0.2),
    ],
)
def test_a_picture_without_told_tokens_is_estimated(
    quality: str, size: str, model: str, dollars: float
) -> None:
    """By size and quality: the list prices of gpt-image-1.5, to a tenth of a cent."""
    tools: list[Item] = [{"type": "image_generation", "model": model}]
    estimate = cost(picture(quality, size), tools=tools)
    assert estimate == Cost(about(dollars, abs=0.0011), True)


@pytest.mark.parametrize("images", [None, ImageTokens()])
def test_a_picture_is_never_free(images: ImageTokens | None) -> None:
    """A server may skip calls in its sum (openai 3.57.0), and tell zero for a picture.

    What is not known of a picture is taken for the most: limits in money rest on it.
    """
    usages = [Usage(images=images)]
    most = cost(picture("high"), usages=usages)
    assert most == Cost(about(4_160 * 30 / 1e6), True)
    assert cost(picture("auto", "auto"), usages=usages) == most
    bare: Item = {"type": "image_generation_call", "result": "iVBORw0KGgo="}
    assert cost(bare, usages=usages) == most
    huge = picture("high", "999999999x999999999")
    assert cost(huge, usages=usages).dollars == pytest.approx(16 * most.dollars, 0.05)
    tools: list[Item] = [{"type": "image_generation", "model": "my-deployment"}]
    assert cost(picture("high"), usages=usages, tools=tools) == most


def test_a_picture_that_failed_costs_nothing() -> None:
    """Nothing was drawn, so nothing is billed."""
    failed: Item = {"type": "image_generation_call", "status": "failed"}
    assert cost(failed) == Cost(0)


def test_a_larger_container_costs_more() -> None:
    """By its memory, 0.03 for each GB."""
    code: Item = {"type": "code_interpreter_call", "container_id": "a"}
    container = {"type": "auto", "memory_limit": "4g"}
    tools: list[Item] = [{"type": "code_interpreter", "container": container}]
    assert cost(code, tools=tools).dollars == pytest.approx(0.12)
    assert cost(code).dollars == pytest.approx(0.03)


def test_what_is_kept_in_the_cache_for_long_costs_twice() -> None:
    """12 hours instead of 30 minutes; both are part of the input."""
    details = {"ttl_12h_tokens": 400, "ttl_30m_tokens": 200}
    inputs = {"cache_write_tokens": 600, "cache_write_tokens_details": details}
    usage = read_usage({"input_tokens": 1000, "input_tokens_details": inputs})
    assert usage == Usage(1000, 0, 1000, cache_writes=600, cache_writes_12h=400)
    assert cost(usages=[usage]).dollars == pytest.approx(
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
