"""The administrator's valves; any stored value loads.

A stored value that pydantic refuses would stop the whole Pipelines server from
starting, and the error message would quote the value. So numbers are moved into their
range, and any other invalid value becomes the default. Secrets are sealed on
assignment.
"""

import re
from typing import Any, Literal

from pydantic import (
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from gpt5_agent.shell.sealing import seal_secret, seal_values
from settings.shared_valves import SHARED, SharedValves
from settings.table import page_schema, valve
from strategies.parameters import DEFAULTS, RANGES

_PAGE_QUOTES = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"
_MARKDOWN_CODE = re.compile("`([^`]*)`")


def _plain_quotes(text: str) -> str:
    """Return Markdown with quotes for backticks: the page shows plain text."""
    return _MARKDOWN_CODE.sub(_PAGE_QUOTES, text)


class Valves(SharedValves):
    """Settings of the administrator; the page begins with the shared ones."""

    model_config = ConfigDict(
        json_schema_extra=page_schema("pipelines", SHARED, _plain_quotes)
    )

    # The model, its reasoning and its answers

    MODEL: str = valve(
        DEFAULTS.model,
        "Model of both agents; the name can include an effort.",
        example="gpt-5.2-high",
    )
    REASONING_EFFORT: Literal[
        "", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = valve(
        "",
        "How long the model thinks; if empty, MODEL decides.",
        then=("REASONING_SUMMARY",),
    )
    VERBOSITY: Literal["", "low", "medium", "high"] = valve(
        "",
        "How long answers are; if empty, the model decides.",
        then=("ENABLE_STREAM",),
    )

    # The agent

    INSTRUCTION: str = valve(
        "",
        "What the agent is and does; it precedes the policies.",
        example="You help the support team of an online shop.",
    )
    POLICY_STYLE: Literal["full", "lean", "auto"] = valve(
        DEFAULTS.policy_style,
        "Wording of the policies: `full` is detailed, `lean` is short and for newer "
        "models, `auto` depends on the model.",
    )
    PROMPT_POLICY_OVERRIDES: str = valve(
        "",
        "Changes to the policies. Plain text is added after them. Example: `Answer "
        "in French.` A JSON object replaces individual ones, by the keys "
        "`persistence_policy`, `context_gathering_policy`, `uncertainty_policy`, "
        "`tool_preamble_policy` or `extra_policy`. Example: "
        '`{"tool_preamble_policy": "Say nothing before a call."}`.',
    )
    CONTEXT: str = valve(
        "",
        "Facts that accompany every question, shown as a source; "
        "`context_gathering_policy` says how the agent finds more.",
        example="Our office hours are 9 to 17.",
    )
    PRESET: str = valve(
        "",
        "A guide: who the agent is and how much of a chat it remembers: "
        "`researcher`, `engineer`, `companion`, or the name of a file in PRESETS_DIR "
        "without `.json`.",
        example="researcher",
    )
    PRESETS_DIR: str = valve(
        "",
        "Folder with your own guides, as JSON files.",
        example="/app/presets",
    )
    EMIT_INTERMEDIATE_THOUGHTS: bool = valve(
        DEFAULTS.emit_intermediate_thoughts,
        "Show what the model says before tool calls, as a thought. If off, only the "
        "answer is shown.",
    )

    # Tools that run in this pipeline

    SANDBOX: bool = valve(
        False,
        "Let the model run Python and keep files in a sandbox without network "
        "access. If no sandbox works on this server, no such tool is offered, and "
        "the log and a notice above administrators' answers say why.",
    )
    SANDBOX_OPTIONS: str = valve(
        "",
        "A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of one chat, "
        "`wheels` (a folder of packages to import).",
        example='{"seconds": 60, "wheels": "/srv/wheels"}',
    )
    OPEN_WEBUI_URL: str = valve(
        "",
        "Address at which this server reaches Open WebUI, to read and store files; "
        "the server has to allow it.",
        example="http://open-webui:8080",
    )
    OPEN_WEBUI_API_KEY: str = valve(
        "",
        "API key of an Open WebUI account. Files that tools create are stored for "
        "its owner only; to read everyone's attached files, it must be an "
        "administrator's.",
        example="env:OPEN_WEBUI_API_KEY",
        secret=True,
    )
    DELEGATION: bool = valve(
        False,
        "Let the agent delegate tasks to other runs of itself, up to three at once. "
        "Only with tools that run here and need no approval, such as those of "
        "SANDBOX.",
        then=(
            "PARALLEL_TOOL_CALLS",
            "TOOL_TIMEOUTS",
            "TOOL_OUTPUT_CHARACTERS",
            "TOOL_APPROVAL",
        ),
    )

    # Cost

    MAXIMUM_ITERATIONS: int = valve(
        DEFAULTS.maximum_iterations,
        "Maximum number of tool rounds in one answer, 1 to 30; then the model "
        "answers with what it has.",
        bounds=RANGES["maximum_iterations"],
    )
    MAXIMUM_SECONDS: int = valve(
        DEFAULTS.maximum_seconds,
        "Time limit of one answer in seconds, excluding Open WebUI's tools and "
        "approvals. 0: none.",
        bounds=RANGES["maximum_seconds"],
    )
    MAXIMUM_TOKENS: int = valve(
        DEFAULTS.maximum_tokens,
        "Token limit for all rounds of one answer. 0: none.",
        bounds=RANGES["maximum_tokens"],
        then=(
            "COMPACTION_TOKENS",
            "VERIFY_SSL",
            "CA_BUNDLE",
            "PROXY",
        ),
    )

    COMPACTION_TOKENS: int = valve(
        200_000,
        "Let OpenAI compact the chat, also between two rounds, when its input has "
        "more tokens than this, or than half of the model's context window. 0: "
        "never.",
        bounds=(0, 10_000_000),
    )

    # Log and the rest

    DEBUG: bool = valve(
        False,
        "Log the arguments and outputs of tools, without secrets.",
        then=("EXPERT_JSON",),
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _repair_value(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, about: ValidationInfo
    ) -> Any:
        """Return a value that is valid, whatever was stored."""
        try:
            return validate(value)
        except ValidationError:
            return cls.model_fields[str(about.field_name)].default

    @model_serializer(mode="wrap")
    def _leave_unset_empty(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        """Give an unset text as null: Open WebUI's page saves no empty field."""
        values = serialize(self)
        return {name: None if value == "" else value for name, value in values.items()}

    @field_validator("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY")
    @classmethod
    def _seal(cls, value: str) -> str:
        """Return a secret in a form that may be shown."""
        return seal_secret(value)

    @field_validator("EXTRA_HEADERS")
    @classmethod
    def _seal_values(cls, value: str) -> str:
        """Return headers with their values in a form that may be shown."""
        return seal_values(value)
