"""Which calls an agent answers, and with which parameters.

A strategy is listed like a model, under its own name in MODEL_ID. What answers then is
the model of AGENT_JSON, so its facts, limits and prices count. The switch "Agent" of the
composer makes an agent of the model that the chat has.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from openai_responses.json_input import JsonObject
from openai_responses.models.resolve import (
    REASONING_EFFORTS,
    ResolvedModel,
    resolve_model,
)
from shells.valve_messages import PIPE_SHELL, valve_error
from shells.valve_texts import read_json_valve
from strategies.parameters import (
    DEFAULTS,
    PARAMETERS,
    STRATEGY_NAMES,
    StrategyParameters,
)

_DISPLAY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT Agent",
    "gpt5_react": "GPT Agent (ReAct)",
}
"""What the list of models shows, by the names in MODEL_ID."""

_STRATEGY_OF_SWITCH = "gpt5_function_calling"

COSTLY_PARAMETERS = [name for name, row in PARAMETERS.items() if row.right == "costly"]
"""What a request may lower, but raise only if an administrator allows it."""

RULING_PARAMETERS = [name for name, row in PARAMETERS.items() if row.right == "ruling"]
"""What an administrator rules an agent by: no request replaces or empties it, unless an
administrator allows it."""

CALLER_PARAMETERS = [name for name in PARAMETERS if name != "model"]
"""What a request may state: custom parameters of a model of the workspace."""


class AgentMode(NamedTuple):
    """How an agent answers a call."""

    strategy: str
    parameters: StrategyParameters
    is_listed: bool
    """Whether it was chosen as a model; else the switch is on."""


@lru_cache(maxsize=8)
def read_agent_parameters(text: str) -> tuple[StrategyParameters, Sequence[str]]:
    """Return the parameters of AGENT_JSON, and what is wrong with them.

    What cannot be read has its default.
    """
    return read_json_valve("AGENT_JSON", text, StrategyParameters)


def add_agents(
    models: Mapping[str, ResolvedModel], parameters: StrategyParameters
) -> dict[str, ResolvedModel]:
    """Return the administrator's models with the agents: names for their model.

    Of an entry of `models` for an agent only the name counts: it is the agent's then.
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


def check_agent_model(agent: AgentMode, model: ResolvedModel) -> None:
    """Raise InvalidRequest if the model of a listed agent cannot call tools."""
    if agent.is_listed and not model.facts.functions:
        problem = f"AGENT_JSON: the model {model.id} cannot call tools"
        raise valve_error(problem, PIPE_SHELL, '{"model": "gpt-6.1-sol"}')


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
    if strategy not in STRATEGY_NAMES:
        return ""
    if effort and effort not in REASONING_EFFORTS:
        return ""
    return strategy


def stated_parameters(body: JsonObject) -> dict[str, Any]:
    """Return the parameters of an agent that a request states, as far as they are valid."""
    stated: dict[str, Any] = {}
    for name in CALLER_PARAMETERS:
        if body.get(name) is None:
            continue
        try:
            parameters = StrategyParameters.model_validate({name: body[name]})
        except ValidationError:
            continue
        stated[name] = dict(parameters)[name]
    return stated


def with_stated_parameters(
    agent: AgentMode,
    stored: Mapping[str, Any],
    stated: Mapping[str, Any],
    opened: Collection[str],
) -> tuple[AgentMode, list[str]]:
    """Return an agent with what is stored with its model and what a request states.

    What an administrator `stored` replaces AGENT_JSON. A request can lower limits, and
    say what an administrator says nothing about; `caller_may_set` opens more. Returns
    with it the names of what is left out of the request.
    """
    set_up = agent.parameters.model_copy(update=stored)
    set_values = dict(set_up)
    nothing_set = dict(DEFAULTS)
    changes: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in stated.items():
        own = set_values[name]
        if name in opened or name not in (*COSTLY_PARAMETERS, *RULING_PARAMETERS):
            changes[name] = value
        elif name in COSTLY_PARAMETERS:
            # The lower one of two limits, of which 0 is none.
            limits = [limit for limit in (value, own) if limit > 0]
            changes[name] = min(limits, default=0)
        elif own == nothing_set[name]:
            changes[name] = value
        if changes.get(name, own) != value:
            left_out.append(name)
    return agent._replace(parameters=set_up.model_copy(update=changes)), left_out
