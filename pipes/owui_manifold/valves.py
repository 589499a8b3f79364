"""What the administrator and the user can set."""

import os
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from openai_responses.endpoint import DEFAULT_BASE_URL

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Valves(BaseModel):
    """Settings of the administrator."""

    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`. Change it "
        "for a proxy or another server that offers `POST /responses`.",
    )
    API_KEY: str = Field(
        default="",
        description="Key for that server. Empty: the variable `OPENAI_API_KEY` of "
        "Open WebUI's own environment is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
    ORGANIZATION: str = Field(
        default="",
        description="Organisation to bill, if the key belongs to several.",
    )
    PROJECT: str = Field(
        default="", description="Project to bill, if the key belongs to several."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description="More headers for every request, as a JSON object of texts: "
        '`{"X-Team": "blue"}`. They win over those that this pipe sends itself.',
        json_schema_extra={"input": {"type": "password"}},
    )
    COMPATIBILITY: Literal["openai", "strict"] = Field(
        default="openai",
        description="`strict` sends only what every server of the Responses API "
        "knows; choose it when BASE_URL is not OpenAI or Azure.",
    )
    MODEL_ID: str = Field(
        default="gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        description="Models to offer, separated by commas. An effort can be part of "
        "the name: `gpt-5.2-high`, `o3-mini-high`, `gpt-5-thinking-high`.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: each answer comes as one "
        "piece, for servers or organisations that may not stream.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the model's reasoning. OpenAI gives it to "
        "verified organisations only; choose `disabled` if yours is not.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = Field(
        default="conversation",
        description="How long the model remembers its encrypted reasoning: not at "
        "all, between the tool calls of one answer, or through the whole "
        "conversation (stored in the chat).",
    )
    TOOL_EXECUTION: Literal["pipe", "open_webui"] = Field(
        default="pipe",
        description="Who runs Open WebUI's tools: this pipe, side by side and within "
        "limits, or Open WebUI, one after the other with its own approvals that last.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True, description="Let the model ask for several tools at once."
    )
    MAX_FUNCTION_CALL_LOOPS: int = Field(
        default=10,
        ge=1,
        description="How many rounds of tools one answer may take; then the model "
        "answers with what it has.",
    )
    MAX_TOOL_CALLS: int = Field(
        default=100, ge=1, description="How many calls of tools one answer may make."
    )
    TOOL_TIMEOUT_SECONDS: float = Field(
        default=120, gt=0, allow_inf_nan=False, description="For a single call."
    )
    TOOL_BATCH_TIMEOUT_SECONDS: float = Field(
        default=600,
        gt=0,
        allow_inf_nan=False,
        description="For all calls that the model made at once. The time that people "
        "take to answer counts in neither limit.",
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        ge=1000,
        description="Longest output of a tool that the model gets; of a longer one it "
        "gets the beginning and the end.",
    )
    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's consent, as `pattern=auto`, `ask` or "
        "`deny`, separated by commas: `delete_*=ask, shell=deny`. For the others the "
        "setting in the chat's controls counts.",
    )
    ENABLE_STRICT_TOOL_CALLING: bool = Field(
        default=False,
        description="Have OpenAI hold arguments to the tools' schemas, where a schema "
        "can be put in the strict form.",
    )
    STORE_ENCRYPTION: Literal["off", "on"] = Field(
        default="off",
        description="Encrypt what this pipe stores in a chat. The host keeps the "
        "text, the reasoning summaries and the tool cards of an answer in clear all "
        "the same (its `output` items), and whoever gets a shared or exported chat "
        "gets those. A changed key makes stored reasoning unreadable; the chats go "
        "on without it.",
    )
    STORE_ENCRYPTION_KEY: str = Field(
        default="",
        description="A long random text, the key for STORE_ENCRYPTION. Empty: the "
        "server's own WEBUI_SECRET_KEY is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
    MAX_RETRIES: int = Field(
        default=1,
        description="How often a request that failed before its first word is sent "
        "again, 0 to 5.",
    )
    MAX_RETRY_WAIT_SECONDS: float = Field(
        default=60,
        ge=0,
        allow_inf_nan=False,
        description="Longest wait before such a retry. When the server asks for a "
        "longer one, the error is shown at once.",
    )
    CONNECT_TIMEOUT_SECONDS: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="How long a connection may take to come about.",
    )
    FIRST_EVENT_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may take to begin its answer, 30 to 900.",
    )
    IDLE_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may be silent in the middle of an answer, "
        "30 to 900. Long reasoning without a summary is silent for minutes.",
    )
    TOTAL_TIMEOUT_SECONDS: float = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description="Longest time for a whole answer; 0 is no limit.",
    )
    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Off only for a test: anybody on "
        "the way could then read the key.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust instead of the "
        "system's, for example those of a company's proxy.",
    )
    PROXY: str = Field(
        default="",
        description="Address of an HTTP proxy, with user and password if it wants "
        "them. Empty: HTTPS_PROXY and NO_PROXY of the environment are obeyed.",
        json_schema_extra={"input": {"type": "password"}},
    )
    AUDIT_LOG: bool = Field(
        default=False,
        description="Write one JSON line for each request, success and error to the "
        "server's log, without a word of what was said. The environment's "
        "`OPENAI_GPT5_AUDIT_LOG=true` does the same.",
    )
    LOG_LEVEL: LogLevel = Field(
        default="INFO",
        description="What this pipe writes to the server's log, from this level up. "
        "Keys and what was said are never written.",
    )

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        """Take a text or a number and bring it into 0 to 5, as the seed does."""
        return clamped(value, 0, 5, 1)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        """Take a text or a number and bring it into 30 to 900, as the seed does."""
        return clamped(value, 30, 900, 300)

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is kept in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is given back between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by valve or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the model or administrator."""

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="inherit",
        description="How long a reasoning model thinks. An effort that the chosen "
        "model does not have is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", "auto", "concise", "detailed", "disabled"] = (
        Field(default="inherit", description="Show a summary of the reasoning.")
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = Field(
        default="inherit", description="How long answers are."
    )
    LOG_LEVEL: Literal["inherit", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = (
        Field(
            default="inherit",
            description="What the pipe writes to the server's log about your chats.",
        )
    )
    SHOW_LOG_ON_ERROR: bool = Field(
        default=False,
        description="For administrators: show the log of an answer that failed, as a "
        "source below it.",
    )


def clamped(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; what is no number is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default
