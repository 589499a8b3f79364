"""The model that answers, and what is told of its end."""

from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.models.choice import replacement, retirement_notice
from openai_responses.models.resolve import ResolvedModel, resolve_model


def answering_model(asked: ResolvedModel, endpoint: Endpoint) -> ResolvedModel:
    """Return the model that answers: the successor of one that was switched off.

    Azure ends its models on other days than OpenAI.
    """
    successor = None if endpoint.is_azure else replacement(asked, utc_today())
    return successor or asked


def retirement(asked: ResolvedModel, endpoint: Endpoint) -> str:
    """Return the notice about the end of a model; empty unless it is near.

    At Azure the catalog's day is not told, which is OpenAI's, but that of an
    administrator is.
    """
    openais_day = resolve_model(asked.id).facts.shutdown
    if endpoint.is_azure and asked.facts.shutdown == openais_day:
        return ""
    answering = answering_model(asked, endpoint)
    return retirement_notice(asked, utc_today(), answering)
