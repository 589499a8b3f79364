"""The keys of the pipe's valves that hold a JSON object, each a row.

They are lower case, as keys of JSON objects are; the valves themselves are upper case.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from settings.expert_keys import ExpertKeys
from settings.table import key
from shells.valve_texts import comma_list, read_json_valve


class PipeExpertKeys(ExpertKeys):
    """What EXPERT_JSON can hold in the pipe: what hardly any server needs to change."""

    total_timeout_seconds: float = key(
        0, "Time limit of an answer, excluding tools and approvals. 0: none.", ge=0
    )
    max_retry_wait_seconds: float = key(
        60,
        "Longest wait before a retry that a server may ask for. If it asks for "
        "more, the error is shown.",
        ge=0,
    )
    flex_falls_back: bool = key(
        False,
        "Answer at the standard tier, at twice the price, if the `flex` tier has "
        "no capacity. Off: the answer ends with a message.",
    )
    user_keys_get: Literal["nothing", "headers", "all"] = key(
        "nothing",
        "What is sent along with a user's own key: `headers` sends EXTRA_HEADERS, "
        "`all` also the remote MCP servers, with their tokens, and the vector "
        "stores.",
    )
    code_memory: Literal["1g", "4g", "16g", "64g"] = key(
        "1g",
        "Memory of OpenAI's container for Python. A container costs $0.03 for each "
        "GB.",
    )
    background_store: bool | None = key(
        True,
        "What `store` is for BACKGROUND_MODELS: `true`, `false`, or `null` to send "
        "none. `false` is for projects with zero data retention "
        "(docs/background.md).",
    )
    background_window: Literal["", "2h", "8h"] = key(
        "",
        "How long answers of BACKGROUND_MODELS and of names that end in "
        "`-research` may take: `2h` costs 30% less, `8h` 40%, for tokens of the "
        "standard tier. They run in the background then, and appear at once when "
        "they are complete. If empty, they are answered as soon as possible.",
    )
    fetch_models: bool = key(
        True,
        "Ask the model's server which models it offers: for `auto` in MODEL_ID, for "
        "notices about models that will be shut down, and for the size of "
        "llama.cpp's context.",
    )
    stable_instructions: Literal["auto", "on", "off"] = key(
        "auto",
        "Keep the first instructions of a chat and send changes (a date, a memory) "
        "with the next message, so that reasoning and the prompt cache stay valid. "
        "`auto`: from gpt-5.6 on.",
    )
    strict_tool_calling: bool = key(
        False, "Have OpenAI enforce the schemas of tools that are simple enough."
    )
    prompt_cache_diagnostics: bool = key(
        False, "Log why OpenAI's prompt cache missed, from gpt-5.6 on."
    )
    entra_scope: str = key(
        "", "Scope of Microsoft Entra ID tokens. If empty, Azure's own scope is used."
    )


class FileSearchOptions(BaseModel):
    """What an object in FILE_SEARCH_VECTOR_STORES can hold, by the API's names."""

    model_config = ConfigDict(frozen=True)

    vector_store_ids: tuple[str, ...] = key((), "The stores to search.")
    max_num_results: int | None = key(None, "How many results.", bounds=(1, 50))
    filters: dict[str, Any] | None = key(
        None, "An object that compares attributes of files."
    )
    ranking_options: dict[str, Any] | None = key(
        None, "An object: `ranker`, `score_threshold`."
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

    search_context_size: Literal["low", "medium", "high"] = key(
        "medium", "How much of the pages found the model reads; more is more expensive."
    )
    user_location: str | dict[str, str] = key(
        "",
        "Where people are: `city, region, country, timezone` (`Bern, BE, CH, "
        "Europe/Zurich`), or an object with these keys.",
    )
    allowed_domains: tuple[str, ...] = key(
        (),
        "The only domains to search, with their subdomains; at most 100.",
        max_length=100,
    )
    blocked_domains: tuple[str, ...] = key(
        (),
        "Domains to exclude; at most 100. Some results have still contained their "
        "pages.",
        max_length=100,
    )
    external_web_access: bool = key(
        True, "Read pages live. Off: only from OpenAI's cache."
    )
    return_token_budget: Literal["default", "unlimited"] = key(
        "default",
        "How much text a search may return; `unlimited` is for long research and "
        "is more expensive.",
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

    quality: Literal["auto", "low", "medium", "high", "xhigh", "max"] = key(
        "auto", "Quality of the image; a higher one is more expensive."
    )
    size: str = key("auto", "`WIDTHxHEIGHT` in pixels: `1536x1024`.")
    background: Literal["auto", "opaque", "transparent"] = key(
        "auto", "`transparent` needs `png`, `webp`, `gif` or `svg`."
    )
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] = key(
        "png", "Format of the file."
    )
    output_compression: int = key(
        100, "Compression of `webp` and `jpeg` in percent.", bounds=(0, 100)
    )
    model: str = key("", "The model that draws.")
    partial_images: int = key(0, "Previews while an image is made.", bounds=(0, 3))
    action: Literal["auto", "generate", "edit"] = key(
        "auto", "Whether to make a new image or to change one."
    )
    complexity: Literal["low", "medium", "high"] | None = key(
        None, "How much work goes into planning the image."
    )
    input_fidelity: Literal["low", "high"] | None = key(
        None, "How closely a changed image keeps to its original."
    )
    moderation: Literal["auto", "low"] = key(
        "auto", "How strictly images are moderated."
    )
    frame_count: int | None = key(None, "Number of frames of a `gif`.", ge=1)
    frame_duration_ms: int | None = key(
        None, "Milliseconds of each frame of a `gif`.", ge=10
    )
    svg: dict[str, Any] | None = key(
        None, "Settings of the model that writes an `svg`."
    )


SEARCH_VALVE = "WEB_SEARCH_OPTIONS"
_UNTIL_CORRECTED = "Chats that search are not answered until it is corrected."


@lru_cache(maxsize=8)
def read_expert_json(text: str) -> tuple[PipeExpertKeys, Sequence[str]]:
    """Return the settings of EXPERT_JSON, and what is wrong with them."""
    return read_json_valve("EXPERT_JSON", text, PipeExpertKeys)


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
