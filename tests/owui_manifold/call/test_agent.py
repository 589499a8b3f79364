"""Which calls an agent answers, and what its names stand for."""

import asyncio
import json

import pytest

from openai_responses.transport.connections import Connections
from owui_manifold.call.agent import (
    answering_name,
    find_agent,
    read_agent_parameters,
    with_stated_parameters,
)
from owui_manifold.call.models import Listing, list_models
from owui_manifold.call.valves import Valves
from strategies.parameters import StrategyParameters

PARAMETERS = StrategyParameters(model="gpt-5.2")


def listed(**valves: str) -> dict[str, str]:
    names = "gpt5_function_calling, gpt5_function_calling-high, gpt5_react"
    given = Valves.model_validate({"MODEL_ID": names, **valves})
    models = asyncio.run(list_models(given, Listing(), Connections()))
    return {name: model.name for name, model in models.items()}


def test_agents_are_listed_under_names_of_their_own() -> None:
    """With an effort, if it is part of the name."""
    assert listed() == {
        "gpt5_function_calling": "GPT Agent",
        "gpt5_function_calling-high": "GPT Agent (high)",
        "gpt5_react": "GPT Agent (ReAct)",
    }


def test_administrators_name_agents_as_they_like() -> None:
    """The entry says nothing of the model, which is that of AGENT_JSON."""
    overrides = {"gpt5_react": {"name": "Ours"}}

    assert listed(MODEL_OVERRIDES_JSON=json.dumps(overrides))["gpt5_react"] == "Ours"
    assert listed(MODEL_OVERRIDES_JSON="{") == listed()  # the chat shows the mistake


@pytest.mark.parametrize(
    ("model", "answers", "is_agent"),
    [
        ("gpt5_react", "gpt-5.2", True),
        ("gpt5_function_calling-high", "gpt-5.2-high", True),
        ("gpt5_function_calling-fast", "gpt5_function_calling-fast", False),
        ("gpt-6-luna", "gpt-6-luna", False),
    ],
)
def test_names_stand_for_the_model_that_answers(
    model: str, answers: str, is_agent: bool
) -> None:
    """Rules about models are about that one."""
    agent = find_agent(model, PARAMETERS, is_switched=False)

    assert answering_name(model, PARAMETERS) == answers
    assert (agent is not None) is is_agent


def test_switch_changes_nothing_of_a_listed_agent() -> None:
    """It keeps its own strategy; any other model gets the first one."""
    react = find_agent("gpt5_react", PARAMETERS, is_switched=True)
    plain = find_agent("gpt-5.2", PARAMETERS, is_switched=True)

    assert react
    assert react.is_listed
    assert react.strategy == "gpt5_react"
    assert plain
    assert not plain.is_listed
    assert plain.strategy == "gpt5_function_calling"


@pytest.mark.parametrize(
    ("name", "own", "stated", "applied"),
    [
        ("maximum_iterations", 4, 2, 2),
        ("maximum_iterations", 4, 4, 4),
        ("maximum_iterations", 4, 9, 4),
        # 0 is no limit: a request does not remove one, but may set one.
        ("maximum_tokens", 0, 900, 900),
        ("maximum_tokens", 900, 0, 900),
        ("maximum_tokens", 0, 0, 0),
    ],
)
@pytest.mark.parametrize("is_opened", [False, True])
def test_request_lowers_a_limit_and_raises_none(
    name: str, own: int, stated: int, applied: int, *, is_opened: bool
) -> None:
    """Unless an administrator allows it."""
    agent = find_agent("gpt5_react", PARAMETERS, is_switched=False)
    assert agent

    changed, left_out = with_stated_parameters(
        agent, {name: own}, {name: stated}, [name] if is_opened else []
    )

    expected = stated if is_opened else applied
    assert dict(changed.parameters)[name] == expected
    assert left_out == ([name] if expected != stated else [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"maximum_iterations": 99}', ""),
        ("[]", "AGENT_JSON is not a JSON object, so its defaults apply."),
        ('{"guide": "sailor"}', "AGENT_JSON: `guide` cannot be 'sailor'."),
    ],
)
def test_invalid_agent_json_is_reported(text: str, problem: str) -> None:
    _, problems = read_agent_parameters(text)

    assert [line[: len(problem)] for line in problems] == ([problem] if problem else [])
