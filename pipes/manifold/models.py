"""The model that answers, as the server that is asked has it."""

from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.models.choice import replacement, retirement_notice
from openai_responses.models.resolve import ResolvedModel
from shells.model_list import ModelList


def model_at(
    model: ResolvedModel, endpoint: Endpoint, listed: ModelList
) -> ResolvedModel:
    """Return a model with the last day and the context that its server names, if any."""
    last_day = listed.shutdown_dates.get(model.id)
    if last_day:
        model = model._replace(facts=model.facts._replace(shutdown=last_day))
    return listed.with_context(model, endpoint)


def answering_model(asked: ResolvedModel, endpoint: Endpoint) -> ResolvedModel:
    """Return the model that answers: the successor of one that was switched off.

    Azure ends its models on other days than OpenAI.
    """
    successor = None if endpoint.is_azure else replacement(asked, utc_today())
    return successor or asked


def retirement(asked: ResolvedModel, endpoint: Endpoint) -> str:
    """Return the notice about the end of a model; empty unless it is near."""
    answering = answering_model(asked, endpoint)
    return retirement_notice(asked, utc_today(), answering)
