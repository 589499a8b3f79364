"""The keys of EXPERT_JSON and of WEB_SEARCH_OPTIONS, with their ranges and defaults.

They are lower case, as keys of JSON objects are; the valves themselves are upper case.
docs/settings.md is generated from the descriptions.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shells.expert_keys import ExpertKeys
from shells.valve_words import comma_list


class ExpertSettings(ExpertKeys):
    """What EXPERT_JSON can hold: settings that hardly any server needs to change."""

    total_timeout_seconds: float = Field(
        default=0,
        ge=0,
        description="Time limit of an answer, excluding tools and approvals. 0: none.",
    )
    max_retries: int = Field(
        default=2,
        ge=0,
        le=5,
        description="How often a request that failed before any text is retried, "
        "0 to 5.",
    )
    max_retry_wait_seconds: float = Field(
        default=60,
        ge=0,
        description="Longest wait before a retry that a server may ask for. If it asks "
        "for more, the error is shown.",
    )
    flex_falls_back: bool = Field(
        default=False,
        description="Answer at the standard tier, at twice the price, if the `flex` "
        "tier has no capacity. Off: the answer ends with a message.",
    )
    caller_may_set: str = Field(
        default="",
        description="What requests may set although it is reserved for administrators, "
        "separated by commas: parameters, types of OpenAI's tools, fields "
        "(`mcp.server_url`); `admin:service_tier` opens a name for administrators' "
        "requests only (docs/parameters.md).",
    )
    user_keys_get: Literal["nothing", "headers", "all"] = Field(
        default="nothing",
        description="What is sent along with a user's own key: `headers` sends "
        "EXTRA_HEADERS, `all` also the remote MCP servers, with their tokens, and the "
        "vector stores.",
    )
    code_memory: Literal["1g", "4g", "16g", "64g"] = Field(
        default="1g",
        description="Memory of OpenAI's container for Python. A container costs $0.03 "
        "for each GB.",
    )
    background_store: bool | None = Field(
        default=True,
        description="What `store` is for BACKGROUND_MODELS: `true`, `false`, or `null` "
        "to send none. `false` is for projects with zero data retention "
        "(docs/background.md).",
    )
    background_window: Literal["", "2h", "8h"] = Field(
        default="",
        description="How long answers of BACKGROUND_MODELS and of names that end in "
        "`-research` may take: `2h` costs 30 % less, `8h` 40 %, for tokens of the "
        "standard tier. They run in the background then, and appear at once when they "
        "are complete. If empty, they are answered as soon as possible.",
    )
    fetch_models: bool = Field(
        default=True,
        description="Ask the server which models it offers: for `auto` in MODEL_ID, "
        "and for notices about models that will be shut down.",
    )
    stable_instructions: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Keep the first instructions of a chat and send changes (a date, a "
        "memory) with the next message, so that reasoning and the prompt cache stay "
        "valid. `auto`: from gpt-5.6 on.",
    )
    strict_tool_calling: bool = Field(
        default=False,
        description="Have OpenAI enforce the schemas of tools that are simple enough.",
    )
    prompt_cache_diagnostics: bool = Field(
        default=False,
        description="Log why OpenAI's prompt cache missed, from gpt-5.6 on.",
    )
    entra_scope: str = Field(
        default="",
        description="Scope of Microsoft Entra ID tokens. If empty, Azure's own scope "
        "is used.",
    )


class FileSearchOptions(BaseModel):
    """What an object in FILE_SEARCH_VECTOR_STORES can hold, by the API's names."""

    model_config = ConfigDict(frozen=True)

    vector_store_ids: tuple[str, ...] = Field(
        default=(), description="The stores to search."
    )
    max_num_results: int | None = Field(
        default=None, ge=1, le=50, description="How many results, 1 to 50."
    )
    filters: dict[str, Any] | None = Field(
        default=None, description="An object that compares attributes of files."
    )
    ranking_options: dict[str, Any] | None = Field(
        default=None, description="An object: `ranker`, `score_threshold`."
    )

    @field_validator("vector_store_ids", mode="before")
    @classmethod
    def _split_stores(cls, value: object) -> object:
        """Return stores in one text, separated by commas, as a list."""
        return comma_list(value) if isinstance(value, str) else value


class WebSearchOptions(BaseModel):
    """What WEB_SEARCH_OPTIONS can hold, by the API's names."""

    model_config = ConfigDict(frozen=True)

    search_context_size: Literal["low", "medium", "high"] = Field(
        default="medium",
        description="How much of the pages found the model reads; more is more "
        "expensive.",
    )
    user_location: str | dict[str, str] = Field(
        default="",
        description="Where people are: `city, region, country, timezone` (`Bern, BE, "
        "CH, Europe/Zurich`), or an object with these keys.",
    )
    allowed_domains: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="The only domains to search, with their subdomains; at most 100.",
    )
    blocked_domains: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Domains to exclude; at most 100. Some results have still contained "
        "their pages.",
    )
    external_web_access: bool = Field(
        default=True,
        description="Whether pages are read live. Off: only from OpenAI's cache.",
    )
    return_token_budget: Literal["default", "unlimited"] = Field(
        default="default",
        description="How much text a search may return; `unlimited` is for long "
        "research and is more expensive.",
    )

    @field_validator("allowed_domains", "blocked_domains", mode="before")
    @classmethod
    def _split_domains(cls, value: object) -> object:
        """Return domains in one text, separated by commas, as a list."""
        return value.split(",") if isinstance(value, str) else value
