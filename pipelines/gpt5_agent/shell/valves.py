"""The administrator's valves; any stored value loads.

A stored value that pydantic refuses would stop the whole Pipelines server from
starting, and the error message would quote the value. So numbers are moved into their
range, and any other invalid value becomes the default. Secrets are sealed on
assignment.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from gpt5_agent.shell.sealing import SECRET_FORMS, seal_secret, seal_values
from openai_responses.endpoint import DEFAULT_BASE_URL
from openai_responses.json_input import clamp_number

_PAGE_QUOTES = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"
_MARKDOWN_CODE = re.compile("`([^`]*)`")
_PASSWORD: dict[str, Any] = {"input": {"type": "password"}}
_VALVE_RANGES: Mapping[str, tuple[int, int]] = {
    "TOOL_OUTPUT_CHARACTERS": (1000, 10_000_000),
    "MAXIMUM_ITERATIONS": (1, 30),
    "MAXIMUM_SECONDS": (0, 86_400),
    "MAXIMUM_TOKENS": (0, 100_000_000),
    "COMPACTION_TOKENS": (0, 10_000_000),
}


def _quote_for_page(schema: dict[str, Any]) -> None:
    """Put quotes in the place of backticks: the page shows descriptions as plain text.

    The docs, which are made of the same descriptions, show them as Markdown.
    """
    for valve in schema["properties"].values():
        valve["description"] = _MARKDOWN_CODE.sub(_PAGE_QUOTES, valve["description"])


class Valves(BaseModel):
    """Settings of the administrator; the page shows them in this order."""

    model_config = ConfigDict(json_schema_extra=_quote_for_page)

    # The key and the address

    API_KEY: str = Field(
        default="",
        description=f"Key for BASE_URL: {SECRET_FORMS} If empty, the environment's "
        "OPENAI_API_KEY is used. Example: `env:OPENAI_API_KEY`.",
        json_schema_extra=_PASSWORD,
    )
    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`; the server "
        f"has to allow any but OpenAI's. Example: `{DEFAULT_BASE_URL}`.",
    )
    ORGANIZATION: str = Field(
        default="", description="Organization to bill. Example: `org-abc`."
    )
    PROJECT: str = Field(
        default="", description="Project to bill. Example: `proj_abc`."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description="Additional headers, as a JSON object of texts; a value can be "
        f'{SECRET_FORMS} Example: `{{"X-Team": "env:TEAM_KEY"}}`.',
        json_schema_extra=_PASSWORD,
    )
    COMPATIBILITY: Literal["auto", "openai", "strict"] = Field(
        default="auto",
        description="`auto` and `openai` send what OpenAI supports, and drop what the "
        "server rejects. `strict` sends only what every server supports.",
    )

    # The model, its reasoning and its answers

    MODEL: str = Field(
        default="gpt-6.1-sol",
        description="Model of both agents; the name can include an effort. Example: "
        "`gpt-5.2-high`.",
    )
    REASONING_EFFORT: Literal[
        "", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="",
        description="How long the model thinks; if empty, MODEL decides.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the reasoning. OpenAI gives it to verified "
        "organizations only.",
    )
    VERBOSITY: Literal["", "low", "medium", "high"] = Field(
        default="",
        description="How long answers are; if empty, the model decides.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers. Turn this off for servers that cannot stream, or "
        "organizations that may not.",
    )

    # The agent

    INSTRUCTION: str = Field(
        default="",
        description="What the agent is and does; it precedes the policies. "
        "Example: `You help the support team of an online shop.`",
    )
    POLICY_STYLE: Literal["full", "lean", "auto"] = Field(
        default="full",
        description="Wording of the policies: `full` is detailed, `lean` is short and "
        "for newer models, `auto` depends on the model.",
    )
    PROMPT_POLICY_OVERRIDES: str = Field(
        default="",
        description="Changes to the policies. Plain text is added after them. Example: "
        "`Answer in French.` A JSON object replaces individual ones, by the keys "
        "`persistence_policy`, `context_gathering_policy`, `uncertainty_policy`, "
        "`tool_preamble_policy` or `extra_policy`. Example: "
        '`{"tool_preamble_policy": "Say nothing before a call."}`.',
    )
    CONTEXT: str = Field(
        default="",
        description="Facts that accompany every question, shown as a source; "
        "`context_gathering_policy` says how the agent finds more. Example: "
        "`Our office hours are 9 to 17.`",
    )
    PRESET: str = Field(
        default="",
        description="A guide: who the agent is and how much of a chat it remembers: "
        "`researcher`, `engineer`, `companion`, or the name of a file in PRESETS_DIR "
        "without `.json`. Example: `researcher`.",
    )
    PRESETS_DIR: str = Field(
        default="",
        description="Folder with your own guides, as JSON files. Example: "
        "`/app/presets`.",
    )
    EMIT_INTERMEDIATE_THOUGHTS: bool = Field(
        default=True,
        description="Show what the model says before tool calls, as a thought. If "
        "off, only the answer is shown.",
    )

    # Tools that run in this pipeline

    SANDBOX: bool = Field(
        default=False,
        description="Let the model run Python and keep files in a sandbox without "
        "network access. If no sandbox works on this server, no such tool is offered, "
        "and the log and a notice above administrators' answers say why.",
    )
    SANDBOX_OPTIONS: str = Field(
        default="",
        description="A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of "
        "one chat, `wheels` (a folder of packages to import). Example: "
        '`{"seconds": 60, "wheels": "/srv/wheels"}`.',
    )
    OPEN_WEBUI_URL: str = Field(
        default="",
        description="Address at which this server reaches Open WebUI, to read and store "
        "files; the server has to allow it. Example: `http://open-webui:8080`.",
    )
    OPEN_WEBUI_API_KEY: str = Field(
        default="",
        description="API key of an Open WebUI account. Files that tools create are "
        "stored for its owner only; to read everyone's attached files, it must be an "
        "administrator's. Example: `env:OPEN_WEBUI_API_KEY`.",
        json_schema_extra=_PASSWORD,
    )
    DELEGATION: bool = Field(
        default=False,
        description="Let the agent delegate tasks to other runs of itself, up to three "
        "at once. Only with tools that run here and need no approval, such as those of "
        "SANDBOX.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True,
        description="Let the model call tools in parallel.",
    )
    TOOL_TIMEOUTS: str = Field(
        default="default: 120",
        description="Time limits of tool calls in seconds, by name or pattern. Example: "
        "`default: 120, python_execute: 300`.",
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        description="Longest tool output that the model gets; the middle of a longer "
        "one is left out.",
    )
    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's approval: rules `pattern=auto`, `ask` "
        "or `deny`, separated by commas; they apply to Open WebUI's tools too. "
        "Example: `delete_*=ask, shell=deny`.",
    )

    # Cost

    MAXIMUM_ITERATIONS: int = Field(
        default=6,
        description="Maximum number of tool rounds in one answer, 1 to 30; then the "
        "model answers with what it has.",
    )
    MAXIMUM_SECONDS: int = Field(
        default=0,
        description="Time limit of one answer in seconds, excluding Open WebUI's tools "
        "and approvals. 0: none.",
    )
    MAXIMUM_TOKENS: int = Field(
        default=0,
        description="Token limit for all rounds of one answer. 0: none.",
    )

    COMPACTION_TOKENS: int = Field(
        default=200_000,
        description="Let OpenAI compact the chat, also between two rounds, when its "
        "input has more tokens than this, or than half of the model's context window. "
        "0: never.",
    )

    # The network

    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Turn this off for tests only: "
        "others on the network can then read the key, so the server has to allow it.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust. Example: "
        "`/etc/ssl/company.pem`.",
    )
    PROXY: str = Field(
        default="",
        description=f"Address of an HTTP proxy: {SECRET_FORMS} The server has to allow "
        "it. If empty, its environment's HTTPS_PROXY and NO_PROXY are used. Example: "
        "`http://10.0.0.1:3128`.",
        json_schema_extra=_PASSWORD,
    )

    # Log and the rest

    DEBUG: bool = Field(
        default=False,
        description="Log the arguments and outputs of tools, without secrets.",
    )
    EXPERT_JSON: str = Field(
        default="",
        description="A JSON object of rarely needed settings, such as timeouts, retries "
        "and what requests may set (docs/agent-settings.md lists them). Example: "
        '`{"max_retries": 3}`.',
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _repair_value(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, about: ValidationInfo
    ) -> Any:
        """Return a value that is valid, whatever was stored."""
        name = str(about.field_name)
        default = cls.model_fields[name].default
        if name in _VALVE_RANGES:
            return clamp_number(value, *_VALVE_RANGES[name], default)
        try:
            return validate(value)
        except ValidationError:
            return default

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
