"""The parameters of a strategy: names, limits and defaults.

Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
`context`, `maximum_iterations` and `emit_intermediate_thoughts` are specified
(docs/reference/specification.md, P9 and P42); the others are ours.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictStr,
    ValidationInfo,
    field_validator,
)

from openai_responses.json_input import clamp_number
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide
from strategies.policy import PolicyStyle

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
    context: object = None
    """What the agent knows: a text, an object, or a list of them (`read_context`)."""
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


_RANGES: Mapping[str, tuple[int, int]] = {
    "maximum_iterations": (1, MAX_ITERATIONS),
    "maximum_seconds": (0, MAX_SECONDS),
    "maximum_tokens": (0, MAX_TOKENS),
}
"""The least and the greatest value of a parameter."""
_DEFAULTS = StrategyParameters()


class StrategySettings(BaseModel):
    """The parameters as an administrator writes them, in one JSON object."""

    model: StrictStr = Field(
        default="gpt-6.1-sol",
        min_length=1,
        description="The model of an agent, by any name that MODEL_ID can have. With "
        "the switch *Agent* it is the model of the chat.",
    )
    instruction: StrictStr = Field(
        default=_DEFAULTS.instruction,
        description="What an agent is for. The system prompt of the chat follows it.",
    )
    prompt_policy_overrides: StrictStr = Field(
        default=_DEFAULTS.prompt_policy_overrides,
        description="Changed policies: a text, which is added, or an object, which "
        "replaces some of them (docs/agent.md).",
    )
    context: StrictStr | dict[str, Any] | list[Any] | None = Field(
        default=None,
        description="What an agent knows: a text, or a list of texts and of objects "
        "with `title`, `content` and `url`. They are sources below each answer.",
    )
    policy_style: PolicyStyle = Field(
        default=_DEFAULTS.policy_style,
        description="Length of the policies: `full`, `lean` (a sentence each), or "
        "`auto`, which depends on the model.",
    )
    guide: Guide = Field(
        default="",
        validate_default=True,
        description="Who an agent is: `researcher`, `engineer`, `companion`, or an "
        "object with `systemPrompt`, `temperature`, `memoryPolicy` and "
        "`initialMemories`.",
    )
    maximum_iterations: int = Field(
        default=_DEFAULTS.maximum_iterations,
        description="Maximum number of rounds that may call tools, 1 to 30; then the "
        "model answers with what it has.",
    )
    maximum_seconds: int = Field(
        default=int(_DEFAULTS.maximum_seconds),
        description="Time limit of an answer and its tools, excluding time waiting "
        "for people. 0: none.",
    )
    maximum_tokens: int = Field(
        default=_DEFAULTS.maximum_tokens,
        description="Token limit of all rounds of an answer. 0: none.",
    )
    emit_intermediate_thoughts: StrictBool = Field(
        default=_DEFAULTS.emit_intermediate_thoughts,
        description="Show what the model writes between calls of tools. Off: only "
        "the answer.",
    )

    # Validators of types, `Annotated[int, BeforeValidator(...)]`, would keep up to eight
    # replaced copies of this file in memory: `typing` remembers the last 128 of them.
    @field_validator("prompt_policy_overrides", mode="before")
    @classmethod
    def _overrides_as_text(cls, value: object) -> object:
        """Return policy overrides that are an object as its text."""
        if isinstance(value, Mapping):
            return json.dumps(value, ensure_ascii=False)
        return value

    @field_validator("guide", mode="before")
    @classmethod
    def _find_guide(cls, value: object) -> object:
        """Return the built-in guide that a name stands for; raises ValueError."""
        if value in ("", None):
            return NO_GUIDE
        if not isinstance(value, str):
            return value
        if value not in BUILT_IN_GUIDES:
            raise ValueError("there is no such guide")
        return BUILT_IN_GUIDES[value]

    @field_validator(*_RANGES, mode="before")
    @classmethod
    def _move_into_range(cls, value: object, info: ValidationInfo) -> int:
        """Return a number, moved into its range (R5); raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("it must be a number")
        least, most = _RANGES[str(info.field_name)]
        return clamp_number(value, least, most, least)

    def parameters(self) -> StrategyParameters:
        """Return what a strategy works with."""
        return StrategyParameters(
            model=self.model,
            instruction=self.instruction,
            prompt_policy_overrides=self.prompt_policy_overrides,
            context=self.context,
            policy_style=self.policy_style,
            guide=self.guide,
            maximum_iterations=self.maximum_iterations,
            maximum_seconds=self.maximum_seconds,
            maximum_tokens=self.maximum_tokens,
            emit_intermediate_thoughts=self.emit_intermediate_thoughts,
        )
