"""Which calls an agent answers, and with which parameters.

A strategy is listed like a model, under its own name in MODEL_ID. What answers then is
the model of AGENT_JSON, so its facts, limits and prices count. The switch "Agent" of the
composer makes an agent of the model that the chat has.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from openai_responses.models.resolve import (
    REASONING_EFFORTS,
    ResolvedModel,
    resolve_model,
)
from shells.json_valve import read_json_valve
from strategies.parameters import (
    STRATEGY_NAMES,
    StrategyParameters,
    StrategySettings,
)

_DISPLAY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT agent (plans, uses tools)",
    "gpt5_react": "GPT agent (ReAct)",
}
"""What the list of models shows, by the names in MODEL_ID."""

_STRATEGY_OF_SWITCH = "gpt5_function_calling"


class AgentMode(NamedTuple):
    """How an agent answers a call."""

    strategy: str
    parameters: StrategyParameters
    is_listed: bool
    """Whether it was chosen as a model; else the switch is on."""


class ReadAgent(NamedTuple):
    """What AGENT_JSON says, and what is wrong with it, for administrators."""

    parameters: StrategyParameters
    problems: tuple[str, ...]


@lru_cache(maxsize=8)
def read_agent_parameters(text: str) -> ReadAgent:
    """Return the parameters of AGENT_JSON; what cannot be read has its default."""
    settings, problems = read_json_valve("AGENT_JSON", text, StrategySettings)
    return ReadAgent(settings.parameters(), tuple(problems))


def add_agents(
    models: Mapping[str, ResolvedModel], parameters: StrategyParameters
) -> dict[str, ResolvedModel]:
    """Return the administrator's models with the agents: names for their model.

    An entry of an agent's name among the `models` counts as far as it says how the agent
    is called.
    """
    model = resolve_model(parameters.model, models)
    agents: dict[str, ResolvedModel] = {}
    for strategy, name in _DISPLAY_NAMES.items():
        renamed = models.get(strategy)
        shown_name = renamed.name if renamed else name
        agents[strategy] = model._replace(name=shown_name)
    return {**models, **agents}


def find_agent(
    model: str, parameters: StrategyParameters, *, is_switched: bool
) -> AgentMode | None:
    """Return how an agent answers a call of `model`; None if none does."""
    strategy = _strategy_of(model)
    if strategy:
        return AgentMode(strategy, parameters, is_listed=True)
    if is_switched:
        return AgentMode(_STRATEGY_OF_SWITCH, parameters, is_listed=False)
    return None


def answering_name(model: str, parameters: StrategyParameters) -> str:
    """Return the name of the model that answers, the one of AGENT_JSON for an agent.

    Rules about models are about this one: the name of an agent evades none.
    """
    strategy = _strategy_of(model)
    if not strategy:
        return model
    return parameters.model + model.removeprefix(strategy)


def _strategy_of(model: str) -> str:
    """Return the strategy that a name stands for, if any; it can end with an effort."""
    strategy, _, effort = model.partition("-")
    is_name = strategy in STRATEGY_NAMES and effort in ("", *REASONING_EFFORTS)
    return strategy if is_name else ""
