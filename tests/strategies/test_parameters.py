"""The parameters of a strategy: names, limits and defaults, and as a JSON object."""

import pytest
from pydantic import ValidationError

from settings.table import rows_of
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide
from strategies.parameters import (
    STRATEGY_NAMES,
    ParameterValves,
    StrategyParameters,
)


def test_defaults_are_as_specified() -> None:
    parameters = StrategyParameters()

    assert parameters.maximum_iterations == 6
    assert parameters.emit_intermediate_thoughts
    assert parameters.maximum_seconds == parameters.maximum_tokens == 0
    assert parameters.prompt_policy_overrides == parameters.instruction == ""
    assert parameters.model == "gpt-6.1-sol"
    assert parameters.guide == NO_GUIDE
    assert StrategyParameters(maximum_iterations=99).maximum_iterations == 30


VALID = [
    ("model", "gpt-5.2", "gpt-5.2"),
    ("instruction", "You sail.", "You sail."),
    ("prompt_policy_overrides", "In French.", "In French."),
    ("prompt_policy_overrides", {"extra_policy": "Ä"}, '{"extra_policy": "Ä"}'),
    ("context", "It froze.", "It froze."),
    ("context", {"title": "A", "content": "B"}, {"title": "A", "content": "B"}),
    ("context", ["A", {"content": "B"}], ["A", {"content": "B"}]),
    ("policy_style", "lean", "lean"),
    ("guide", "engineer", BUILT_IN_GUIDES["engineer"]),
    ("guide", {"systemPrompt": "You sail."}, Guide(system_prompt="You sail.")),
    ("guide", "", Guide(system_prompt="")),
    ("maximum_iterations", 9, 9),
    ("maximum_iterations", 99, 30),
    ("maximum_iterations", 0, 1),
    ("maximum_seconds", 60, 60),
    ("maximum_seconds", -1, 0),
    ("maximum_tokens", 1e99, 100_000_000),
    ("emit_intermediate_thoughts", False, False),
]


@pytest.mark.parametrize(("name", "value", "read"), VALID)
def test_each_parameter_is_read_from_json(
    name: str, value: object, read: object
) -> None:
    """Numbers are moved into their range; the others have their defaults (R5)."""
    given = StrategyParameters.model_validate({name: value})

    assert dict(given) == {**dict(StrategyParameters()), name: read}


def test_every_parameter_can_be_read() -> None:
    """A parameter without a valid example here would be one that is not tested."""
    names = {name for name, _, _ in VALID}

    assert names == set(StrategyParameters.model_fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", 5),
        ("model", ""),
        ("instruction", None),
        ("prompt_policy_overrides", ["A"]),
        ("policy_style", "short"),
        ("guide", "sailor"),
        ("guide", {"systemPrompt": 7}),
        ("guide", {"systemPrompt": "A.", "surprise": 1}),
        ("maximum_iterations", "many"),
        ("maximum_iterations", True),
        ("emit_intermediate_thoughts", "yes"),
    ],
)
def test_invalid_settings_are_refused(name: str, value: object) -> None:
    """The shell names it and takes the default."""
    with pytest.raises(ValidationError):
        StrategyParameters.model_validate({name: value})


def test_built_in_guides_are_three() -> None:
    expected = {
        "researcher": (None, ""),
        "engineer": (0.2, ""),
        "companion": (None, "sliding-window"),
    }
    read = {
        name: StrategyParameters.model_validate({"guide": name}).guide
        for name in BUILT_IN_GUIDES
    }
    assert all(guide.system_prompt for guide in read.values())
    assert {
        name: (guide.temperature, guide.memory_policy) for name, guide in read.items()
    } == expected


def test_both_strategies_of_the_specification_can_be_chosen() -> None:
    assert list(STRATEGY_NAMES) == ["gpt5_function_calling", "gpt5_react"]


def test_each_parameter_has_a_valve_with_its_default_and_bounds() -> None:
    """Only the context is a text there, and a folder of guides is no parameter."""
    given = ParameterValves.model_validate(
        {"MAXIMUM_ITERATIONS": 99, "PRESET": "engineer", "PRESETS_DIR": "/guides"}
    ).parameters()

    expected = {"maximum_iterations": 30, "guide": BUILT_IN_GUIDES["engineer"]}
    read = StrategyParameters.model_validate(given)
    assert dict(read) == {**dict(StrategyParameters(context="")), **expected}
    assert given.keys() == StrategyParameters.model_fields.keys()


def test_parameters_that_a_request_may_not_simply_set() -> None:
    """What costs money, and what says who the agent is and what it must not do."""
    rows = rows_of(StrategyParameters)
    assert {name: row.right for name, row in rows.items() if row.right} == {
        "instruction": "ruling",
        "prompt_policy_overrides": "ruling",
        "context": "ruling",
        "guide": "ruling",
        "maximum_iterations": "costly",
        "maximum_seconds": "costly",
        "maximum_tokens": "costly",
    }
