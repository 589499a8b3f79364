"""The model that answers, what is told of its end, and what its responses cost."""

from collections.abc import Iterable

from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item
from openai_responses.json_input import as_mapping, as_text
from openai_responses.models.choice import replacement, retirement_notice
from openai_responses.models.facts import ModelFacts
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.models.usage import Cost, RequestTerms, Usage, cost_of_run
from openai_responses.requests.build import ResponsesRequest


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


def cost_of_request(
    request: ResponsesRequest,
    endpoint: Endpoint,
    facts: ModelFacts,
    usages: Iterable[Usage],
    output: Iterable[Item] = (),
) -> Cost | None:
    """Return what the responses to a request cost, with the prices of `facts`.

    What the server says of a response comes first. Servers other than OpenAI's do not
    say which tier served it: it is the one asked for. None if it cannot be known.
    """
    asked_tier = request.service_tier or ""
    served = [usage._replace(tier=usage.tier or asked_tier) for usage in usages]
    window = completion_window(request)
    terms = RequestTerms(endpoint.host, request.tools or (), window)
    return cost_of_run(served, facts, output, utc_today(), terms)


def completion_window(request: ResponsesRequest) -> str:
    """Return the time that is asked for, unless the server has refused to be asked."""
    if not request.background_options:
        return ""
    options = as_mapping(request.payload().get("background_options"))
    return as_text(options.get("completion_window"))
