"""What responses cost."""

from collections.abc import Iterable

from openai_responses.clock import utc_today
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models.usage import Cost, RequestTerms, Usage, cost_of_run
from owui_manifold.prepare.request import PreparedRequest, completion_window


def cost_of_responses(
    prepared: PreparedRequest, usages: Iterable[Usage], output: Iterable[Item]
) -> Cost | None:
    """Return what responses with this output cost; None if it cannot be known.

    Other servers do not say which tier served a response: it is the one asked for.
    """
    call = prepared.call
    request = prepared.request
    own_prices = call.config.prices
    if isinstance(own_prices, InvalidRequest):
        return None
    facts = call.resolve(request.model).facts
    facts = facts._replace(prices=own_prices.get(request.model, facts.prices))
    asked_tier = request.service_tier or ""
    served = [usage._replace(tier=usage.tier or asked_tier) for usage in usages]
    window = completion_window(request)
    terms = RequestTerms(call.endpoint.host, request.tools or (), window)
    return cost_of_run(served, facts, output, utc_today(), terms)
