"""The notice for a model that ends."""

from datetime import date

import pytest

from openai_responses.endings import ASKED_MODEL
from openai_responses.models.choice import (
    name_asked_model,
    replacement,
    retirement_notice,
)
from openai_responses.models.resolve import ResolvedModel, resolve_model

LAST = date(2026, 12, 11)


def ending(shutdown: str | None, successor: str | None = None) -> ResolvedModel:
    """Return a model that ends on a day."""
    model = resolve_model("gpt-5")
    facts = model.facts._replace(shutdown=shutdown, successor=successor)
    return model._replace(facts=facts)


@pytest.mark.parametrize(
    ("today", "notice"),
    [
        (date(2026, 11, 10), ""),
        (date(2026, 11, 11), "GPT-5 is switched off on 2026-12-11."),
        (date(2026, 12, 10), "GPT-5 is switched off on 2026-12-11."),
        (LAST, "GPT-5 was switched off on 2026-12-11."),
    ],
)
def test_the_last_thirty_days_and_afterwards(today: date, notice: str) -> None:
    """Early enough to change a preset, not for months."""
    assert retirement_notice(ending(LAST.isoformat()), today) == notice


def test_the_successor_is_named() -> None:
    """As people know it; the catalog's own model."""
    notice = retirement_notice(resolve_model("gpt-5-high"), date(2026, 12, 1))
    assert notice == (
        "GPT-5 (high) is switched off on 2026-12-11. Use GPT-6.1 Sol instead."
    )


@pytest.mark.parametrize("shutdown", [None, "next year"])
def test_a_model_without_a_date(shutdown: str | None) -> None:
    """Nothing is said; an administrator's own text for a date means nothing."""
    assert retirement_notice(ending(shutdown), LAST) == ""


@pytest.mark.parametrize("name", ["gpt-5-pro", "o3-pro", "gpt-5-pro-2025-10-06"])
def test_the_successor_of_a_pro_model_has_the_mode(name: str) -> None:
    """As OpenAI's page of deprecations says it; its name does not tell it."""
    model = resolve_model(name)
    notice = retirement_notice(model, date(2026, 12, 1), model)
    assert notice == (
        f"{model.name} is switched off on 2026-12-11. Use GPT-6.1 Sol pro instead."
    )
    assert replacement(model, date(2026, 12, 10)) is None

    answering = replacement(model, LAST)

    assert answering
    assert answering.id == "gpt-6.1-sol"
    assert answering.pro
    assert answering.effort is None
    assert retirement_notice(model, LAST, answering) == (
        f"{model.name} was switched off on 2026-12-11. GPT-6.1 Sol pro answers instead."
    )


@pytest.mark.parametrize("name", ["o1-pro", "gpt-6.1-sol-pro", "llama3:8b"])
def test_other_models_are_sent_as_they_are(name: str) -> None:
    """A model without the mode has a successor that people choose by its name."""
    assert replacement(resolve_model(name), date(2030, 1, 1)) is None


@pytest.mark.parametrize(
    ("model", "successor"),
    [
        ("o1-2024-12-17", "GPT-5.6 Sol"),
        ("o1-pro", "GPT-5.6 Sol pro"),
    ],
)
def test_a_refused_model_that_is_switched_off(model: str, successor: str) -> None:
    """The message names the model that was asked for, and its successor."""
    assert name_asked_model(f"No {ASKED_MODEL} here.", model) == (
        f"No {model} here. OpenAI has shut it down and recommends {successor}."
    )


@pytest.mark.parametrize("model", ["gpt-5", "openai/gpt-4", ""])
def test_a_refused_model_without_a_known_successor(model: str) -> None:
    """The message names only the model, and one about something else stays."""
    assert name_asked_model(f"No {ASKED_MODEL} here.", model) == f"No {model} here."
    assert name_asked_model("Try again.", "o3-mini") == "Try again."
