"""What an administrator can set, and what a user can."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, field_validator

from openai_responses.endpoint import bare_key
from openai_responses.redaction import hide_keys
from owui_manifold.call.expert import PipeExpertKeys
from settings.old_valves import old_names
from settings.shared_valves import SHARED, SharedValves
from settings.table import page_schema, valve
from shells.endpoint_valves import environment_key
from shells.valve_texts import comma_list

_LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_Summary = Literal["auto", "concise", "detailed", "disabled"]
_Tier = Literal["auto", "default", "flex", "priority", "fast", "ultrafast"]
_FileInput = Literal["off", "pdf", "all"]
_Choice = Literal["inherit", "on", "off"]


class Valves(SharedValves):
    """Settings of the administrator, in the order of the page."""

    model_config = ConfigDict(json_schema_extra=page_schema("pipe", SHARED))
    old_names = old_names("pipe", PipeExpertKeys)

    # The first day
    MODEL_ID: str = valve(
        "gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2, "
        "gpt5_function_calling",
        "Models to offer, separated by commas; a name can end with an effort. `auto` "
        "stands for the newest model of each family, `gpt-5-auto` chooses a model for "
        "each chat. `gpt5_function_calling` and `gpt5_react` are agents (AGENT_JSON).",
    )
    ENABLE_WEB_SEARCH: bool = valve(
        False,
        "Offer OpenAI's web search in every chat; searches are billed. If off, users can "
        "switch it on next to the chat input, if USER_MAY_CHANGE has `web_search`.",
    )
    ENABLE_CODE_INTERPRETER: bool = valve(
        False,
        "Let the model run Python in every chat, in a billed container at OpenAI, with "
        "the files of the chat. The files that it creates are stored. If off, users can "
        "switch it on, if USER_MAY_CHANGE has `code_interpreter`.",
    )
    ENABLE_IMAGE_GENERATION: bool = valve(
        False,
        "Let the model generate images in every chat; each is billed and stored. If off, "
        "users can switch it on, if USER_MAY_CHANGE has `image_generation`.",
    )
    USER_MAY_CHANGE: str = valve(
        "effort, summary, verbosity, web_search, code_interpreter, image_generation, "
        "agent, show_cost, log_level",
        "Settings that users may change, separated by commas. `file_input` and "
        "`service_tier` (expensive) can be added; `all` and `nothing` stand alone. "
        "Administrators can change all.",
    )
    SHOW_COST: bool = valve(
        False,
        "Show users the cost of an answer in its last status line and in its usage: "
        "tokens, web searches, images and Python's containers. Administrators always see "
        "it, unless their own settings say otherwise.",
    )

    # Key and server
    AUTH: Literal["key", "bearer", "entra_id", "session", "system_oauth"] = valve(
        "key",
        "`key` sends the key as the model's server expects it, `bearer` as a bearer token. "
        "The others send a token instead of the key: `entra_id` one of Microsoft Entra ID; "
        "to gateways only, `system_oauth` the user's own OAuth token, and `session` the "
        "user's login of Open WebUI.",
        then=("ORGANIZATION", "PROJECT", "EXTRA_HEADERS"),
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = valve(
        "off",
        "Whether users can, or must, set a key of their own, which tasks then use too. "
        "Administrators can always use this pipe's key.",
        then=("COMPATIBILITY",),
    )
    FORWARD_USER_INFO: Literal["auto", "always", "never"] = valve(
        "auto",
        "Send Open WebUI's headers about the user, if its "
        "ENABLE_FORWARD_USER_INFO_HEADERS is on. `auto`: not to OpenAI and Azure.",
        then=("PROXY", "CA_BUNDLE", "VERIFY_SSL"),
    )

    # Models
    MODEL_OVERRIDES_JSON: str = valve(
        "",
        'Corrections to what the pipe knows about models: `{"my-deployment": {"like": '
        '"gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = valve(
        "gpt-6-luna",
        "Model for titles, tags, follow-up questions, search queries, autocompletion, "
        "emoji and image prompts, at its lowest effort. If it is empty, or still the "
        "default at a server other than OpenAI's, the chat's own model is used. If "
        "Open WebUI's settings name a model for tasks, that model does them instead.",
    )
    BACKGROUND_MODELS: str = valve(
        "",
        "Models whose answers survive a broken connection: names or patterns "
        "(`*-pro`), separated by commas. OpenAI stores their requests and answers for "
        "30 days, which is not compatible with zero data retention (unless "
        "`background_store` in EXPERT_JSON is false). Ignored if COMPATIBILITY is "
        "`strict`.",
    )
    SERVICE_TIER: _Tier = valve(
        "auto",
        "`flex` is slower and costs half, `fast` (or `priority`) twice, `ultrafast` 3 "
        "to 6 times as much, if the model and the project have them.",
    )
    MAX_OUTPUT_TOKENS: int = valve(
        0,
        "Token limit of one answer, including reasoning. 0: the model's own limit.",
        bounds=(0, 10_000_000),
        then=("ENABLE_STREAM",),
    )
    CUSTOM_MODEL_PRICING_JSON: str = valve(
        "",
        "Prices in US dollars per million tokens. They replace OpenAI's, and what the "
        "model's server says: "
        '`{"my-model": {"input": 2, "cached": 0.5, "output": 8}}`. Other servers have no '
        "known prices.",
    )

    # Agents
    AGENT_JSON: str = valve(
        "",
        "Settings of the agents, as a JSON object (docs/agent.md lists its keys): "
        '`{"model": "gpt-6.1-sol", "maximum_iterations": 12}`. It also applies to the '
        "switch *Agent*, except for `model`.",
    )

    # OpenAI's tools
    MAP_WEB_SEARCH: bool = valve(
        True,
        "Let the page's Web Search switch turn on OpenAI's search instead of Open "
        "WebUI's.",
    )
    WEB_SEARCH_OPTIONS: str = valve(
        "",
        "A JSON object: `search_context_size`, `user_location`, `allowed_domains`, "
        "`blocked_domains`, `external_web_access`, `return_token_budget`. Example: "
        '`{"allowed_domains": ["who.int"], "user_location": {"country": "CH"}}`.',
    )
    IMAGE_GENERATION_OPTIONS: str = valve(
        '{"partial_images": 2}',
        "A JSON object: `quality`, `size`, `background`, `output_format`, `model`, "
        "`partial_images` (previews, 0 to 3), and rarer keys (docs/settings.md).",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = valve(
        "auto",
        "How closely the model looks at attached images, unless the request says "
        "otherwise. `low` costs less.",
    )
    FILE_SEARCH_VECTOR_STORES: str = valve(
        "",
        "Up to two vector stores for OpenAI's file search: `vs_1, vs_2`; or a JSON "
        "object: `vector_store_ids`, `max_num_results` (1 to 50), `filters`, "
        "`ranking_options`.",
        own_key="all",
    )
    FILE_INPUT: _FileInput = valve(
        "off",
        "Which attached files the model gets whole, in every turn, instead of the text "
        "that Open WebUI retrieves from them: PDFs, or `all` documents.",
    )
    REMOTE_MCP_SERVERS_JSON: str = valve(
        "",
        "Servers that OpenAI calls, as a JSON list of objects: `server_label`, "
        "`server_url`, `tunnel_id` (OpenAI's Secure MCP Tunnel) or `connector_id` "
        "(deprecated for models released after 2026-09-01), `authorization`, "
        "`headers`, `allowed_tools`, `require_approval` (users are asked unless it is "
        "`never`), `server_description`.",
        secret=True,
        own_key="all",
        then=(
            "TOOL_APPROVAL",
            "TOOL_TIMEOUTS",
            "TOOL_OUTPUT_CHARACTERS",
            "PARALLEL_TOOL_CALLS",
        ),
    )

    # Open WebUI's tools
    MAX_FUNCTION_CALL_LOOPS: int = valve(
        10,
        "Maximum number of rounds of tool calls before the model has to answer.",
        bounds=(1, 1000),
    )
    MAX_TOOL_CALLS: int = valve(
        100, "Maximum number of tool calls in one answer.", bounds=(1, 10_000)
    )
    AUTO_NATIVE_TOOLS: bool = valve(
        False,
        "Use native function calling also for models whose Function Calling is set to "
        "Legacy.",
        then=("REASONING_SUMMARY",),
    )

    # Reasoning and history
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = valve(
        "conversation",
        "How long the model gets its encrypted reasoning back: not at all, within one "
        "answer, or in the whole conversation (stored in the chat).",
    )
    PERSIST_TOOL_RESULTS: bool = valve(
        True,
        "Send tool calls and results again in later turns. If off, neither they nor "
        "the reasoning before them are sent.",
    )
    HISTORY_CARRIER: Literal["output", "markers"] = valve(
        "output",
        "Where hidden chat data is stored: with `output`, in what Open WebUI stores of "
        "each answer; with `markers`, under the pipe's own keys, and with hidden lines in "
        "the text, which copies of answers contain. Both are always read.",
    )
    STORE_ENCRYPTION_KEY: str = valve(
        "",
        "A long random text that protects hidden chat data. If you change it, older "
        "chats can be read only in part. If empty, Open WebUI's WEBUI_SECRET_KEY is "
        "used.",
        secret=True,
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = valve(
        "chat",
        "Which requests share OpenAI's prompt cache: those of a chat, those of a user, "
        "or (`off`) those that OpenAI chooses. Only a hash is sent.",
    )
    TRUNCATION: Literal["disabled", "auto"] = valve(
        "disabled",
        "When a chat is too long, `auto` drops its oldest messages, and with them "
        "reasoning and the prompt cache; `disabled` shows an error.",
        then=("COMPACTION_TOKENS",),
    )

    # Log and the rest
    LOG_LEVEL: _LogLevel = valve(
        "INFO",
        "Lowest level in the server's log, which contains no key and no chat text.",
        then=("EXPERT_JSON",),
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        """Read stored words of earlier pipes of this name: both stood for the user."""
        return "user" if value in ("id", "email") else value

    def model_names(self) -> list[str]:
        """Return the entries of MODEL_ID; no name of a model has a semicolon.

        Everybody sees the list of models: a key that was pasted here is none.
        """
        return comma_list(hide_keys(self.MODEL_ID.replace(";", ",")))

    def effective_key(self) -> str:
        """Return the key to use; empty if there is none.

        As the default of the field, that of the environment would be in the schema
        of the page.
        """
        return bare_key(self.API_KEY) or environment_key()

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is stored in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is sent again between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the administrator or model."""

    model_config = ConfigDict(json_schema_extra=page_schema("pipe"))

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = valve(
        "inherit",
        "How long a model thinks. `max` is the model's highest effort; any other effort "
        "that the model lacks is not sent. `inherit`, here and below, leaves the choice "
        "to the administrator or the model.",
        word="effort",
    )
    REASONING_SUMMARY: Literal["inherit", _Summary] = valve(
        "inherit",
        "How detailed the summary of the reasoning is; `disabled` shows none.",
        word="summary",
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = valve(
        "inherit", "How long answers are.", word="verbosity"
    )
    WEB_SEARCH: _Choice = valve(
        "inherit", "Let the model search the web with OpenAI.", word="web_search"
    )
    IMAGE_GENERATION: _Choice = valve(
        "inherit",
        "Let the model generate images; each is billed.",
        word="image_generation",
    )
    CODE_INTERPRETER: _Choice = valve(
        "inherit", "Let the model run Python at OpenAI.", word="code_interpreter"
    )
    FILE_INPUT: Literal["inherit", _FileInput] = valve(
        "inherit",
        "Which attached files the model gets whole, in every turn, instead of the text "
        "that Open WebUI retrieves from them (if allowed): PDFs, or `all` documents.",
        word="file_input",
    )
    SERVICE_TIER: Literal["inherit", _Tier] = valve(
        "inherit",
        "`flex` is cheaper and slower, `fast` and `ultrafast` cost more (if allowed).",
        word="service_tier",
    )
    SHOW_COST: _Choice = valve(
        "inherit", "Show the cost of an answer.", word="show_cost"
    )
    LOG_LEVEL: Literal["inherit", _LogLevel] = valve(
        "inherit",
        "Log level of your chats; it can be more detailed than the administrator's, "
        "never less.",
        word="log_level",
    )
    API_KEY: str = valve(
        "",
        "Your own key for OpenAI (if allowed). It pays for your chats.",
        secret=True,
        max_length=2000,
    )
    SHOW_LOG_ON_ERROR: bool = valve(
        False, "For administrators: show the log of a failed answer as a source."
    )

    @field_validator("LOG_LEVEL", mode="before")
    @classmethod
    def _rename_inherit(cls, value: object) -> object:
        """Read the stored word of earlier pipes of this name.

        For a value that cannot be read, the host drops all settings of the user.
        """
        is_inherit = isinstance(value, str) and value.lower() == "inherit"
        return "inherit" if is_inherit else value


USER_TOKENS = ("session", "system_oauth")
"""The words of AUTH for a token of whoever asks, by the host's names."""
CALL_TOKENS = ("entra_id", *USER_TOKENS)
"""The words of AUTH for a token that each call gets in the place of the key."""


class ToolSetting(NamedTuple):
    """What offers a kind of OpenAI's tools."""

    valve: str
    """The administrator's: a switch, or what the tool works with."""
    user_valve: str = ""
    """The user's own switch; empty where the administrator's is more than on or off."""
    replaced: tuple[str, ...] = ()
    """Open WebUI's own tools for the same purpose."""


TOOL_SETTINGS: Mapping[str, ToolSetting] = {
    "web_search": ToolSetting(
        "ENABLE_WEB_SEARCH", "WEB_SEARCH", ("search_web", "fetch_url")
    ),
    "file_search": ToolSetting("FILE_SEARCH_VECTOR_STORES"),
    "mcp": ToolSetting("REMOTE_MCP_SERVERS_JSON"),
    "code_interpreter": ToolSetting(
        "ENABLE_CODE_INTERPRETER", "CODE_INTERPRETER", ("execute_code",)
    ),
    "image_generation": ToolSetting(
        "ENABLE_IMAGE_GENERATION",
        "IMAGE_GENERATION",
        ("generate_image", "edit_image"),
    ),
}
"""By the kinds of tools that are offered (openai_responses/tool_kinds.py)."""

TOOL_SWITCHES: Mapping[str, str] = {
    kind: setting.user_valve
    for kind, setting in TOOL_SETTINGS.items()
    if setting.user_valve
}
"""The users' switches: words of USER_MAY_CHANGE, and of the composer's filters."""
