"""The valves of the pipe, for administrators and for users.

Settings of the connection to the Responses API.

Settings of the models that are offered.

Settings of what is asked of an answer.

Settings of the tools that OpenAI runs.

Settings of the tools that run in Open WebUI.

Settings of what is stored in a chat.

Settings of retries, of waiting, of the way to the server.

Settings of what users may do, of what the log tells.

What the administrator can set, what a user can.
"""

import os
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from openai_responses.endpoint import DEFAULT_BASE_URL


class ConnectionValves(BaseModel):
    """Where requests go, with which key."""

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

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()


class ModelValves(BaseModel):
    """Which models there are, what they cost."""

    MODEL_ID: str = Field(
        default="gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        description="Models to offer, separated by commas. An effort can be part of "
        "the name: `gpt-5.2-high`, `o3-mini-high`, `gpt-5-thinking-high`. `auto` is "
        "the newest of each family, `gpt-5-auto` chooses a model for each chat.",
    )
    FETCH_MODELS: bool = Field(
        default=True,
        description="For `auto`: ask the server now and then which models the key may "
        "use, and leave out the others. What MODEL_ID names itself always stays.",
    )
    MODEL_OVERRIDES_JSON: str = Field(
        default="",
        description="What models can do, over what this pipe knows, as a JSON object: "
        '`{"my-deployment": {"like": "gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = Field(
        default="gpt-6-luna",
        description="Model for titles, tags and other small tasks, at its lowest "
        "effort. Empty, or on another server than OpenAI's: the chat's own.",
    )
    SHOW_COST: bool = Field(
        default=False,
        description="Show what an answer cost, in its last status line and its usage, "
        "by the prices of the standard tier.",
    )
    CUSTOM_MODEL_PRICING_JSON: str = Field(
        default="",
        description="Prices in US dollars for a million tokens, over those that this "
        'pipe knows: `{"my-model": {"input": 2, "cached": 0.5, "output": 8}}`.',
    )


