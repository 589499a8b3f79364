"""Which model answers, and what is told of its end."""

import pytest

from manifold.models import answering_model, retirement
from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import ResolvedModel, resolve_model

OPENAI = Endpoint("https://api.openai.com/v1", "sk-1")
AZURE = Endpoint("https://ours.openai.azure.com/openai/v1", "key")
PAST = "2026-01-01"


def ending(name: str, last_day: str | None) -> ResolvedModel:
    """A model with a last day of an administrator or of its server; or OpenAI's."""
    model = resolve_model(name)
    if last_day is None:
        return model
    return model._replace(facts=model.facts._replace(shutdown=last_day))


@pytest.mark.parametrize(
    ("endpoint", "last_day", "told"),
    [
        (
            OPENAI,
            PAST,
            "was switched off on 2026-01-01. Use GPT-6.1 Sol instead.",
        ),
        (AZURE, PAST, "was switched off on 2026-01-01. Use GPT-6.1 Sol instead."),
        (OPENAI, None, "switched off on 2026-12-11. Use GPT-6.1 Sol instead."),
        (AZURE, None, ""),
    ],
)
def test_last_day_of_openai_is_not_told_at_azure(
    endpoint: Endpoint, last_day: str | None, told: str
) -> None:
    """Azure ends its models on other days; an administrator may have written one."""
    notice = retirement(ending("gpt-5", last_day), endpoint)

    assert told in notice
    assert bool(notice) is bool(told)


@pytest.mark.parametrize(
    ("endpoint", "answers"), [(OPENAI, "gpt-6.1-sol"), (AZURE, "o3-pro")]
)
def test_successor_of_a_pro_model_answers_only_at_openai(
    endpoint: Endpoint, answers: str
) -> None:
    assert answering_model(ending("o3-pro", PAST), endpoint).id == answers
