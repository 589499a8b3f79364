"""What an answer cost, where the administrator or the user wants to see it."""

from dataclasses import replace

from openai_responses.errors import InvalidRequest
from openai_responses.overrides import resolve_overridden
from openai_responses.prices import cost_of_run, read_prices
from openai_responses.run_events import RunEnded
from owui_manifold.job import Job, overrides_of

_STANDARD_TIERS = (None, "auto", "default")


def priced(job: Job, ended: RunEnded) -> RunEnded:
    """Return the end of a run with its cost, if it is shown and can be known.

    The prices are those of the standard tier; valves that cannot be read leave only a
    line in the log, because the answer is there.
    """
    valves, request = job.asked.valves, job.request
    own_choice = job.asked.user_valves.SHOW_COST
    shown = valves.SHOW_COST if own_choice == "inherit" else own_choice == "on"
    if not shown or ended.usage is None:
        return ended
    if request.service_tier not in _STANDARD_TIERS:
        return ended
    try:
        own = read_prices(valves.CUSTOM_MODEL_PRICING_JSON)
        facts = resolve_overridden(request.model, overrides_of(valves)).facts
    except InvalidRequest as error:
        job.asked.log.line("WARNING", str(error))
        return ended
    prices = own.get(request.model, facts.prices)
    return replace(ended, cost=cost_of_run(ended.usage, prices, ended.output))
