"""The keys of the valves that hold a JSON object, with their ranges and defaults.

They are lower case, as keys of JSON objects are; the valves themselves are upper case.
docs/settings.md is generated from the descriptions.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shells.expert_keys import ExpertKeys
from shells.json_valve import read_json_valve
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
        "for notices about models that will be shut down, and for the size of "
        "llama.cpp's context.",
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


PLACE_NAMES = ("city", "region", "country", "timezone")


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

    @field_validator("user_location")
    @classmethod
    def _refuse_long_location(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        """Raise ValueError for more words than there are names of places."""
        if isinstance(value, str) and value.count(",") >= len(PLACE_NAMES):
            raise ValueError("more than four words")
        return value

    @field_validator("allowed_domains", "blocked_domains", mode="before")
    @classmethod
    def _split_domains(cls, value: object) -> object:
        """Return domains in one text, separated by commas, as a list."""
        return value.split(",") if isinstance(value, str) else value


class ImageOptions(BaseModel):
    """What IMAGE_GENERATION_OPTIONS can hold, by the API's names; unset is not sent."""

    model_config = ConfigDict(frozen=True)

    quality: Literal["auto", "low", "medium", "high", "xhigh", "max"] = Field(
        default="auto", description="A higher one is more expensive."
    )
    size: str = Field(
        default="auto", description="`WIDTHxHEIGHT` in pixels: `1536x1024`."
    )
    background: Literal["auto", "opaque", "transparent"] = Field(
        default="auto", description="`transparent` needs `png`, `webp`, `gif` or `svg`."
    )
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] = Field(
        default="png", description="The form of the file."
    )
    output_compression: int = Field(
        default=100, ge=0, le=100, description="Of `webp` and `jpeg`, 0 to 100."
    )
    model: str = Field(default="", description="The model that draws.")
    partial_images: int = Field(
        default=0, ge=0, le=3, description="Previews while an image is made, 0 to 3."
    )
    action: Literal["auto", "generate", "edit"] = Field(
        default="auto", description="Whether to make a new image or to change one."
    )
    complexity: Literal["low", "medium", "high"] | None = Field(
        default=None, description="How much is computed to plan the image."
    )
    input_fidelity: Literal["low", "high"] | None = Field(
        default=None, description="How closely a changed image keeps to its original."
    )
    moderation: Literal["auto", "low"] = Field(
        default="auto", description="How strictly images are moderated."
    )
    frame_count: int | None = Field(
        default=None, ge=1, description="Number of frames of a `gif`."
    )
    frame_duration_ms: int | None = Field(
        default=None, ge=10, description="Milliseconds of each frame of a `gif`."
    )
    svg: dict[str, Any] | None = Field(
        default=None, description="Settings of the model that writes an `svg`."
    )
    input_image_mask: dict[str, str] | None = Field(
        default=None, description="A mask, by `image_url` or `file_id`."
    )


SEARCH_VALVE = "WEB_SEARCH_OPTIONS"
_UNTIL_CORRECTED = "Chats that search are not answered until it is corrected."


@lru_cache(maxsize=8)
def read_expert_json(text: str) -> tuple[ExpertSettings, Sequence[str]]:
    """Return the settings of EXPERT_JSON, and what is wrong with them."""
    return read_json_valve("EXPERT_JSON", text, ExpertSettings)


@lru_cache(maxsize=8)
def read_search_options(text: str) -> tuple[WebSearchOptions, Sequence[str]]:
    """Return the options of WEB_SEARCH_OPTIONS, and what is wrong with them."""
    return read_json_valve(SEARCH_VALVE, text, WebSearchOptions, _UNTIL_CORRECTED)


@lru_cache(maxsize=8)
def read_file_search_options(text: str) -> tuple[FileSearchOptions, Sequence[str]]:
    """Return what FILE_SEARCH_VECTOR_STORES says, and what is wrong with it.

    It is a list of stores, or a JSON object that also has options.
    """
    if not text.strip().startswith("{"):
        return FileSearchOptions(vector_store_ids=tuple(comma_list(text))), ()
    return read_json_valve(
        "FILE_SEARCH_VECTOR_STORES", text, FileSearchOptions, _UNTIL_CORRECTED
    )


@lru_cache(maxsize=8)
def read_image_options(text: str) -> tuple[ImageOptions, Sequence[str]]:
    """Return the options of IMAGE_GENERATION_OPTIONS, and what is wrong with them."""
    return read_json_valve("IMAGE_GENERATION_OPTIONS", text, ImageOptions)
