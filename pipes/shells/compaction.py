"""When OpenAI compacts a chat, for pipe and agents."""

from typing import Any

from openai_responses.endpoint import Endpoint

_LEAST_THRESHOLD = 1000
"""The API refuses a lower one."""


def context_management(tokens: int, endpoint: Endpoint) -> list[dict[str, Any]] | None:
    """Return the parameter for COMPACTION_TOKENS; None if nothing compacts.

    0 switches it off, and Azure does not have it.
    """
    if tokens == 0 or endpoint.is_azure:
        return None
    threshold = max(tokens, _LEAST_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": threshold}]
