"""Names of valves that a server may have stored, and that are no valves any more.

In Open WebUI they are those of jrkropp's pipe, up to 0.9.15, and of the first days of
this one; at the Pipelines server those of the first days of the agents. A stored value of
such a name changes nothing by itself: it can cost money, as a search does, and who stored
it may have meant another pipe.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from settings.table import Door, OldName

_KEYS_OF_EXPERT_JSON: Mapping[str, str] = {
    "FETCH_MODELS": "fetch_models",
    "STABLE_INSTRUCTIONS": "stable_instructions",
    "PROMPT_CACHE_DIAGNOSTICS": "prompt_cache_diagnostics",
    "ENABLE_STRICT_TOOL_CALLING": "strict_tool_calling",
    "CALLER_MAY_SET": "caller_may_set",
    "REQUEST_MAY_SET": "caller_may_set",
    "USER_KEYS_GET": "user_keys_get",
    "AUTH_SCOPE": "entra_scope",
    "MAX_RETRIES": "max_retries",
    "MAX_RETRY_WAIT_SECONDS": "max_retry_wait_seconds",
    "CONNECT_TIMEOUT_SECONDS": "connect_timeout_seconds",
    "FIRST_EVENT_TIMEOUT_SECONDS": "first_event_timeout_seconds",
    "IDLE_TIMEOUT_SECONDS": "idle_timeout_seconds",
    "TOTAL_TIMEOUT_SECONDS": "total_timeout_seconds",
    "AUDIT_LOG": "audit_log",
}
_TIMEOUT_OF_TOOLS = OldName("Set `default` in `TOOL_TIMEOUTS` instead.", ())
_SEARCH_OPTION = "Set `{}` in `WEB_SEARCH_OPTIONS` instead."
_SANDBOX_OPTION = "Set `{}` in `SANDBOX_OPTIONS` instead."
_TOOLS_OF_HOST = OldName("Connect the servers to Open WebUI: the agents use its tools.")

_OLD_VALVES: Mapping[Door, Mapping[str, OldName]] = {
    "pipe": {
        "ENABLE_WEB_SEARCH_TOOL": OldName("Set `ENABLE_WEB_SEARCH` instead.", (False,)),
        "WEB_SEARCH_CONTEXT_SIZE": OldName(
            _SEARCH_OPTION.format("search_context_size"), ("medium",)
        ),
        "WEB_SEARCH_USER_LOCATION": OldName(_SEARCH_OPTION.format("user_location")),
        "WEB_SEARCH_ALLOWED_DOMAINS": OldName(_SEARCH_OPTION.format("allowed_domains")),
        "SHOW_USAGE_COST": OldName("Set `SHOW_COST` instead.", (False,)),
        "AUTO_ENABLE_NATIVE_FUNCTION_CALLING": OldName(
            "Set `AUTO_NATIVE_TOOLS` instead; it is off by default.", (False,)
        ),
        "TOOL_TIMEOUT_SECONDS": _TIMEOUT_OF_TOOLS,
        "TOOL_EXECUTION": OldName(
            "The pipe always runs the tools of Open WebUI's chats.", ()
        ),
        "MODEL_FETCH_TTL_SECONDS": OldName("The list is read again every hour.", ()),
        "MODEL_ICON_URL": OldName("`openai_responses_models.json` has the icons."),
    },
    "pipelines": {
        "TOOL_TIMEOUT_SECONDS": _TIMEOUT_OF_TOOLS,
        "SANDBOX_SECONDS": OldName(_SANDBOX_OPTION.format("seconds"), (30,)),
        "SANDBOX_MEMORY_MB": OldName(_SANDBOX_OPTION.format("memory_mb"), (512,)),
        "SANDBOX_DISK_MB": OldName(_SANDBOX_OPTION.format("disk_mb"), (64,)),
        "SANDBOX_WHEELS": OldName(_SANDBOX_OPTION.format("wheels")),
        "MCP_SERVERS_JSON": _TOOLS_OF_HOST,
        "OPENAPI_SERVERS_JSON": _TOOLS_OF_HOST,
        "ALLOW_STDIO": _TOOLS_OF_HOST._replace(harmless=(False,)),
        "FILES_ROOT": OldName("Tools hand over files of their sandbox only."),
        "AUTH": OldName(
            "The agents send the key as the model's server expects it.", ("key",)
        ),
        "AUTH_SCOPE": OldName("The agents send no tokens of Microsoft Entra ID."),
        "FORWARD_USER_INFO": OldName("The agents tell no server who asks.", ("never",)),
    },
}


def old_names(door: Door, expert_keys: type[BaseModel]) -> dict[str, OldName]:
    """Return the old names at a door, with the keys that its EXPERT_JSON has."""
    names: dict[str, OldName] = {}
    for name, key in _KEYS_OF_EXPERT_JSON.items():
        if key in expert_keys.model_fields:
            default = expert_keys.model_fields[key].default
            instead = f"Set `{key}` in `EXPERT_JSON` instead."
            names[name] = OldName(instead, (default,))
    return {**names, **_OLD_VALVES[door]}
