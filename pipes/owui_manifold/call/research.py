"""Models whose name ends in `-research`: they search the web for long.

One request does it: the web search without a limit on what it returns, a high effort,
and a ceiling. OpenAI's tools are all that it has, because each round of other tools
would begin the ceiling anew.
"""

from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.json_input import JsonObject, as_mapping
from openai_responses.models.resolve import (
    ResolvedModel,
    takes_hosted_tool,
    takes_search_budget,
)
from owui_manifold.call.callers import LENGTH_KEYS
from owui_manifold.call.context import Call
from owui_manifold.call.valves import Valves

RESEARCH_TOOL_CALLS = 60
"""The searches, page views and other calls of one answer."""
RESEARCH_OUTPUT_TOKENS = 64_000
"""Of one answer, with its reasoning."""

_NO_MODEL = "{} cannot research: the model does not support long web searches."
_NO_SERVER = (
    "{} cannot research: the model's server does not offer OpenAI's web search."
)
_NO_SEARCH = "{} cannot research: you may not use web search."
RESEARCH_BEGINNING = (
    f"Research takes several minutes: at most {RESEARCH_TOOL_CALLS} searches and "
    f"{RESEARCH_OUTPUT_TOKENS:,} tokens of reasoning and answer."
)
"""The line with which an answer begins."""
_SET_BY_NAME = (*LENGTH_KEYS, "max_tool_calls", "reasoning_effort")


def check_research(call: Call) -> None:
    """Raise InvalidRequest, with a message, for a model that cannot research here."""
    model = call.model
    if not model.research or call.caller.task:
        return
    if not call.endpoint.has_own_services:
        raise InvalidRequest(_NO_SERVER.format(model.name))
    has_search = takes_hosted_tool(model, "web_search")
    if not has_search or not takes_search_budget(model):
        raise InvalidRequest(_NO_MODEL.format(model.name))
    if call.account and "web_search" in call.account.limits.forbidden_tools():
        raise InvalidRequest(_NO_SEARCH.format(model.name), remedy="rule")


def research_body(body: JsonObject, model: ResolvedModel) -> dict[str, Any]:
    """Return the caller's keys without those that the ending of the name decides."""
    if not model.research:
        return dict(body)
    kept = {key: value for key, value in body.items() if key not in _SET_BY_NAME}
    reasoning = as_mapping(body.get("reasoning"))
    return {**kept, "reasoning": {**reasoning, "effort": model.effort}}


def research_ceiling(valves: Valves) -> dict[str, int]:
    """Return the ceiling of an answer; lower limits of the administrator hold."""
    tokens = RESEARCH_OUTPUT_TOKENS
    if valves.MAX_OUTPUT_TOKENS:
        tokens = min(tokens, valves.MAX_OUTPUT_TOKENS)
    return {
        "max_output_tokens": tokens,
        "max_tool_calls": min(RESEARCH_TOOL_CALLS, valves.MAX_TOOL_CALLS),
    }
