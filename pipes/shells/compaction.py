"""COMPACTION_TOKENS, for pipe and agents."""

from typing import Any

from openai_responses.endpoint import Endpoint

_MIN_THRESHOLD = 1000
"""The API refuses a lower one."""


def compaction_settings(tokens: int, endpoint: Endpoint) -> list[dict[str, Any]] | None:
    """Return the `context_management` that compacts a chat above this many tokens.

    None for 0, and at Azure, which does not have it.
    """
    if tokens == 0 or endpoint.is_azure:
        return None
    threshold = max(tokens, _MIN_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": threshold}]
