"""The model that answers, and what is told of its end."""

from datetime import timedelta

import pytest

from manifold.models import answering_model, retirement
from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import ResolvedModel, resolve_model

OPENAI = Endpoint("", "sk-1")
AZURE = Endpoint("https://ours.openai.azure.com", "sk-1")


def ending(days: int, successor: str | None) -> ResolvedModel:
    """A model whose last day is so many days away."""
    model = resolve_model("gpt-5.2-pro")
    day = (utc_today() + timedelta(days=days)).isoformat()
    facts = model.facts._replace(shutdown=day, successor=successor)
    return model._replace(facts=facts)


@pytest.mark.parametrize(
    ("days", "server", "successor", "answers"),
    [
        (0, OPENAI, "gpt-6.1-sol-pro", "gpt-6.1-sol"),
        (1, OPENAI, "gpt-6.1-sol-pro", "gpt-5.2-pro"),
        (0, OPENAI, "gpt-6.1-sol", "gpt-5.2-pro"),
        (0, OPENAI, None, "gpt-5.2-pro"),
        (0, AZURE, "gpt-6.1-sol-pro", "gpt-5.2-pro"),
    ],
)
def test_successor_in_pro_mode_answers_from_the_last_day_on(
    days: int, server: Endpoint, successor: str | None, answers: str
) -> None:
    """Azure ends its models on other days."""
    assert answering_model(ending(days, successor), server).id == answers


@pytest.mark.parametrize(
    ("days", "server", "said"),
    [
        (31, OPENAI, ()),
        (30, OPENAI, ("is switched off on", "Use")),
        (0, OPENAI, ("was switched off on", "answers instead")),
        (0, AZURE, ("was switched off on", "Use")),
    ],
)
def test_end_of_a_model_is_told_from_a_month_before(
    days: int, server: Endpoint, said: tuple[str, ...]
) -> None:
    notice = retirement(ending(days, "gpt-6.1-sol-pro"), server)

    assert bool(notice) is bool(said)
    assert all(words in notice for words in said)


USE = "Use GPT-6.1 Sol instead."


@pytest.mark.parametrize(
    ("endpoint", "last_day", "told"),
    [
        (OPENAI, "2026-01-01", f"was switched off on 2026-01-01. {USE}"),
        (AZURE, "2026-01-01", f"was switched off on 2026-01-01. {USE}"),
        (OPENAI, None, f"switched off on 2026-12-11. {USE}"),
        (AZURE, None, ""),
    ],
)
def test_last_day_of_openai_is_not_told_at_azure(
    endpoint: Endpoint, last_day: str | None, told: str
) -> None:
    """Azure ends its models on other days; an administrator may have written one."""
    model = resolve_model("gpt-5")
    if last_day:
        model = model._replace(facts=model.facts._replace(shutdown=last_day))

    notice = retirement(model, endpoint)

    assert told in notice
    assert bool(notice) is bool(told)
