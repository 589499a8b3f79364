"""The generated catalog of models says what its sources say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from catalog.generate import (
    CATALOG_FILE,
    FACTS_FILE,
    LATER_TRAITS,
    merge_facts,
    merge_retired,
    render_catalog,
)
from openai_responses.models.catalog import (
    CATALOG_ALIASES,
    CATALOG_SERVED_AS,
    CATALOG_SUCCESSORS,
)
from openai_responses.models.facts import read_gpt_version
from openai_responses.models.resolve import (
    CATALOG_FACTS,
    REASONING_EFFORTS,
    resolve_model,
)

FACTS: dict[str, Any] = json.loads(Path(FACTS_FILE).read_text("utf-8"))


SPECIFIED = [
    *("gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-codex", "gpt-5-chat-latest"),
    *("gpt-5.1", "gpt-5.1-codex", "gpt-5.2", "gpt-5.2-pro", "gpt-5.3-codex"),
    *("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"),
    *("gpt-4o", "gpt-4o-mini", "chatgpt-4o-latest"),
    *("o3", "o3-mini", "o3-pro", "o3-deep-research"),
    *("o4-mini", "o4-mini-deep-research"),
]


def test_specified_models_are_known_or_have_a_successor() -> None:
    """One that is shut down is not offered, but a chat with it is told what to use."""
    assert {*SPECIFIED} <= CATALOG_FACTS.keys() ^ CATALOG_SUCCESSORS.keys()


def test_catalog_module_is_current() -> None:
    assert CATALOG_FILE.read_text("utf-8") == render_catalog(FACTS)
    assert CATALOG_FACTS.keys() == FACTS["models"].keys()
    assert CATALOG_SUCCESSORS.keys() == FACTS["retired"].keys()


@pytest.mark.parametrize("model", FACTS["models"])
def test_facts_are_those_of_the_sources(model: str) -> None:
    """What a model resolves to is what models.json says, absent facts included."""
    stated = merge_facts(model, FACTS["models"][model])
    facts = resolve_model(model).facts
    prices = facts.prices._asdict() if facts.prices else {}
    resolved = {
        name: getattr(facts, name)
        for name in facts._fields
        if name not in ("id", "efforts", "lacks", "prices", "known_family")
    }
    traits = dict.fromkeys(LATER_TRAITS, False)
    assert resolved == {name: stated.get(name, traits.get(name)) for name in resolved}
    assert list(facts.efforts) == stated.get("efforts", [])
    assert list(facts.lacks) == stated.get("lacks", [])
    stated_prices = {**(stated.get("prices") or {}), **stated.get("tiers", {})}
    assert prices == {name: stated_prices.get(name) for name in prices}
    assert stated_prices.keys() <= prices.keys()
    assert facts.known_family


def test_every_source_is_dated() -> None:
    """Each fact is under a source, and each source has a title and a day."""
    models = (*FACTS["models"].values(), *FACTS["retired"].values())
    used = {source for facts in models for source in facts}
    for names in (FACTS["aliases"], FACTS["served_as"]):
        used |= {entry["source"] for entry in names.values()}
    assert used == FACTS["sources"].keys()
    for source in FACTS["sources"].values():
        assert source["title"]
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", source["date"])


def test_efforts_agree_with_default_sampling_and_version() -> None:
    """They rise, the default is one of them, and only `none` allows sampling.

    `max` comes with 5.6, and `minimal` goes with 5.1.
    """
    for model, facts in CATALOG_FACTS.items():
        version = read_gpt_version(model) or (0, 0)
        efforts = list(facts.efforts)
        rising = [effort for effort in REASONING_EFFORTS if effort in efforts]
        assert efforts == rising, model
        assert facts.default_effort in (None, *efforts), model
        assert (facts.sampling == "with_none") == ("none" in efforts), model
        if facts.reasoning:
            assert facts.sampling != "always", model
        else:
            assert (efforts, facts.summary) == ([], False), model
        if efforts:
            assert ("max" in efforts) == (version >= (5, 6)), model
            assert "minimal" not in efforts or version == (5, 0), model


def test_what_may_be_appended_follows_the_version() -> None:
    """What OpenAI's guides say of a version and later, each model of it has."""
    for model, facts in CATALOG_FACTS.items():
        version = read_gpt_version(model) or (0, 0)
        assert facts.all_turns == facts.regional == (version >= (5, 4)), model
        assert facts.appends_tools == facts.diagnostics == (version >= (5, 6)), model
        assert facts.appends_configuration == (version >= (6, 0)), model
        assert not facts.pro_mode or (5, 6) <= version < (6, 2), model


def test_successors_are_there_to_stay() -> None:
    """A model that ends names one that does not; one that stays names none."""
    for model, facts in CATALOG_FACTS.items():
        assert (facts.shutdown is None) == (facts.successor is None), model
    ending = {m: f.successor for m, f in CATALOG_FACTS.items() if f.successor}
    for model, name in (ending | CATALOG_SUCCESSORS).items():
        successor = resolve_model(name)
        assert successor.id in CATALOG_FACTS or "-image-" in successor.id, model
        assert successor.facts.shutdown is None, model
    assert not CATALOG_SUCCESSORS.keys() & CATALOG_FACTS.keys()


def test_names_lead_to_lasting_models() -> None:
    for name, model in (CATALOG_ALIASES | CATALOG_SERVED_AS).items():
        assert name not in CATALOG_FACTS
        assert CATALOG_FACTS[model].shutdown is None


TWICE = {**FACTS["models"]["gpt-5"], "another": {"phase": True}}


@pytest.mark.parametrize(
    ("model", "facts", "message"),
    [
        ("gpt-5", TWICE, "gpt-5: phase is stated again by anot"),
        ("gpt-9", {"sdk": {"color": "red"}}, "gpt-9: unknown or missing facts"),
        ("gpt-9", {}, "gpt-9: unknown or missing facts"),
    ],
)
def test_facts_that_cannot_be_merged_are_refused(
    model: str, facts: dict[str, dict[str, Any]], message: str
) -> None:
    """Two sources for one fact would hide which of them counts."""
    with pytest.raises(ValueError, match=message):
        merge_facts(model, facts)


def test_a_model_that_is_over_has_to_retire() -> None:
    """Its facts would outlive it; only its successor is still needed."""
    with pytest.raises(ValueError, match="is switched off; move it to `retired`"):
        render_catalog({**FACTS, "as_of": "2026-12-11"})
    with pytest.raises(ValueError, match="o9: a retired model has a shutdown and a su"):
        merge_retired("o9", {"sdk": {"shutdown": "2026-11-01"}})
