"""What an administrator can set, and what a user can."""

import os
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from openai_responses.endpoint import DEFAULT_BASE_URL
from openai_responses.json_input import clamp_number

_LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_Summary = Literal["auto", "concise", "detailed", "disabled"]
_Tier = Literal["auto", "default", "flex", "priority", "fast", "ultrafast"]
_Choice = Literal["inherit", "on", "off"]


def _valve(default: object, text: str, *, secret: bool = False, **limits: Any) -> Any:
    """Return the field of a valve; the page shows `Default` instead of its default."""
    return Field(
        default=default,
        description=f"{text} {_default_sentence(default)}",
        json_schema_extra={"input": {"type": "password"}} if secret else None,
        **limits,
    )


def _default_sentence(default: object) -> str:
    """Return the last sentence of a description."""
    if isinstance(default, bool):
        return f"Default: {'on' if default else 'off'}."
    return f"Default: `{default}`." if default != "" else "Default: empty."


class Valves(BaseModel):
    """Settings of the administrator, in the order of the page."""

    model_config = ConfigDict(allow_inf_nan=False)

    # Key and address
    API_KEY: str = _valve(
        "",
        "Empty: the environment variable `OPENAI_API_KEY` of Open WebUI.",
        secret=True,
    )
    BASE_URL: str = _valve(
        DEFAULT_BASE_URL, "Address of the Responses API, with or without `/v1`."
    )
    ORGANIZATION: str = _valve("", "Organization to bill, if the key has several.")
    PROJECT: str = _valve("", "Project to bill, if the key has several.")
    EXTRA_HEADERS: str = _valve(
        "", 'Headers to add or replace: `{"X-Team": "blue"}`.', secret=True
    )
    AUTH: Literal["key", "bearer", "entra_id"] = _valve(
        "key",
        "How the key is sent: `key` as the server expects it, `bearer` as a bearer "
        "token. `entra_id` sends a token of Microsoft Entra ID instead.",
    )
    AUTH_SCOPE: str = _valve("", "Scope of Entra ID tokens. Empty: that of Azure.")
    FORWARD_USER_INFO: Literal["auto", "always", "never"] = _valve(
        "auto",
        "Send Open WebUI's headers about the user, if its "
        "ENABLE_FORWARD_USER_INFO_HEADERS is on; `auto`: not to OpenAI and Azure.",
    )
    COMPATIBILITY: Literal["auto", "openai", "strict"] = _valve(
        "auto",
        "`auto` and `openai` send what OpenAI knows, but not again what a server "
        "refused. `strict` sends only what every server knows.",
    )

    # Models
    MODEL_ID: str = _valve(
        "gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        "Models to offer, separated by commas; a name can end with an effort. `auto` "
        "lists the newest of each family, `gpt-5-auto` chooses one for each chat.",
    )
    FETCH_MODELS: bool = _valve(
        True,
        "`auto` in MODEL_ID lists only what the server offers for this key; notices "
        "use its days of shutdown.",
    )
    MODEL_OVERRIDES_JSON: str = _valve(
        "",
        'Corrections to what is known about models: `{"my-deployment": {"like": '
        '"gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = _valve(
        "gpt-6-luna",
        "Model for titles and other tasks, at its lowest effort. If empty, or "
        "unchanged at another server than OpenAI's: the chat's own.",
    )
    BACKGROUND_MODELS: str = _valve(
        "",
        "Models whose answers survive a broken connection: names or patterns "
        "(`*-pro`), separated by commas. OpenAI stores their requests and answers for "
        "30 days, which breaks zero data retention; never in `strict`.",
    )

    # What OpenAI's tools may do: search
    ENABLE_WEB_SEARCH: bool = _valve(
        False, "Offer OpenAI's web search in every chat. Searches are billed."
    )
    MAP_WEB_SEARCH: bool = _valve(
        True, "The page's Web Search switch means OpenAI's search, not Open WebUI's."
    )
    WEB_SEARCH_CONTEXT_SIZE: Literal["low", "medium", "high"] = _valve(
        "medium", "How much of the pages found the model reads. More costs more."
    )
    WEB_SEARCH_USER_LOCATION: str = _valve(
        "",
        "`city, region, country, timezone` (`Bern, BE, CH, Europe/Zurich`), or a JSON "
        "object of these.",
    )
    WEB_SEARCH_ALLOWED_DOMAINS: str = _valve(
        "", "Domains to search, with subdomains, separated by commas. Empty: all."
    )
    # ... pictures
    ENABLE_IMAGE_GENERATION: bool = _valve(
        False, "Let the model draw pictures; each is billed and stored."
    )
    IMAGE_GENERATION_OPTIONS: str = _valve(
        '{"partial_images": 2}',
        "A JSON object: `quality`, `size`, `background`, `output_format`, `model`, "
        "`partial_images` (previews, 0 to 3).",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = _valve(
        "auto",
        "How closely the model looks at attached pictures, unless the request says it. "
        "`low` costs less.",
    )
    # ... code
    ENABLE_CODE_INTERPRETER: bool = _valve(
        False,
        "Let the model run Python in a billed container at OpenAI. Its files are stored.",
    )
    # ... files
    FILE_SEARCH_VECTOR_STORES: str = _valve(
        "", "Up to two vector stores: `vs_1, vs_2`."
    )
    FILE_INPUT: Literal["off", "pdf", "all"] = _valve(
        "off",
        "Attached files that the model reads itself and whole. With `pdf` or `all` "
        "(documents), turn off the model's File Context, or Open WebUI sends their "
        "text again.",
    )
    # ... remote servers
    REMOTE_MCP_SERVERS_JSON: str = _valve(
        "",
        "Servers that OpenAI calls, as a JSON list of objects: `server_label`, "
        "`server_url` or `connector_id`, `authorization`, `headers`, `allowed_tools`, "
        "`require_approval` (users are asked unless it is `never`), "
        "`server_description`.",
        secret=True,
    )

    # Reasoning and history
    REASONING_SUMMARY: _Summary = _valve(
        "auto",
        "OpenAI gives summaries to verified organizations only; otherwise choose "
        "`disabled`.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = _valve(
        "conversation",
        "Where the model gets its encrypted reasoning back: nowhere, within an answer, "
        "or in the whole conversation (stored in the chat).",
    )
    PERSIST_TOOL_RESULTS: bool = _valve(
        True,
        "Send tool calls and results again in later turns. Off: not, nor the reasoning "
        "before them.",
    )
    HISTORY_CARRIER: Literal["output", "markers"] = _valve(
        "output",
        "Where a chat keeps what it does not show: in Open WebUI's stored output of "
        "each answer, or under keys of its own, with lines that copies of answers "
        "show. Both are read.",
    )
    STORE_ENCRYPTION_KEY: str = _valve(
        "",
        "A long random text that protects what chats store. After a change, older "
        "chats are read only in part. Empty: the server's WEBUI_SECRET_KEY.",
        secret=True,
    )
    STABLE_INSTRUCTIONS: Literal["auto", "on", "off"] = _valve(
        "auto",
        "Keep the first instructions of a chat and send changes (a date, a memory) "
        "with the next message: reasoning and the prompt cache stay valid. `auto`: "
        "from gpt-5.6 on.",
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = _valve(
        "chat",
        "Which requests share OpenAI's prompt cache: a chat's, a user's, or as OpenAI "
        "decides. Only a hash is sent.",
    )
    PROMPT_CACHE_DIAGNOSTICS: bool = _valve(
        False,
        "Log why OpenAI's prompt cache missed, from gpt-5.6 on.",
    )
    TRUNCATION: Literal["disabled", "auto"] = _valve(
        "disabled",
        "When a chat is too long, `auto` drops its oldest messages, with reasoning and "
        "the prompt cache; `disabled` shows an error.",
    )
    COMPACTION_TOKENS: int = _valve(
        0,
        "Let OpenAI compact a chat whose input has more tokens. 0: never; not with "
        "Azure.",
        ge=0,
    )
    MAX_OUTPUT_TOKENS: int = _valve(
        0, "Limit of one answer, with reasoning. 0: that of the model.", ge=0
    )

    # Open WebUI's tools
    PARALLEL_TOOL_CALLS: bool = _valve(True, "Let the model call tools in parallel.")
    MAX_FUNCTION_CALL_LOOPS: int = _valve(
        10, "Most rounds of tool calls before the model has to answer.", ge=1
    )
    MAX_TOOL_CALLS: int = _valve(100, "Most tool calls in one answer.", ge=1)
    TOOL_TIMEOUT_SECONDS: float = _valve(
        120,
        "Time limit of a tool call, without people's time; calls made at once have "
        "five times as long together.",
        gt=0,
    )
    TOOL_TIMEOUTS: str = _valve(
        "",
        "Other limits in seconds, for tools by name or pattern: `crawl_*: 600, render: "
        "1800`. Open WebUI's sub-agents and pictures have an hour.",
    )
    TOOL_OUTPUT_CHARACTERS: int = _valve(
        100_000, "The model gets the beginning and the end of a longer output.", ge=1000
    )
    TOOL_APPROVAL: str = _valve(
        "",
        "Rules `pattern=auto`, `ask` or `deny`, separated by commas: `delete_*=ask, "
        "shell=deny`; other tools follow the chat controls. A rule holds for a tool's "
        "name in the chat and its own, without a server's id.",
    )
    AUTO_NATIVE_TOOLS: bool = _valve(
        False, "Change Function Calling of models from Legacy to Native."
    )
    ENABLE_STRICT_TOOL_CALLING: bool = _valve(
        False, "Have OpenAI enforce the schemas of tools where they are simple."
    )

    # Users
    USER_MAY_CHANGE: str = _valve(
        "effort, summary, verbosity, web_search, code_interpreter, show_cost, "
        "log_level",
        "Settings that users may change, separated by commas; also `image_generation`, "
        "`service_tier` (expensive), `all`, `nothing`. Administrators change all.",
    )
    CALLER_MAY_SET: str = _valve(
        "",
        "What requests may set that is the administrator's, separated by commas: "
        "parameters, types of OpenAI's tools, fields (`mcp.server_url`); "
        "`admin:service_tier` for administrators alone.",
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = _valve(
        "off",
        "Whether users can, or must, set their own key, also for tasks. Administrators "
        "may always use this pipe's.",
    )
    USER_KEYS_GET: Literal["nothing", "headers", "all"] = _valve(
        "nothing",
        "What goes out with a user's own key: `headers` sends EXTRA_HEADERS, `all` "
        "also the remote MCP servers, with their tokens, and the vector stores.",
    )

    # Cost
    SHOW_COST: bool = _valve(
        False,
        "Show the cost of an answer in its last status line and usage: tokens and web "
        "searches only.",
    )
    CUSTOM_MODEL_PRICING_JSON: str = _valve(
        "",
        'US dollars per million tokens, instead of known prices: `{"my-model": '
        '{"input": 2, "cached": 0.5, "output": 8}}`.',
    )
    SERVICE_TIER: _Tier = _valve(
        "auto",
        "`flex` is slower and costs half, `fast` (or `priority`) double, `ultrafast` 3 "
        "to 6 times, if model and project have them.",
    )

    # Network
    ENABLE_STREAM: bool = _valve(
        True,
        "Off: each answer comes whole, for servers or organizations that may not "
        "stream.",
    )
    MAX_RETRIES: int = _valve(
        2, "How often a request that failed before any text is sent again, 0 to 5."
    )
    MAX_RETRY_WAIT_SECONDS: float = _valve(
        60, "If the server asks for a longer wait, the error is shown.", ge=0
    )
    CONNECT_TIMEOUT_SECONDS: float = _valve(
        30, "Time limit to open a connection.", gt=0
    )
    FIRST_EVENT_TIMEOUT_SECONDS: float = _valve(
        300, "Longest wait for an answer to begin, 30 to 900."
    )
    IDLE_TIMEOUT_SECONDS: float = _valve(
        300, "Longest silence within an answer, also in reasoning, 30 to 900."
    )
    TOTAL_TIMEOUT_SECONDS: float = _valve(
        0, "Limit of an answer, without tools' and people's time. 0: none.", ge=0
    )
    VERIFY_SSL: bool = _valve(
        True,
        "Check the server's certificate. Off is for tests only: others on the network "
        "can then read the key.",
    )
    CA_BUNDLE: str = _valve(
        "", "Path of a file of certificates to trust instead of the system's."
    )
    PROXY: str = _valve(
        "",
        "Address of an HTTP proxy, also with user and password. Empty: the "
        "environment's HTTPS_PROXY and NO_PROXY.",
        secret=True,
    )

    # Log
    AUDIT_LOG: bool = _valve(
        False,
        "Log one JSON line per request, success and error, without text of the chat. "
        "So does `OPENAI_GPT5_AUDIT_LOG=true` in the environment.",
    )
    LOG_LEVEL: _LogLevel = _valve(
        "INFO", "Lowest level in the server's log, which holds no key or chat text."
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        """Read stored words of an earlier version: both stood for the user."""
        return "user" if value in ("id", "email") else value

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        return clamp_number(value, 0, 5, 2)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        return clamp_number(value, 30, 900, 300)

    def effective_key(self) -> str:
        """Return the key to use; empty if there is none.

        As the default of the field, that of the environment would stand in the schema
        of the page.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is stored in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is sent again between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by valve or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the administrator or model."""

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = _valve(
        "inherit",
        "How long a model thinks. `max` is the most that it has; another effort that "
        "it lacks is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", _Summary] = _valve(
        "inherit", "Show a summary of the reasoning."
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = _valve(
        "inherit", "How long answers are."
    )
    WEB_SEARCH: _Choice = _valve("inherit", "Let the model search the web with OpenAI.")
    IMAGE_GENERATION: _Choice = _valve("inherit", "Let the model draw pictures.")
    CODE_INTERPRETER: _Choice = _valve("inherit", "Let the model run Python at OpenAI.")
    SERVICE_TIER: Literal["inherit", _Tier] = _valve(
        "inherit", "`flex` is cheaper and slower, `fast` and `ultrafast` cost more."
    )
    SHOW_COST: _Choice = _valve("inherit", "Show the cost of an answer.")
    LOG_LEVEL: Literal["inherit", _LogLevel] = _valve(
        "inherit",
        "What the server's log says about your chats: more than the administrator "
        "chose, never less.",
    )
    API_KEY: str = _valve(
        "",
        "Your own key for OpenAI, if allowed. It pays for your chats.",
        secret=True,
        max_length=2000,
    )
    SHOW_LOG_ON_ERROR: bool = _valve(
        False, "For administrators: show the log of a failed answer as a source."
    )
