"""A request as other servers of the Responses API take it.

They check more strictly and know less than OpenAI (responses-api.md §6): an unknown
key or `include` is an error, a reasoning item or a call needs an id, and an answer of
the assistant is a plain text.
"""

import hashlib
from typing import Any

from openai_responses.items import Item, item_type, message_text

_OPENAI_ONLY = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "stream_options",
)
_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` without what only OpenAI knows, its items with ids."""
    kept = {key: value for key, value in payload.items() if key not in _OPENAI_ONLY}
    return {**kept, "input": [_strict_item(item) for item in payload["input"]]}


def _strict_item(item: Item) -> Item:
    kind = item_type(item)
    if kind == "message" and item.get("role") == "assistant":
        return {"role": "assistant", "content": message_text(item)}
    if kind in _ID_PREFIXES:
        return {**item, "id": f"{_ID_PREFIXES[kind]}_{_digest(item)}"}
    return item


def _digest(item: Item) -> str:
    """Return an id that the same item always gets, so that the prefix stays."""
    told = str(item.get("encrypted_content") or item.get("call_id") or item)
    return hashlib.sha256(told.encode("utf-8", errors="replace")).hexdigest()[:32]
