"""What a request says of itself where its caller says nothing."""

from hashlib import sha256
from typing import Any

from owui_manifold.caller import Caller
from owui_manifold.valves import UserValves, Valves

_LEAST_THRESHOLD = 1000
"""A smaller one would compact every answer."""


def default_parameters(
    caller: Caller, valves: Valves, user: UserValves
) -> dict[str, Any]:
    """Return parameters of the API; what the caller's body holds wins over them.

    The same chat and the same user always get the same values: the prompt cache and,
    from gpt-6.2 on, encrypted reasoning are bound to them (responses-api.md §0.2).
    """
    own = user.SERVICE_TIER
    tier = valves.SERVICE_TIER if own == "inherit" else own
    wanted = {
        "safety_identifier": _hashed("user", caller.user_id),
        "prompt_cache_key": _cache_key(caller, valves.PROMPT_CACHE_KEY),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": _compaction(valves.COMPACTION_TOKENS),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _compaction(threshold: int) -> list[dict[str, Any]] | None:
    if not threshold:
        return None
    most = max(threshold, _LEAST_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": most}]


def _cache_key(caller: Caller, kind: str) -> str | None:
    if kind == "off":
        return None
    chat = caller.chat_id if kind == "chat" else ""
    return _hashed("chat", chat) or _hashed("cache", caller.user_id)


def _hashed(kind: str, value: str) -> str | None:
    """Return a stable name for `value` that does not tell it; None for nothing.

    The ids are random UUIDs, so that nobody finds them by trying.
    """
    named = f"openai_responses:{kind}:{value}"
    return sha256(named.encode()).hexdigest()[:48] if value else None
