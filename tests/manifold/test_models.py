"""The model that answers."""

from datetime import timedelta

import pytest

from manifold.models import answering_model, model_at, retirement
from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import ResolvedModel, resolve_model
from shells.model_list import ModelList

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


def test_last_day_that_the_server_names_counts() -> None:
    listed = ModelList()
    listed.shutdown_dates["gpt-5.2"] = "2027-01-31"

    named = model_at(resolve_model("gpt-5.2"), OPENAI, listed)

    assert named.facts.shutdown == "2027-01-31"
    other = resolve_model("gpt-5.1")
    assert model_at(other, OPENAI, listed) == other
