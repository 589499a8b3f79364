"""The parameters of a strategy, each a row: the key of AGENT_JSON and of a request, and
the valve of the Pipelines server.

Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
`context`, `maximum_iterations` and `emit_intermediate_thoughts` are specified
(docs/reference/specification.md, P9 and P42); the others are ours.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    StrictBool,
    StrictStr,
    ValidationInfo,
    field_validator,
)

from openai_responses.json_input import clamp_number
from openai_responses.loop.spending import Budget
from openai_responses.loop.tools import CallTexts
from settings.table import Row, StoredValves, row_field, rows_of, valve
from strategies.guard import TOOL_FAILED_TEXT
from strategies.guide import BUILT_IN_GUIDES, NO_GUIDE, Guide
from strategies.policy import PolicyStyle

STRATEGY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT-5 Function Calling",
    "gpt5_react": "GPT-5 ReAct",
}
"""The strategies by their ids. They are one loop under two names (R7)."""

_MAX_CALLS = 1000
"""The calls of one answer; 30 rounds of many parallel calls stay below it."""


class StrategyParameters(BaseModel):
    """What a strategy has to do, and the keys of AGENT_JSON.

    `maximum_iterations` counts the rounds that may call tools. `maximum_seconds`
    includes the model and the tools that run here. At a limit the model answers with
    what it has.
    """

    model_config = ConfigDict(frozen=True)

    model: StrictStr = row_field(
        "gpt-6.1-sol",
        Row(
            "The model of an agent, by any name that MODEL_ID can have. With the switch "
            "*Agent* it is the model of the chat.",
            pipelines="Model of both agents; the name can include an effort.",
            example="gpt-5.2-high",
            request_key="agent_model",
        ),
        min_length=1,
    )
    instruction: StrictStr = row_field(
        "",
        Row(
            "What an agent is for. The system prompt of the chat follows it.",
            pipelines="What the agent is and does; it precedes the policies.",
            example="You help the support team of an online shop.",
            right="ruling",
            request_key="instruction",
        ),
    )
    policy_style: PolicyStyle = row_field(
        "full",
        Row(
            "Length of the policies: `full`, `lean` (a sentence each), or `auto`, which "
            "depends on the model.",
            pipelines="Wording of the policies: `full` is detailed, `lean` is short and "
            "for newer models, `auto` depends on the model.",
        ),
    )
    prompt_policy_overrides: StrictStr = row_field(
        "",
        Row(
            "Changed policies: a text, which is added, or an object, which replaces "
            "some of them (docs/agent.md).",
            pipelines="Changes to the policies. Plain text is added after them. Example: "
            "`Answer in French.` A JSON object replaces individual ones, by the keys "
            "`persistence_policy`, `context_gathering_policy`, `uncertainty_policy`, "
            "`tool_preamble_policy` or `extra_policy`. Example: "
            '`{"tool_preamble_policy": "Say nothing before a call."}`.',
            right="ruling",
            request_key="prompt_policy_overrides",
        ),
    )
    context: StrictStr | dict[str, Any] | list[Any] | None = row_field(
        None,
        Row(
            "What an agent knows: a text, or a list of texts and of objects with "
            "`title`, `content` and `url`. They are sources below each answer.",
            pipelines="Facts that accompany every question, shown as a source; "
            "`context_gathering_policy` says how the agent finds more.",
            example="Our office hours are 9 to 17.",
            right="ruling",
            request_key="context",
        ),
    )
    guide: Guide = row_field(
        "",
        Row(
            "Who an agent is: `researcher`, `engineer`, `companion`, or an object with "
            "`systemPrompt`, `temperature`, `memoryPolicy` and `initialMemories`.",
            pipelines="A guide: who the agent is and how much of a chat it remembers: "
            "`researcher`, `engineer`, `companion`, or the name of a file in PRESETS_DIR "
            "without `.json`.",
            example="researcher",
            right="ruling",
        ),
        validate_default=True,
    )
    emit_intermediate_thoughts: StrictBool = row_field(
        True,
        Row(
            "Show what the model writes between calls of tools. Off: only the answer.",
            pipelines="Show what the model says before tool calls, as a thought. If off, "
            "only the answer is shown.",
            request_key="emit_intermediate_thoughts",
        ),
    )
    maximum_iterations: int = row_field(
        6,
        Row(
            "Maximum number of rounds that may call tools, 1 to 30; then the model "
            "answers with what it has.",
            pipelines="Maximum number of tool rounds in one answer, 1 to 30; then the "
            "model answers with what it has.",
            bounds=(1, 30),
            right="costly",
            request_key="maximum_iterations",
        ),
    )
    maximum_seconds: int = row_field(
        0,
        Row(
            "Time limit of an answer and its tools, excluding time waiting for people. "
            "0: none.",
            pipelines="Time limit of one answer in seconds, excluding Open WebUI's tools "
            "and approvals. 0: none.",
            bounds=(0, 86_400),
            right="costly",
        ),
    )
    maximum_tokens: int = row_field(
        0,
        Row(
            "Token limit of all rounds of an answer. 0: none.",
            pipelines="Token limit for all rounds of one answer. 0: none.",
            bounds=(0, 100_000_000),
            right="costly",
        ),
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

    @field_validator("*", mode="before")
    @classmethod
    def _move_into_range(cls, value: object, info: ValidationInfo) -> object:
        """Return a number, moved into its range (R5); raises ValueError."""
        bounds = PARAMETERS[str(info.field_name)].bounds
        if bounds is None:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("it must be a number")
        least, most = bounds
        return clamp_number(value, least, most, least)

    def budget(self, calls: int = _MAX_CALLS) -> Budget:
        """Return the limits of an answer, which may make so many `calls`."""
        return Budget(
            rounds=self.maximum_iterations,
            calls=calls,
            seconds=self.maximum_seconds,
            tokens=self.maximum_tokens,
        )

    def call_texts(self, calls: int = _MAX_CALLS) -> CallTexts:
        """Return what the model reads of a call that failed or was not made.

        Those about rounds and failures are specified
        (docs/reference/pipelines-server.md, "Texts for the model").
        """
        return CallTexts(
            failed=f"{TOOL_FAILED_TEXT}\n{{cause}}",
            rounds=f"Maximum iteration limit ({self.maximum_iterations}) reached. Cannot "
            "call tool '{tool}'. Please consider increasing the iteration limit.",
            calls=f"Call limit ({calls}) reached. Cannot call tool '{{tool}}'.",
            seconds=f"Time limit ({self.maximum_seconds:g} s) reached. Cannot call tool "
            "'{tool}'.",
            tokens=f"Token limit ({self.maximum_tokens}) reached. Cannot call tool "
            "'{tool}'.",
        )


PARAMETERS = rows_of(StrategyParameters)
"""The rows of the parameters, by their names."""
DEFAULTS = StrategyParameters()


def _valve_of(parameter: str, default: object = None) -> Any:
    """Return the valve of the Pipelines server that sets a parameter."""
    if default is None:
        default = StrategyParameters.model_fields[parameter].default
    return row_field(default, replace(PARAMETERS[parameter], parameter=parameter))


class ParameterValves(StoredValves):
    """The valves of the Pipelines server that set the parameters, in its order."""

    MODEL: str = _valve_of("model")
    INSTRUCTION: str = _valve_of("instruction")
    POLICY_STYLE: PolicyStyle = _valve_of("policy_style")
    PROMPT_POLICY_OVERRIDES: str = _valve_of("prompt_policy_overrides")
    CONTEXT: str = _valve_of("context", "")
    PRESET: str = _valve_of("guide")
    PRESETS_DIR: str = valve(
        "",
        "Folder with your own guides, as JSON files.",
        example="/app/presets",
    )
    EMIT_INTERMEDIATE_THOUGHTS: bool = _valve_of("emit_intermediate_thoughts")
    MAXIMUM_ITERATIONS: int = _valve_of("maximum_iterations")
    MAXIMUM_SECONDS: int = _valve_of("maximum_seconds")
    MAXIMUM_TOKENS: int = _valve_of("maximum_tokens")

    def parameters(self) -> dict[str, Any]:
        """Return what the valves say, by the names of the parameters."""
        rows = rows_of(type(self))
        return {
            rows[name].parameter: value for name, value in self if rows[name].parameter
        }
