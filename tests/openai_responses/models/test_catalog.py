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
from openai_responses.models.resolve import (
    CATALOG_FACTS,
    REASONING_EFFORTS,
    resolve_model,
)

FACTS: dict[str, Any] = json.loads(Path(FACTS_FILE).read_text("utf-8"))
each_model = pytest.mark.parametrize("model", sorted(CATALOG_FACTS))


def said_of(model: str) -> dict[str, Any]:
    """All facts about a model, whoever says them."""
    return merge_facts(model, FACTS["models"][model])


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-codex", "gpt-5-chat-latest"),
        *("gpt-5.1", "gpt-5.1-codex", "gpt-5.2", "gpt-5.2-pro", "gpt-5.3-codex"),
        *("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"),
        *("gpt-4o", "gpt-4o-mini", "chatgpt-4o-latest"),
        *("o3", "o3-mini", "o3-pro", "o3-deep-research"),
        *("o4-mini", "o4-mini-deep-research"),
    ],
)
def test_specified_models_are_known_or_have_a_successor(model: str) -> None:
    """One that is shut down is not offered, but a chat with it is told what to use."""
    assert (model in CATALOG_FACTS) is not (model in CATALOG_SUCCESSORS)


def test_catalog_module_is_current() -> None:
    assert CATALOG_FILE.read_text("utf-8") == render_catalog(FACTS)


def test_generator_notices_a_changed_fact() -> None:
    """A module that is not current is told from one that is."""
    changed = json.loads(json.dumps(FACTS))
    changed["models"]["gpt-5"]["sdk"]["shutdown"] = "2030-01-01"
    assert CATALOG_FILE.read_text("utf-8") != render_catalog(changed)


def test_models_are_sorted_by_id() -> None:
    """A new model changes no other lines."""
    assert list(CATALOG_FACTS) == sorted(CATALOG_FACTS)


@pytest.mark.parametrize("model", sorted(FACTS["models"]))
def test_facts_are_those_of_the_sources(model: str) -> None:
    """What a model resolves to is what models.json says, absent facts included."""
    stated = said_of(model)
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


def test_catalog_has_the_models_of_its_sources() -> None:
    """Nothing is in the catalog that models.json does not have, and the reverse."""
    assert CATALOG_FACTS.keys() == FACTS["models"].keys()
    assert CATALOG_SUCCESSORS.keys() == FACTS["retired"].keys()


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


VERSION = re.compile(r"gpt-(\d)(?:\.(\d))?(?!\d)")


def version_of(model: str) -> tuple[int, int]:
    """The version of a gpt; (0, 0) for another model."""
    match = VERSION.match(model)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


@each_model
def test_efforts_agree_with_default_sampling_and_version(model: str) -> None:
    """They rise, the default is one of them, and only `none` allows sampling.

    `max` comes with 5.6, and `minimal` goes with 5.1.
    """
    facts = CATALOG_FACTS[model]
    version = version_of(model)
    efforts = list(facts.efforts)
    assert efforts == [effort for effort in REASONING_EFFORTS if effort in efforts]
    assert facts.default_effort is None or facts.default_effort in efforts
    assert (facts.sampling == "with_none") == ("none" in efforts)
    if facts.reasoning:
        assert facts.sampling != "always"
    else:
        assert not efforts
        assert not facts.summary
    if efforts:
        assert ("max" in efforts) == (version >= (5, 6))
        assert "minimal" not in efforts or version == (5, 0)


@each_model
def test_what_may_be_appended_follows_the_version(model: str) -> None:
    """What OpenAI's guides say of a version and later, each model of it has."""
    facts = CATALOG_FACTS[model]
    version = version_of(model)
    assert facts.all_turns == (version >= (5, 4))
    assert facts.appends_tools == facts.diagnostics == (version >= (5, 6))
    assert facts.appends_configuration == (version >= (6, 0))
    assert facts.regional == (version >= (5, 4))
    assert not facts.pro_mode or (5, 6) <= version < (6, 2)


@each_model
def test_successor_is_there_to_stay(model: str) -> None:
    """A model that ends names one that does not; one that stays names none."""
    facts = CATALOG_FACTS[model]
    if facts.shutdown is None:
        assert facts.successor is None
    else:
        assert facts.successor is not None
        successor = resolve_model(facts.successor)
        assert successor.id in CATALOG_FACTS or "-image-" in successor.id
        assert successor.facts.shutdown is None


@pytest.mark.parametrize("retired", sorted(CATALOG_SUCCESSORS))
def test_successor_of_a_retired_model(retired: str) -> None:
    """It is served, and the retired one is in the catalog no longer."""
    successor = resolve_model(CATALOG_SUCCESSORS[retired])
    assert successor.id in CATALOG_FACTS
    assert successor.facts.shutdown is None
    assert retired not in CATALOG_FACTS


def test_a_model_that_is_over_has_to_retire() -> None:
    """Its facts would outlive it."""
    later = {**FACTS, "as_of": "2026-12-11"}
    with pytest.raises(ValueError, match="is switched off; move it to `retired`"):
        render_catalog(later)


def test_a_retired_model_names_its_successor() -> None:
    """That is all that is still needed of it."""
    with pytest.raises(ValueError, match="o9: a retired model has a shutdown and a su"):
        merge_retired("o9", {"sdk": {"shutdown": "2026-11-01"}})


@pytest.mark.parametrize("names", [CATALOG_ALIASES, CATALOG_SERVED_AS])
def test_names_lead_to_lasting_models(names: dict[str, str]) -> None:
    """An alias is no id of its own, and its model is in the catalog and active."""
    for name, model in names.items():
        assert name not in CATALOG_FACTS
        assert CATALOG_FACTS[model].shutdown is None


def test_fact_with_two_sources_is_refused() -> None:
    """Two sources for one fact would hide which of them counts."""
    facts = {**FACTS["models"]["gpt-5"], "another": {"phase": True}}
    with pytest.raises(ValueError, match="gpt-5: phase is stated again by anot"):
        merge_facts("gpt-5", facts)


@pytest.mark.parametrize("facts", [{"sdk": {"color": "red"}}, {}])
def test_misspelt_or_forgotten_fact_is_refused(
    facts: dict[str, dict[str, Any]],
) -> None:
    with pytest.raises(ValueError, match="gpt-9: unknown or missing facts"):
        merge_facts("gpt-9", facts)
