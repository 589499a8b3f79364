"""Models and prices as an administrator describes them."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from openai_responses.models.facts import ModelPrices
from openai_responses.models.resolve import resolve_model
from owui_manifold.call.model_valves import read_overrides, read_prices


def overrides(**rows: Any) -> Any:
    """Return the overrides of a valve; `_` in a name stands for `-`."""
    table = {name.replace("_", "-"): row for name, row in rows.items()}
    return read_overrides(json.dumps(table))


def test_a_model_like_another() -> None:
    """Its own id is sent, its reasoning is its own, the facts are the other's."""
    model = resolve_model("my-gpt", overrides(my_gpt={"like": "gpt-5.2"}))

    assert (model.id, model.family, model.name) == ("my-gpt", "my-gpt", "my-gpt")
    assert model.facts == resolve_model("gpt-5.2").facts
    tuned = read_overrides('{"ft:gpt-5.2:a": {"like": "gpt-5.2"}}')["ft:gpt-5.2:a"]
    assert tuned.facts == model.facts._replace(prices=None)


def test_facts_are_replaced_one_by_one() -> None:
    """What is not said stays as the catalog has it."""
    overridden = overrides(
        gpt_5={"lacks": ["mcp"], "efforts": ["low"], "summary": False, "name": "Ours"}
    )
    model = resolve_model("gpt-5", overridden)
    before = resolve_model("gpt-5")

    assert model.facts.efforts == ("low",)
    assert model.facts.lacks == ("mcp",)
    assert not model.facts.summary
    assert (model.id, model.family) == (before.id, before.family)
    assert model.facts.max_output_tokens == before.facts.max_output_tokens
    assert model.name == "Ours"


@pytest.mark.parametrize(
    ("row", "most"),
    [
        ({"name": "Ours"}, 272_000),
        ({"context_window": 600_000}, None),
        ({"context_window": 600_000, "max_input_tokens": 500_000}, 500_000),
        ({"max_input_tokens": 100_000}, 100_000),
    ],
)
def test_the_limit_of_another_window_says_nothing(
    row: dict[str, Any], most: int | None
) -> None:
    """Who knows a larger window may not know the limit that the catalog has."""
    overridden = overrides(my_gpt={"like": "gpt-5.2", **row})
    assert resolve_model("my-gpt", overridden).facts.max_input_tokens == most


def test_an_effort_at_the_end_of_an_own_name() -> None:
    """It counts if the model takes it; otherwise the name means what it always did."""
    overridden = overrides(my_gpt={"like": "gpt-5.2", "name": "Ours"})

    assert resolve_model("my-gpt-high", overridden).effort == "high"
    assert resolve_model("my-gpt-high", overridden).name == "Ours (high)"
    assert resolve_model("my-gpt-minimal", overridden).id == "my-gpt-minimal"


def test_other_models_stay_as_they_are() -> None:
    """An override changes only the model that it names."""
    overridden = overrides(my_gpt={"like": "gpt-5.2"})
    assert resolve_model("gpt-5-high", overridden) == resolve_model("gpt-5-high")
    assert read_overrides("") == read_overrides("\n") == {}


BOOLEAN = ("reasoning", "summary", "verbosity", "functions", "vision")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, value) for key in BOOLEAN for value in (True, False)),
        ("context_window", 1),
        ("default_effort", "low"),
        ("efforts", ("low", "high")),
        ("lacks", ("web_search", "mcp")),
        ("max_input_tokens", 1),
        ("max_output_tokens", 1),
        ("sampling", "always"),
        ("sampling", "with_none"),
        ("sampling", "never"),
        ("shutdown", "2030-01-01"),
        ("successor", "gpt-6.1-sol"),
    ],
)
def test_every_fact_can_be_overridden(key: str, value: object) -> None:
    model = resolve_model("x", overrides(x={key: value}))
    assert getattr(model.facts, key) == value


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"context_window": 0},
        {"context_window": True},
        {"max_input_tokens": "1"},
        {"color": "red"},
        {"like": 5},
        {"reasoning": "yes"},
        {"efforts": "high"},
        {"efforts": ["huge"]},
        {"max_output_tokens": 0},
        {"lacks": "web_search"},
        {"lacks": [1]},
        {"sampling": "often"},
        {"prices": [1, 2]},
    ],
)
def test_an_entry_that_cannot_be_meant(row: object) -> None:
    with pytest.raises(
        InvalidRequest, match=r"MODEL_OVERRIDES_JSON: the entry my-gpt "
    ):
        overrides(my_gpt=row)


@pytest.mark.parametrize(
    ("key", "named"),
    [("k" * 40, f"key `{'k' * 40}` "), ("k" * 41, "key "), ("k-1", "key ")],
)
def test_key_that_may_be_a_secret_is_not_named(key: str, named: str) -> None:
    """Users read why no answer comes."""
    with pytest.raises(InvalidRequest, match=f"a mistake: the {named}is unknown"):
        overrides(x={key: 1})


@pytest.mark.parametrize("text", ["no JSON", "[]", "[" * 100_000])
def test_text_that_is_no_object(text: str) -> None:
    with pytest.raises(InvalidRequest, match="for example"):
        read_overrides(text)


def prices_of(text: str) -> Mapping[str, ModelPrices]:
    prices, _ = read_prices(text)
    assert prices is not None
    return prices


def test_prices_are_read_from_the_valve() -> None:
    """What is not given is not known."""
    text = '{"my-model": {"input": 2, "output": 8.5, "cached": 0}}'
    assert read_prices(text) == ({"my-model": ModelPrices(2, 0, None, 8.5)}, "")
    whole = ModelPrices(1, 2, 3, 4, fast=5, ultrafast=6)
    given = {name: price for name, price in whole._asdict().items() if price}
    assert prices_of(json.dumps({"m": given})) == {"m": whole}
    assert read_prices("  ") == ({}, "")


def test_cached_input_is_the_price_of_the_cache() -> None:
    """So jrkropp's pipe calls it; an administrator may have stored that."""
    text = '{"gpt-5": {"input": 1.25, "cached_input": 0.125, "output": 10.0}}'
    assert prices_of(text)["gpt-5"] == ModelPrices(1.25, 0.125, None, 10.0)
    both = '{"m": {"input": 2, "cached": 1, "cached_input": 0.5, "output": 8}}'
    assert prices_of(both)["m"].cached == 1
    most = '{"m": {"input": 0, "output": 999999}}'
    assert prices_of(most)["m"] == ModelPrices(0, None, None, 999_999)


@pytest.mark.parametrize("text", ["no JSON", "[]"])
def test_text_that_is_no_table(text: str) -> None:
    """The message names the valve and shows an example."""
    prices, problem = read_prices(text)

    assert prices is None
    assert re.search(r"CUSTOM_MODEL_PRICING_JSON .* example", problem)


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

    assert prices is not None
    assert prices["wrong"] == ModelPrices(None, None, None, None)
    assert prices["right"] == ModelPrices(2, None, None, 8)
    assert problem.startswith("CUSTOM_MODEL_PRICING_JSON has no valid prices for wrong")
    assert "example" in problem
    many = {f"m-{number}": 1 for number in range(1_000)}
    for named in ({"m" * 5_000: 1}, many):
        assert len(read_prices(json.dumps(named))[1]) < 500
