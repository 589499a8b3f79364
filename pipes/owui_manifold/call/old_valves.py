"""Names of valves that a server may have stored, and that are no valves any more.

They are those of jrkropp's pipe, up to 0.9.15, and of the first days of this one. A
stored value of such a name changes nothing by itself: it can cost money, as a search
does, and who stored it may have meant another pipe.
"""

from collections.abc import Mapping
from typing import NamedTuple

from owui_manifold.call.expert import ExpertSettings


class OldName(NamedTuple):
    """What became of a valve."""

    instead: str
    """What to do, in the words of docs/install.md."""
    harmless: tuple[object, ...] = ()
    """The stored values with which nothing is lost."""


_SEARCH_OPTION = "Set `{}` in `WEB_SEARCH_OPTIONS` instead."

_EXPERT_KEYS: Mapping[str, str] = {
    "FETCH_MODELS": "fetch_models",
    "STABLE_INSTRUCTIONS": "stable_instructions",
    "PROMPT_CACHE_DIAGNOSTICS": "prompt_cache_diagnostics",
    "ENABLE_STRICT_TOOL_CALLING": "strict_tool_calling",
    "CALLER_MAY_SET": "caller_may_set",
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


def _expert_key(key: str) -> OldName:
    """Return what became of a valve that is a key of EXPERT_JSON now."""
    default = ExpertSettings.model_fields[key].default
    return OldName(f"Set `{key}` in `EXPERT_JSON` instead.", (default,))


OLD_NAMES: Mapping[str, OldName] = {
    "ENABLE_WEB_SEARCH_TOOL": OldName("Set `ENABLE_WEB_SEARCH` instead.", (False,)),
    "WEB_SEARCH_CONTEXT_SIZE": OldName(
        _SEARCH_OPTION.format("search_context_size"), ("medium",)
    ),
    "WEB_SEARCH_USER_LOCATION": OldName(_SEARCH_OPTION.format("user_location"), ("",)),
    "WEB_SEARCH_ALLOWED_DOMAINS": OldName(
        _SEARCH_OPTION.format("allowed_domains"), ("",)
    ),
    "SHOW_USAGE_COST": OldName("Set `SHOW_COST` instead.", (False,)),
    "AUTO_ENABLE_NATIVE_FUNCTION_CALLING": OldName(
        "Set `AUTO_NATIVE_TOOLS` instead; it is off by default.", (False,)
    ),
    **{name: _expert_key(key) for name, key in _EXPERT_KEYS.items()},
    "TOOL_TIMEOUT_SECONDS": OldName("Set `default` in `TOOL_TIMEOUTS` instead."),
    "TOOL_EXECUTION": OldName("The pipe always runs the tools of Open WebUI's chats."),
    "MODEL_FETCH_TTL_SECONDS": OldName("The list is read again every hour."),
    "MODEL_ICON_URL": OldName("`openai_responses_models.json` has the icons.", ("",)),
}
