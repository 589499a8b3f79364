"""A name that ends in `-research` stands for a model that searches for long."""

import pytest

from openai_responses.models.resolve import resolve_model, takes_search_budget


@pytest.mark.parametrize(
    ("name", "model_id", "effort"),
    [
        ("gpt-6.1-sol-research", "gpt-6.1-sol", "high"),
        ("gpt-6.1-sol-low-research", "gpt-6.1-sol", "high"),
        ("gpt-6.1-sol-xhigh-research", "gpt-6.1-sol", "xhigh"),
        ("gpt-4.1-research", "gpt-4.1", None),
    ],
)
def test_ending_sets_a_high_effort(
    name: str, model_id: str, effort: str | None
) -> None:
    """A higher one that the name has stays."""
    model = resolve_model(name)
    assert (model.id, model.effort, model.research) == (model_id, effort, True)


@pytest.mark.parametrize(
    "name", ["o3-deep-research", "sonar-deep-research", "gpt-6.1-sol", "research"]
)
def test_other_names_are_their_own(name: str) -> None:
    """Also one of a retired model, or of another vendor."""
    model = resolve_model(name)
    assert (model.id, model.research) == (name, False)


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("gpt-5", True),
        ("gpt-7-sol", True),
        ("gpt-4.1", False),
        ("our-deployment", False),
    ],
)
def test_budget_is_for_reasoning_models_from_gpt_5_on(name: str, takes: bool) -> None:
    """Source: OpenAI's changelog of 2026-05-11."""
    assert takes_search_budget(resolve_model(name)) == takes
