"""The parameters of a strategy: the seed's names, limits and defaults.

Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
`maximum_iterations` and `emit_intermediate_thoughts` are the contract of the seed
(gpt5_dify_plugins_design, section 4.3); the others are ours.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import ValidationError

from openai_responses.json_input import clamp_number, parse_json_object
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide
from strategies.policy import POLICY_STYLES, PolicyStyle

STRATEGY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT-5 Function Calling",
    "gpt5_react": "GPT-5 ReAct",
}
"""The strategies by their ids. They are one loop under two names (R7)."""

MAX_ITERATIONS = 30
MAX_SECONDS = 86_400
MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class StrategyParameters:
    """What a strategy has to do.

    `maximum_iterations` counts the rounds that may call tools, 1 to 30.
    `maximum_seconds` includes the model and the tools that run here; 0 means no limit,
    as for `maximum_tokens`. At a limit the model answers with what it has.
    """

    model: str = ""
    instruction: str = ""
    prompt_policy_overrides: str = ""
    policy_style: PolicyStyle = "full"
    guide: Guide = NO_GUIDE
    maximum_iterations: int = 6
    maximum_seconds: float = 0.0
    maximum_tokens: int = 0
    emit_intermediate_thoughts: bool = True

    @property
    def rounds(self) -> int:
        """The number of rounds that may call tools, within its range."""
        return max(1, min(self.maximum_iterations, MAX_ITERATIONS))


class ParameterProblem(NamedTuple):
    """A parameter that keeps its default, and why; an empty name means all."""

    name: str
    reason: str


def read_strategy_parameters(
    text: str, defaults: StrategyParameters = StrategyParameters()
) -> tuple[StrategyParameters, list[ParameterProblem]]:
    """Return the parameters in a JSON object, and what is wrong with others.

    Missing and invalid ones are those of `defaults`. Numbers are moved into their range.
    """
    if not text.strip():
        return defaults, []
    given = parse_json_object(text)
    if given is None:
        return defaults, [ParameterProblem("", "it is not a JSON object")]
    values: dict[str, Any] = {}
    problems: list[ParameterProblem] = []
    for name, value in given.items():
        read = _PARAMETER_READERS.get(name)
        if read is None:
            problems.append(ParameterProblem(name, "there is no such parameter"))
            continue
        try:
            values[name] = read(value)
        except ValueError as error:
            problems.append(ParameterProblem(name, str(error)))
    return replace(defaults, **values), problems


def _read_text(value: object) -> str:
    """Return a text; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("it must be a text")
    return value


def _read_overrides(value: object) -> str:
    """Return policy overrides: a text, or a JSON object as its text."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return _read_text(value)


def _read_policy_style(value: object) -> PolicyStyle:
    """Return a style of policies; raises ValueError."""
    for style in POLICY_STYLES:
        if value == style:
            return style
    raise ValueError(f"it must be one of {', '.join(POLICY_STYLES)}")


def _read_guide(value: object) -> Guide:
    """Return a guide: the name of a built-in one, or its fields; raises ValueError."""
    if value in ("", None):
        return NO_GUIDE
    if isinstance(value, str) and value in BUILT_IN_GUIDES:
        return BUILT_IN_GUIDES[value]
    if not isinstance(value, Mapping):
        raise ValueError(f"it must be an object or one of {', '.join(BUILT_IN_GUIDES)}")
    try:
        return Guide.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{where}: {first['msg']}") from None


def _read_count(least: int, most: int) -> Callable[[object], int]:
    """Return what reads a whole number and moves it into its range."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"it must be a number from {least} to {most}")
        return clamp_number(value, least, most, least)

    return read


def _read_flag(value: object) -> bool:
    """Return true or false; raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


_PARAMETER_READERS: Mapping[str, Callable[[object], object]] = {
    "model": _read_text,
    "instruction": _read_text,
    "prompt_policy_overrides": _read_overrides,
    "policy_style": _read_policy_style,
    "guide": _read_guide,
    "maximum_iterations": _read_count(1, MAX_ITERATIONS),
    "maximum_seconds": _read_count(0, MAX_SECONDS),
    "maximum_tokens": _read_count(0, MAX_TOKENS),
    "emit_intermediate_thoughts": _read_flag,
}
"""How each parameter is read from JSON; all names of StrategyParameters."""
