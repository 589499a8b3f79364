"""What recorded answers of real servers cost and used, and what they stored.

The recordings are not part of this repository; without them these tests are skipped.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any

import pytest

from openai_responses.items import is_billed_search, is_image_call
from openai_responses.models.facts import ModelPrices
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import (
    Cost,
    ImageTokens,
    RequestTerms,
    Usage,
    cost_of_run,
    read_usage,
)
from recorded.rows import Recording, find_files, read_recordings
from recordings import RECORDINGS

pytestmark = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason="the recordings are not there"
)
TODAY = date(2026, 11, 28)


@cache
def recordings() -> list[Recording]:
    found: list[Recording] = []
    for file in find_files([RECORDINGS]):
        found += [row for row in read_recordings(file) if row.final is not None]
    return found


def final_of(recording: Recording) -> Mapping[str, Any]:
    assert recording.final is not None
    return recording.final


def items_of(recording: Recording) -> list[dict[str, Any]]:
    """Return the output; servers that are no servers of this API have odd ones."""
    output = final_of(recording).get("output") or []
    return [item for item in output if isinstance(item, dict)]


def usage_of(recording: Recording) -> Usage | None:
    final = final_of(recording)
    return read_usage(
        final.get("usage"), final.get("service_tier"), final.get("tool_usage")
    )


def cost_of(recording: Recording, prices: ModelPrices | None = None) -> Cost | None:
    final = final_of(recording)
    usage = usage_of(recording)
    if usage is None:
        return None
    facts = resolve_model(str(final.get("model")).removeprefix("openai/")).facts
    if prices:
        facts = facts._replace(prices=prices)
    terms = RequestTerms(tools=final.get("tools") or ())
    return cost_of_run([usage], facts, items_of(recording), TODAY, terms)


def test_the_server_counts_the_searches_that_we_count() -> None:
    """In each of the answers that tell; five of them have searched, once each."""
    told = Counter[int]()
    for recording in recordings():
        usage = usage_of(recording)
        if usage is not None and usage.searches is not None:
            assert usage.searches == sum(map(is_billed_search, items_of(recording)))
            told[usage.searches] += 1
    assert told == {0: 455, 1: 5}


def test_looking_at_pages_is_not_billed() -> None:
    """Of what the recordings call a search, a third only opened a page or read it."""
    actions = Counter[bool]()
    for recording in recordings():
        for item in items_of(recording):
            if item.get("type") == "web_search_call":
                actions[is_billed_search(item)] += 1
    assert actions[False] >= 10
    assert actions[True] >= 20


def test_no_recorded_picture_is_free() -> None:
    """No answer with a picture tells its tokens, so each is estimated.

    Where an answer tells `image_gen`, all of its counts are zero: nothing was drawn.
    """
    told = 0
    drawn: list[float] = []
    for recording in recordings():
        usage = usage_of(recording)
        if usage is not None and usage.images is not None:
            told += 1
            assert usage.images == ImageTokens()
        if any(map(is_image_call, items_of(recording))):
            cost = cost_of(recording)
            if cost is None:  # another vendor's model
                continue
            assert cost.is_estimate
            drawn.append(cost.dollars)
    assert told == 460
    assert len(drawn) == 7
    assert min(drawn) > 0.008


@pytest.mark.parametrize("number", [426, 427, 430, 431])
def test_a_cost_that_a_gateway_tells_is_ours(number: int) -> None:
    """Recorded at OpenRouter, of gpt-4o-mini."""
    recording = row_of(number)
    cost = cost_of(recording)
    assert cost is not None
    assert cost.dollars == pytest.approx(final_of(recording)["usage"]["cost"])


@pytest.mark.parametrize("number", [919, 920])
def test_a_cost_with_a_written_cache_is_ours(number: int) -> None:
    """At the list prices of gpt-5.6-sol, from before OpenAI lowered them."""
    recording = row_of(number)
    usage = usage_of(recording)
    cost = cost_of(recording, ModelPrices(5.0, 0.5, 6.25, 30.0))
    assert usage is not None
    assert usage.cache_writes or usage.cached
    assert cost is not None
    assert cost.dollars == pytest.approx(final_of(recording)["usage"]["cost"])


def row_of(number: int) -> Recording:
    return next(
        row for row in recordings() if (row.file, row.number) == ("responses", number)
    )


def test_background_answers_that_are_not_stored_can_be_fetched() -> None:
    """Five requests without `store`, and seven later requests for their answers."""
    unstored = Counter[bool]()
    for recording in recordings():
        final = final_of(recording)
        if final.get("background") is True and final.get("store") is False:
            assert recording.status == 200
            assert "store" not in (recording.request or {})
            unstored[recording.creates_response] += 1
    assert unstored == {True: 5, False: 7}
