"""Valves of the pipeline that hold JSON: what they say, and what is wrong with them."""

import json

import pytest

from gpt5_agent.shell.valves import Valves, read_valve_settings
from sandbox.options import SandboxOptions
from settings.expert_keys import AgentExpertKeys


def test_empty_valves_are_the_defaults() -> None:
    """Nothing is wrong with them."""
    settings = read_valve_settings(Valves())

    assert settings.expert == AgentExpertKeys()
    assert settings.sandbox == SandboxOptions()
    assert settings.problems == ()


def test_one_retry_by_default() -> None:
    """As specified; the pipe has two."""
    assert AgentExpertKeys().max_retries == 1


def test_keys_hold_beside_the_defaults_of_others() -> None:
    valves = Valves(
        EXPERT_JSON=json.dumps({"max_retries": 4}),
        SANDBOX_OPTIONS=json.dumps({"seconds": 60, "wheels": "/srv/wheels"}),
    )

    settings = read_valve_settings(valves)

    assert settings.expert == AgentExpertKeys(max_retries=4)
    assert settings.sandbox == SandboxOptions(seconds=60, wheels="/srv/wheels")


@pytest.mark.parametrize(
    ("valve", "text", "words"),
    [
        ("EXPERT_JSON", '{"max_retires": 3}', "unknown names: max_retires"),
        ("EXPERT_JSON", '{"max_retries": 9}', "`max_retries` cannot be 9"),
        ("SANDBOX_OPTIONS", '{"memory_mb": 1}', "`memory_mb` cannot be 1"),
        ("SANDBOX_OPTIONS", "60", "is not a JSON object"),
        ("TOOL_TIMEOUTS", "default: soon", "'default: soon'"),
    ],
)
def test_problem_names_its_valve(valve: str, text: str, words: str) -> None:
    [problem] = read_valve_settings(Valves.model_validate({valve: text})).problems

    assert problem.startswith(valve)
    assert words in problem
