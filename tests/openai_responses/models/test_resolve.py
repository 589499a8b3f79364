"""A name means one model, and nothing real is read as an alias."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.generate import FACTS_FILE, LATER_TRAITS
from openai_responses.models.resolve import (
    CATALOG_FACTS,
    REASONING_EFFORTS,
    ResolvedModel,
    resolve_model,
    takes_hosted_tool,
    takes_search_budget,
)

SNAPSHOTS = [
    (model, f"{model}-{date}")
    for model, by_source in json.loads(Path(FACTS_FILE).read_text("utf-8"))[
        "models"
    ].items()
    for date in by_source.get("sdk", {}).get("snapshots", ())
]


@pytest.mark.parametrize(
    ("name", "model_id", "effort", "family", "mode"),
    [
        ("gpt-5-thinking-minimal", "gpt-5", "minimal", "gpt-5", ""),
        ("gpt-5-thinking-mini-high", "gpt-5-mini", "high", "gpt-5-mini", ""),
        ("o3-mini-high", "o3-mini", "high", "o3-mini", ""),
        ("gpt-5.2-thinking", "gpt-5.2", "medium", "gpt-5.2", ""),
        ("gpt-5.1-instant", "gpt-5.1", "none", "gpt-5.1", ""),
        ("gpt-5.6-high", "gpt-5.6", "high", "gpt-5.6-sol", ""),
        ("gpt-5.3-codex-xhigh", "gpt-5.3-codex", "xhigh", "gpt-5.3-codex", ""),
        ("gpt-5-2025-08-07-high", "gpt-5-2025-08-07", "high", "gpt-5", ""),
        ("openai/gpt-5.2-high", "openai/gpt-5.2", "high", "openai/gpt-5.2", ""),
        ("gpt-6.1-sol-pro-none", "gpt-6.1-sol-pro", "none", "gpt-6.1-sol-pro", ""),
        ("gpt-5-auto", "gpt-6.1-sol", None, "gpt-6.1-sol", ""),
        ("o3-2025-04-16", "o3-2025-04-16", None, "o3", ""),
        ("ft:gpt-4.1:us::abc", "ft:gpt-4.1:us::abc", None, "ft:gpt-4.1:us::abc", ""),
        # Newer than the catalog.
        ("gpt-7-sol-max", "gpt-7-sol", "max", "gpt-7-sol", ""),
        ("gpt-7-sol-2027-02-03", "gpt-7-sol-2027-02-03", None, "gpt-7-sol", ""),
        ("gpt-6.1-sol-pro", "gpt-6.1-sol", None, "gpt-6.1-sol", "pro"),
        ("gpt-6.1-terra-pro-low", "gpt-6.1-terra", "low", "gpt-6.1-terra", "pro"),
        ("gpt-5.6-pro", "gpt-5.6", None, "gpt-5.6-sol", "pro"),
        ("gpt-6.1-sol-research", "gpt-6.1-sol", "high", "gpt-6.1-sol", "research"),
        ("gpt-6.1-sol-low-research", "gpt-6.1-sol", "high", "gpt-6.1-sol", "research"),
        (
            "gpt-6.1-sol-xhigh-research",
            "gpt-6.1-sol",
            "xhigh",
            "gpt-6.1-sol",
            "research",
        ),
        ("gpt-4.1-research", "gpt-4.1", None, "gpt-4.1", "research"),
    ],
)
def test_name_means_a_model_an_effort_and_a_mode(
    name: str, model_id: str, effort: str | None, family: str, mode: str
) -> None:
    """The names that earlier pipes offered keep their meaning."""
    model = resolve_model(name)
    assert (model.id, model.effort, model.family) == (model_id, effort, family)
    assert (model.pro, model.research) == (mode == "pro", mode == "research")


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5.1-codex-max",  # a model, not an effort of gpt-5.1-codex
        "gpt-9-codex-max",  # so is one that is not known yet
        *("gpt-5-none", "gpt-5.2-minimal", "gpt-5-instant", "gpt-9-thinking", ""),
        *("mistral-medium", "sonar-deep-research"),  # of other vendors
        *("ft:o4-mini-2025-04-16:us:terse-high", "ft:gpt-6.1-sol:us-pro"),
        # Older pro models have ids of their own; others are not known to have the mode.
        *("gpt-5.2-pro", "gpt-6.2-sol-pro", "gpt-7-sol-pro"),
        *("openai/gpt-6.1-sol-pro", "gpt-pro", "o3-deep-research", "research"),
    ],
)
def test_other_names_are_sent_as_they_are(name: str) -> None:
    model = resolve_model(name)
    assert (model.id, model.effort, model.pro, model.research) == (
        name,
        None,
        False,
        False,
    )


def test_a_real_id_wins() -> None:
    """Each id of the catalog is itself, and takes just its own efforts as a suffix."""
    for model_id in CATALOG_FACTS:
        model = resolve_model(model_id)
        assert (model.id, model.effort) == (model_id, None)
        for effort in REASONING_EFFORTS:
            name = f"{model_id}-{effort}"
            is_another = name in CATALOG_FACTS or name.endswith("-codex-max")
            is_read = model.takes_effort(effort) and not is_another
            suffixed = resolve_model(name)
            assert ((suffixed.id, suffixed.effort) == (model_id, effort)) == is_read


def test_dated_snapshot_or_short_id_is_sent_as_given() -> None:
    for model, snapshot in [*SNAPSHOTS, ("gpt-5.6-sol", "gpt-5.6")]:
        resolved = resolve_model(snapshot)
        assert (resolved.id, resolved.family) == (snapshot, model)
        assert resolved.facts == resolve_model(model).facts


def traits(model: ResolvedModel) -> str:
    """The traits of a model as words."""
    facts = model.facts
    names = ("reasoning", "summary", "verbosity", "functions", "vision")
    words = [name for name in names if getattr(facts, name)]
    return " ".join((facts.sampling, *words))


@pytest.mark.parametrize(
    ("name", "expected", "is_known"),
    [
        ("gpt-5-next", "never reasoning summary verbosity functions vision", True),
        ("gpt-6.1-x", "never reasoning summary verbosity functions vision", True),
        ("o5-mini", "never reasoning summary functions vision", True),
        ("gpt-4.5-preview", "always functions vision", True),
        # Nothing is sent that a plain model refuses.
        ("llama3:8b", "always functions vision", False),
        ("gpt-35-turbo", "always functions vision", False),
        ("omni-1", "always functions vision", False),
    ],
)
def test_unknown_ids_have_the_traits_of_their_family(
    name: str, expected: str, is_known: bool
) -> None:
    model = resolve_model(name)
    assert traits(model) == expected
    assert model.facts.known_family is is_known


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-5.3-next", ""),
        ("gpt-5.4-next", "all_turns"),
        ("gpt-5.6-next", "all_turns appends_tools diagnostics"),
        ("gpt-6-next", "all_turns appends_tools diagnostics appends_configuration"),
        ("o5", ""),
        ("our-deployment", ""),
    ],
)
def test_unknown_ids_get_the_traits_of_their_version(name: str, expected: str) -> None:
    """What holds from a version on holds for a newer one; pro mode is never assumed."""
    facts = resolve_model(name).facts
    names = [trait for trait in LATER_TRAITS[:5] if getattr(facts, trait)]
    assert names == expected.split()
    assert facts.long_prices is facts.regional is bool(expected)
    assert facts.hosted


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("ft:gpt-5.4-mini-2026-03-17:us:terse-high", "gpt-5.4-mini"),
        ("openai/gpt-5.6-sol", "gpt-5.6-sol"),
    ],
)
def test_wrapped_ids_have_the_facts_of_what_they_wrap(name: str, like: str) -> None:
    """All but the prices, which are the tuner's or the router's own."""
    assert traits(resolve_model(name)) == traits(resolve_model(like))
    facts = resolve_model(name).facts
    expected = resolve_model(like).facts
    assert facts.prices is None
    assert expected.prices is not None
    assert facts.efforts == expected.efforts
    assert facts.shutdown == expected.shutdown


@pytest.mark.parametrize(
    ("name", "taken", "refused", "lowest"),
    [
        ("gpt-5", ["minimal"], ["none"], "minimal"),
        ("gpt-5-pro", ["high"], ["medium"], "high"),
        ("gpt-6.1-sol", ["max"], ["none"], "low"),
        ("o3", ["low"], ["minimal"], "low"),
        ("gpt-4.1", [], ["low"], None),
        ("gpt-7-sol", ["max", "none"], [], None),
        # Names that say nothing: an effort may be tried.
        *(
            (name, ["high"], [], None)
            for name in ("llama3:8b", "gpt-35-turbo", "omni-1")
        ),
    ],
)
def test_model_tells_which_efforts_it_takes(
    name: str, taken: list[str], refused: list[str], lowest: str | None
) -> None:
    model = resolve_model(name)
    efforts = [effort for effort in (*taken, *refused) if model.takes_effort(effort)]
    assert efforts == taken
    assert model.lowest_effort() == lowest


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gpt-5.6-sol", "GPT-5.6 Sol"),
        ("gpt-5.6-sol-high", "GPT-5.6 Sol (high)"),
        ("gpt-5.2-pro", "GPT-5.2 pro"),
        ("gpt-5.3-codex", "GPT-5.3 Codex"),
        ("gpt-4o-mini", "GPT-4o mini"),
        ("gpt-5-2025-08-07", "GPT-5 (2025-08-07)"),
        ("gpt-5-2025-08-07-high", "GPT-5 (2025-08-07, high)"),
        ("gpt-6.1-sol-research", "GPT-6.1 Sol Research"),
        ("gpt-6.1-sol-pro", "GPT-6.1 Sol pro"),
        ("gpt-6.1-terra-pro-low", "GPT-6.1 Terra pro (low)"),
        ("gpt-5.6-pro", "GPT-5.6 pro"),
        # Both may be in one list.
        ("gpt-6.1-sol", "GPT-6.1 Sol"),
        ("gpt-5-auto", "GPT Auto (chooses for each chat)"),
        ("llama3:8b", "llama3:8b"),
    ],
)
def test_model_is_called_what_people_call_it(name: str, shown: str) -> None:
    assert resolve_model(name).name == shown


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("gpt-5." + "9" * 5000, id="no-integer"),
        pytest.param("openai/" * 5000 + "gpt-5", id="wrapped-in-wrappers"),
        pytest.param("gpt-6.1-sol" + "-research" * 2000, id="research"),
        pytest.param("gpt-6.1-sol" + "-pro" * 2000, id="pro"),
        pytest.param("gpt-6.1-sol" + "-pro-research" * 2000, id="both"),
    ],
)
def test_a_monstrous_name_is_sent_as_it_is(name: str) -> None:
    """Neither the limit of integers nor that of recursion is reached."""
    assert resolve_model(name).id == name


WORDS = "gpt- o 5 . - thinking mini high max ft: openai/ -2025-08-07 instant :"
ODD_PIECES = ["9" * 5000, "\n", "\u0663", "\u00e9"]
PIECES = st.sampled_from([*WORDS.split(), *ODD_PIECES, *CATALOG_FACTS])


@given(st.one_of(st.text(), st.lists(PIECES, max_size=8).map("".join)))
def test_no_name_raises(name: str) -> None:
    model = resolve_model(name)
    if model.effort is None and model.id not in CATALOG_FACTS:
        assert model.id == name
    else:
        assert model.effort in (None, *REASONING_EFFORTS)


def test_mode_pro_of_an_overridden_model() -> None:
    """The mode is no model: it has the facts of the one without it."""
    plain = resolve_model("gpt-6.1-terra")
    model = resolve_model("gpt-6.1-terra-pro-low")
    assert (model.family, model.facts) == (plain.family, plain.facts)
    own = plain._replace(facts=plain.facts._replace(max_output_tokens=500))
    overridden = resolve_model("gpt-6.1-terra-pro-low", {"gpt-6.1-terra": own})
    assert (overridden.effort, overridden.pro) == ("low", True)
    assert overridden.facts.max_output_tokens == 500


def test_budget_is_for_reasoning_models_from_gpt_5_on() -> None:
    """Source: OpenAI's changelog of 2026-05-11."""
    names = ("gpt-5", "gpt-7-sol", "gpt-4.1", "ours")
    takes = [takes_search_budget(resolve_model(name)) for name in names]
    assert takes == [True, True, False, False]


def test_administrators_model_comes_before_those_of_its_name() -> None:
    own = resolve_model("gpt-5.2")._replace(name="Ours")

    def resolved(name: str) -> tuple[str, str | None]:
        model = resolve_model(name, {"gpt-5": own})
        return model.name, model.effort

    assert resolve_model("gpt-5", {"gpt-5": own}) is own
    assert resolved("gpt-5-high") == ("Ours (high)", "high")
    assert resolved("gpt-5-minimal") == (resolve_model("gpt-5-minimal").name, "minimal")


def test_type_that_a_model_lacks_is_not_offered_in_any_version() -> None:
    lacking = resolve_model("gpt-5.2")
    lacking = lacking._replace(facts=lacking.facts._replace(lacks=("web_search",)))
    without = lacking._replace(facts=lacking.facts._replace(hosted=False))

    kinds = ("web_search", "web_search_preview", "file_search")
    assert [takes_hosted_tool(lacking, kind) for kind in kinds] == [False, False, True]
    assert not takes_hosted_tool(without, "file_search")
