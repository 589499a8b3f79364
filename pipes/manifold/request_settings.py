"""What the valves of both shells decide about a request and about its calls of tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.loop.tools import CallLimits
from openai_responses.requests.build import Settings
from openai_responses.requests.parameters import given_values
from settings.shared_valves import SharedValves

_MIN_THRESHOLD = 1000
"""The API refuses to compact a shorter chat."""
_BATCH_SHARE = 5
"""Calls made at once run in parallel, but not all of them."""


def settings_of_valves(
    valves: SharedValves,
    endpoint: Endpoint,
    ids: Mapping[str, str | None],
    *,
    streams: bool,
    summary: str,
    compaction_tokens: int,
) -> Settings:
    """Return the settings of a request that both shells have.

    `ids` name the user and the cache (`hash_ids`). The same chat and user always get
    the same defaults, because the prompt cache and, from gpt-6.2 on, encrypted reasoning
    depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    defaults: dict[str, Any] = dict(ids)
    if compaction_tokens and not endpoint.is_azure:  # Azure does not have it
        threshold = max(compaction_tokens, _MIN_THRESHOLD)
        compaction = {"type": "compaction", "compact_threshold": threshold}
        defaults["context_management"] = [compaction]
    return Settings(
        summary=None if summary == "disabled" else summary,
        stream=streams and valves.ENABLE_STREAM,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=given_values(defaults),
    )


def call_limits(
    valves: SharedValves, seconds: float, own: Sequence[tuple[str, float]]
) -> CallLimits:
    """Return the limits of calls, with the time of one and those of names of `own`."""
    return CallLimits(
        seconds=seconds,
        batch_seconds=_BATCH_SHARE * seconds,
        characters=valves.TOOL_OUTPUT_CHARACTERS,
        own=own,
    )