class AnswerValves(BaseModel):
    """What a request says where its caller says nothing."""

    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: each answer comes as one "
        "piece, for servers or organisations that may not stream.",
    )
    BACKGROUND_MODELS: str = Field(
        default="",
        description="Models whose answers run in the background at OpenAI, separated "
        "by commas, `*` for any text: `*-pro, *-deep-research`. A broken connection is "
        "then taken up where it broke, and Stop cancels the answer there. OpenAI "
        "stores such a request and its answer (`store: true`, for 30 days by default), "
        "which breaks zero data retention. Never with COMPATIBILITY `strict`.",
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
    PERSIST_TOOL_RESULTS: bool = Field(
        default=True,
        description="Give what tools were asked and returned to the model in later "
        "turns, too. Off: calls, outputs and the reasoning before them leave together "
        "once the answer is there.",
    )
    STABLE_INSTRUCTIONS: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Send the instructions of a chat as they were first given, and "
        "what changes in them (a date, a memory) with the next message, so that "
        "reasoning and the prompt cache are not lost. They are then kept in the chat, "
        "where its owner can read them. `auto`: for models that forget otherwise.",
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = Field(
        default="chat",
        description="Which requests share OpenAI's prompt cache: those of a chat, all "
        "of a user, or whatever OpenAI finds alike. Only a hash is sent.",
    )
    SERVICE_TIER: Literal["auto", "default", "flex", "priority"] = Field(
        default="auto",
        description="`flex` is cheaper but slower, `priority` faster but dearer, where "
        "the model and the project have them.",
    )
    TRUNCATION: Literal["disabled", "auto"] = Field(
        default="disabled",
        description="`auto` drops the oldest messages when a chat outgrows the model; "
        "reasoning and the prompt cache are then lost. `disabled` shows an error.",
    )
    COMPACTION_TOKENS: int = Field(
        default=0,
        ge=0,
        description="Let OpenAI compact a chat once its input has more tokens than "
        "this; what came before is then sent no more. 0 never does; Azure cannot.",
    )
    MAX_OUTPUT_TOKENS: int = Field(
        default=0,
        ge=0,
        description="Most tokens of one answer, reasoning included; 0 leaves it to the "
        "model.",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = Field(
        default="auto",
        description="How closely the model looks at pictures that people attach; `low` "
        "costs less. A request that says it itself wins.",
    )
    FILE_INPUT: Literal["off", "pdf", "all"] = Field(
        default="off",
        description="Which attached files the model reads itself, each time whole: "
        "none, PDFs, or all documents. `off` leaves them to Open WebUI's retrieval. "
        "With the others that goes on as well: turn off the capability File Context "
        "of the model, or its text is paid for twice.",
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        """Accept two older words; both mean `user`."""
        return "user" if value in ("id", "email") else value

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is kept in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is given back between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"


class HostedValves(BaseModel):
    """What the model may have OpenAI do."""

    ENABLE_WEB_SEARCH: bool = Field(
        default=False,
        description="Offer OpenAI's web search to every chat. It is billed per search.",
    )
    MAP_WEB_SEARCH: bool = Field(
        default=True,
        description="Let the Web Search switch of the page mean OpenAI's search "
        "instead of Open WebUI's own.",
    )
    WEB_SEARCH_CONTEXT_SIZE: Literal["low", "medium", "high"] = Field(
        default="medium",
        description="How much of the pages that it finds the model reads; more costs more.",
    )
    WEB_SEARCH_USER_LOCATION: str = Field(
        default="",
        description="Where users are, as `city, region, country, timezone`, for "
        "example `Bern, BE, CH, Europe/Zurich`, or as a JSON object of these.",
    )
    WEB_SEARCH_ALLOWED_DOMAINS: str = Field(
        default="",
        description="Search only these domains and those below them, separated by "
        "commas. Empty: all.",
    )
    FILE_SEARCH_VECTOR_STORES: str = Field(
        default="",
        description="Ids of vector stores at OpenAI to search in, separated by commas.",
    )
    ENABLE_IMAGE_GENERATION: bool = Field(
        default=False,
        description="Let the model draw and change pictures with OpenAI's tool, which "
        "is billed by picture. They are stored as files of the user who asked.",
    )
    IMAGE_GENERATION_OPTIONS: str = Field(
        default='{"partial_images": 2}',
        description="What OpenAI's tool takes, as a JSON object: `quality`, `size`, "
        "`background`, `output_format`, `model`; `partial_images` (0 to 3) is how often "
        "an unfinished picture is shown.",
    )
    ENABLE_CODE_INTERPRETER: bool = Field(
        default=False,
        description="Let the model run Python in a container at OpenAI, which is billed "
        "by container. What the code leaves is stored as files of the user who asked.",
    )
    REMOTE_MCP_SERVERS_JSON: str = Field(
        default="",
        description="Remote MCP servers that OpenAI calls for the model, as a JSON list "
        "of objects: `server_label`, `server_url` or `connector_id`, `authorization`, "
        "`headers`, `allowed_tools`, `require_approval`, `server_description`. Unless "
        "`require_approval` says `never`, people are asked before each call.",
        json_schema_extra={"input": {"type": "password"}},
    )


class ToolValves(BaseModel):
    """Who runs Open WebUI's tools, within which limits."""

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
        default=120,
        gt=0,
        allow_inf_nan=False,
        description="How long a single call of a tool may take; all calls that the "
        "model made at once may take five times that. The time that people take to "
        "answer counts in neither limit.",
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
        "setting in the chat's controls counts. Where calls are left to "
        "Open WebUI, `deny` leaves the tool out, and the other rules do not count.",
    )
    AUTO_NATIVE_TOOLS: bool = Field(
        default=False,
        description="Set Function Calling to Native in the settings of a model that "
        "has it at Legacy, as soon as somebody uses it. Nothing else is changed.",
    )
    ENABLE_STRICT_TOOL_CALLING: bool = Field(
        default=False,
        description="Have OpenAI hold arguments to the tools' schemas, where a schema "
        "can be put in the strict form.",
    )


class StorageValves(BaseModel):
    """How kept items lie in a chat."""

    HISTORY_CARRIER: Literal["markers", "output"] = Field(
        default="markers",
        description="Where a chat keeps what it does not show: under a key of its own, "
        "named by invisible lines in the answers, or in Open WebUI's stored output of "
        "each answer, without such lines. Both are always read.",
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


class NetworkValves(BaseModel):
    """How patient the pipe is, over which network."""

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
        description="Longest time for a whole answer, without that of tools and of "
        "people; 0 is no limit.",
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

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        """Accept a text or a number, and limit it to 0 to 5."""
        return clamp(value, 0, 5, 1)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        """Accept a text or a number, and limit it to 30 to 900."""
        return clamp(value, 30, 900, 300)


def clamp(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; what is no number is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default


LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class OversightValves(BaseModel):
    """What users may do on their own."""

    USER_MAY_CHANGE: str = Field(
        default="effort, summary, verbosity, web_search, code_interpreter, show_cost, "
        "log_level",
        description="Which of their settings users may change, separated by commas; "
        "also `image_generation` and `service_tier`, which can cost much, or `all`, or "
        "`nothing`. Administrators may change all of theirs.",
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = Field(
        default="off",
        description="Whether users put a key of their own into their settings: not at "
        "all, if they like, or before they can chat. Tasks such as titles use it, too; "
        "administrators may always use the key of this pipe.",
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

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by valve or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"


class Valves(
    OversightValves,
    NetworkValves,
    StorageValves,
    ToolValves,
    HostedValves,
    AnswerValves,
    ModelValves,
    ConnectionValves,
):
    """Settings of the administrator, the fields of the last base first.

    That is how pydantic orders them, and the page shows them as they are ordered.
    """


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
    WEB_SEARCH: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model search the web with OpenAI."
    )
    IMAGE_GENERATION: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model draw pictures with OpenAI."
    )
    CODE_INTERPRETER: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model run Python at OpenAI."
    )
    SERVICE_TIER: Literal["inherit", "auto", "default", "flex", "priority"] = Field(
        default="inherit",
        description="`flex` is cheaper but slower, `priority` faster but dearer.",
    )
    SHOW_COST: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Show what an answer cost."
    )
    LOG_LEVEL: Literal["inherit", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = (
        Field(
            default="inherit",
            description="What the pipe writes to the server's log about your chats.",
        )
    )
    API_KEY: str = Field(
        default="",
        description="Your own key for OpenAI, if an administrator allows one: your "
        "chats are then billed to its account.",
        json_schema_extra={"input": {"type": "password"}},
    )
    SHOW_LOG_ON_ERROR: bool = Field(
        default=False,
        description="For administrators: show the log of an answer that failed, as a "
        "source below it.",
    )
