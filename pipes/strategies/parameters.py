"""The parameters of a strategy: names, limits and defaults.

Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
`context`, `maximum_iterations` and `emit_intermediate_thoughts` are specified
(docs/reference/specification.md, P9 and P42); the others are ours.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
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

RANGES: Mapping[str, tuple[int, int]] = {
    "maximum_iterations": (1, 30),
    "maximum_seconds": (0, 86_400),
    "maximum_tokens": (0, 100_000_000),
}
"""The least and the greatest value of a parameter."""


class StrategyParameters(BaseModel):
    """What a strategy has to do, and the keys of AGENT_JSON.

    `maximum_iterations` counts the rounds that may call tools. `maximum_seconds`
    includes the model and the tools that run here. At a limit the model answers with
    what it has.
    """

    model_config = ConfigDict(frozen=True)

    model: StrictStr = Field(
        default="gpt-6.1-sol",
        min_length=1,
        description="The model of an agent, by any name that MODEL_ID can have. With "
        "the switch *Agent* it is the model of the chat.",
    )
    instruction: StrictStr = Field(
        default="",
        description="What an agent is for. The system prompt of the chat follows it.",
    )
    prompt_policy_overrides: StrictStr = Field(
        default="",
        description="Changed policies: a text, which is added, or an object, which "
        "replaces some of them (docs/agent.md).",
    )
    context: StrictStr | dict[str, Any] | list[Any] | None = Field(
        default=None,
        description="What an agent knows: a text, or a list of texts and of objects "
        "with `title`, `content` and `url`. They are sources below each answer.",
    )
    policy_style: PolicyStyle = Field(
        default="full",
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
        default=6,
        description="Maximum number of rounds that may call tools, 1 to 30; then the "
        "model answers with what it has.",
    )
    maximum_seconds: int = Field(
        default=0,
        description="Time limit of an answer and its tools, excluding time waiting "
        "for people. 0: none.",
    )
    maximum_tokens: int = Field(
        default=0,
        description="Token limit of all rounds of an answer. 0: none.",
    )
    emit_intermediate_thoughts: StrictBool = Field(
        default=True,
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

    @field_validator(*RANGES, mode="before")
    @classmethod
    def _move_into_range(cls, value: object, info: ValidationInfo) -> int:
        """Return a number, moved into its range (R5); raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("it must be a number")
        least, most = RANGES[str(info.field_name)]
        return clamp_number(value, least, most, least)


DEFAULTS = StrategyParameters()
