"""Compares the prices and limits of the catalog with a published list.

The list is LiteLLM's `model_prices_and_context_window.json`, from its repository or from
its package on PyPI (`litellm/model_prices_and_context_window_backup.json`):

    python scripts/catalog/compare.py FILE

It prints each fact that differs and each model that the list does not have, and ends
with 1 if a fact differs. It changes nothing: `models.json` is edited by hand.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PIPES = Path(__file__).resolve().parents[2] / "pipes"
sys.path.insert(0, str(PIPES))

from openai_responses.models.catalog import CATALOG_IMAGE_PRICES  # noqa: E402
from openai_responses.models.facts import ModelFacts  # noqa: E402
from openai_responses.models.resolve import CATALOG_FACTS  # noqa: E402
from openai_responses.models.usage import LONG_TTL_FACTOR  # noqa: E402
from openai_responses.tool_kinds import TOOL_KINDS  # noqa: E402

Listed = Mapping[str, Any]
MILLION = 1_000_000

PRICES = {
    "input": "input_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "output": "output_cost_per_token",
}
IMAGE_PRICES = {
    "text": "input_cost_per_token",
    "cached_text": "cache_read_input_token_cost",
    "image": "input_cost_per_image_token",
    "cached_image": "cache_read_input_image_token_cost",
    "output": "output_cost_per_image_token",
}


class Comparison(NamedTuple):
    """One fact of a model, here and in the list."""

    model: str
    fact: str
    ours: float | None
    listed: float | None

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        if self.ours is None or self.listed is None:
            return self.ours != self.listed
        return abs(self.ours - self.listed) > 1e-6


def compare_model(facts: ModelFacts, listed: Listed) -> Iterator[Comparison]:
    """Yield the facts that the catalog and the list can both have."""
    prices = facts.prices._asdict() if facts.prices else {}
    for fact, name in PRICES.items():
        yield Comparison(facts.id, fact, prices.get(fact), _per_million(listed, name))
    written = prices.get("cache_write")
    long_name = f"{PRICES['cache_write']}_above_12hr"
    if written is not None and long_name in listed:
        long_price = written * LONG_TTL_FACTOR
        listed_price = _per_million(listed, long_name)
        yield Comparison(facts.id, "cache_write, 12 h", long_price, listed_price)
    for fact in ("max_input_tokens", "max_output_tokens"):
        ours = getattr(facts, fact)
        if fact == "max_input_tokens":
            ours = ours or facts.context_window
        if fact in listed:
            yield Comparison(facts.id, fact, ours, listed[fact])
    searches = listed.get("search_context_cost_per_query") or {}
    if "search_context_size_medium" in searches:
        fee = facts.search_fee or TOOL_KINDS["web_search"].fee
        listed_fee = searches["search_context_size_medium"]
        yield Comparison(facts.id, "search_fee", fee, listed_fee)


def compare_image_model(model: str, listed: Listed) -> Iterator[Comparison]:
    """Yield the prices of a model that draws."""
    prices = CATALOG_IMAGE_PRICES[model]._asdict()
    for fact, name in IMAGE_PRICES.items():
        yield Comparison(model, fact, prices[fact], _per_million(listed, name))


def compare_catalog(entries: Mapping[str, Listed]) -> tuple[list[Comparison], set[str]]:
    """Return all comparisons, and the models that the list does not have."""
    compared: list[Comparison] = []
    missing: set[str] = set()
    for facts in CATALOG_FACTS.values():
        if facts.id in CATALOG_IMAGE_PRICES:
            continue
        if facts.id in entries:
            compared += compare_model(facts, entries[facts.id])
        else:
            missing.add(facts.id)
    for model in CATALOG_IMAGE_PRICES:
        if model in entries:
            compared += compare_image_model(model, entries[model])
        else:
            missing.add(model)
    return compared, missing


def _per_million(listed: Listed, name: str) -> float | None:
    price = listed.get(name)
    return None if price is None else round(price * MILLION, 6)


def main() -> int:
    """Print what differs."""
    parser = argparse.ArgumentParser(description="Compare the catalog with a list.")
    parser.add_argument("list", type=Path, help="LiteLLM's list of prices")
    options = parser.parse_args()
    compared, missing = compare_catalog(json.loads(options.list.read_text("utf-8")))
    different = [comparison for comparison in compared if comparison.differs]
    for model, fact, ours, listed in different:
        print(f"{model}: {fact} is {ours} here, {listed} in the list")
    for model in sorted(missing):
        print(f"{model}: not in the list")
    models = {comparison.model for comparison in compared}
    print(
        f"{len(compared)} facts of {len(models)} models compared, "
        f"{len(different)} differ, {len(missing)} models are not in the list"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
