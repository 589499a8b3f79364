"""What the host reads in a tool's result: a failure, sources."""

from collections.abc import Mapping
from typing import Any

from openai_responses.json_texts import typed_object

_CITED = frozenset(
    {
        "fetch_url",
        "query_chat_files",
        "query_knowledge_files",
        "view_file",
        "view_knowledge_file",
    }
)
"""Builtin tools whose results name sources (utils/middleware.py:450)."""

_ERROR_WORDS = ("error:", "exception:", "traceback", "http error!")
"""How results begin that the host marks as failed (utils/middleware.py:169)."""


def cites(name: str, metadata: Mapping[str, Any]) -> bool:
    """Say whether a tool's result names sources, as far as the model may have any."""
    found: Any = metadata.get("model")
    for key in ("info", "meta", "capabilities", "citations"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return name in _CITED and found is not False


def is_failure(text: str) -> bool:
    """Say whether a result tells of an error."""
    found = typed_object(text)
    if found is None:
        return text.strip().lower().startswith(_ERROR_WORDS)
    refused = found.get("success") is False or found.get("ok") is False
    told = found.get("error") or (refused and found.get("message"))
    failed = str(found.get("status")).strip().lower() in ("error", "failed")
    return failed or (isinstance(told, str | Mapping | list) and bool(told))
