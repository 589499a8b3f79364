"""Valves of the pipeline that hold JSON: what they say, and what is wrong with them."""

import json

import pytest

from gpt5_agent.shell.json_valves import (
    AgentExpertSettings,
    find_valve_problems,
    read_expert_settings,
    read_sandbox_options,
)
from gpt5_agent.shell.valves import Valves
from toolbox.sandbox.options import SandboxOptions


def test_empty_valves_are_the_defaults() -> None:
    """Nothing is wrong with them."""
    valves = Valves()

    reading = read_expert_settings(valves)
    assert reading.settings == AgentExpertSettings()
    assert read_sandbox_options(valves) == SandboxOptions()
    assert find_valve_problems(valves, reading) == []


def test_keys_hold_beside_the_defaults_of_others() -> None:
    """Beside the defaults of the others."""
    valves = Valves(
        EXPERT_JSON=json.dumps({"max_retries": 4}),
        SANDBOX_OPTIONS=json.dumps({"seconds": 60, "wheels": "/srv/wheels"}),
    )

    assert read_expert_settings(valves).settings == AgentExpertSettings(max_retries=4)
    options = SandboxOptions(seconds=60, wheels="/srv/wheels")
    assert read_sandbox_options(valves) == options


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
def test_what_is_wrong_is_told(valve: str, text: str, words: str) -> None:
    """By the name of its valve."""
    valves = Valves.model_validate({valve: text})
    [problem] = find_valve_problems(valves, read_expert_settings(valves))

    assert problem.startswith(valve)
    assert words in problem
