"""What responses cost."""

from collections.abc import Iterable

from manifold.costs import cost_of_request
from openai_responses.items import Item
from openai_responses.models.usage import Cost, Usage
from owui_manifold.prepare.request import PreparedRequest


def cost_of_responses(
    prepared: PreparedRequest, usages: Iterable[Usage], output: Iterable[Item]
) -> Cost | None:
    """Return what responses with this output cost; None if it cannot be known.

    The administrator's price of the model comes first, then what the server says, then
    the catalog, which has OpenAI's prices.
    """
    call = prepared.call
    request = prepared.request
    own_prices = call.config.prices
    if own_prices is None:
        return None
    facts = call.resolve(request.model).facts
    if request.model in own_prices:
        facts = facts._replace(prices=own_prices[request.model])
        usages = [usage._replace(cost=None) for usage in usages]
    elif not call.endpoint.serves_openai:
        facts = facts._replace(prices=None)
    return cost_of_request(request, call.endpoint, facts, usages, output)


def source_of_cost(prepared: PreparedRequest, usages: Iterable[Usage]) -> str:
    """Return who says what responses cost, for the log."""
    call = prepared.call
    own_prices = call.config.prices
    if own_prices and prepared.request.model in own_prices:
        return "CUSTOM_MODEL_PRICING_JSON"
    stated = [usage.cost is not None for usage in usages]
    if all(stated):
        return f"{call.endpoint.host} says so"
    if any(stated):
        return f"{call.endpoint.host} says some of it, the rest by OpenAI's prices"
    return "by OpenAI's prices"
