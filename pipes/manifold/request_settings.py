"""What the valves of both shells decide about a request and about its calls of tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.json_input import JsonObject, value_at
from openai_responses.loop.attempt import Limits
from openai_responses.loop.tools import CallLimits
from openai_responses.models.resolve import ResolvedModel
from openai_responses.recent_texts import RecentTexts
from openai_responses.requests.build import (
    ResponsesRequest,
    Settings,
    is_api_parameter,
    unsent_parameters,
)
from openai_responses.requests.parameters import given_values
from openai_responses.transport.deadlines import Timeouts
from settings.expert_keys import ExpertKeys
from settings.shared_valves import SharedValves
from shells.answer_log import AnswerLog
from shells.caller import ChatCaller, log_left_out
from shells.tool_valves import ToolTimeouts
from strategies.parameters import StrategyParameters

_MIN_THRESHOLD = 1000
"""The API refuses to compact a shorter chat."""
_BATCH_SHARE = 5
"""Calls made at once run in parallel, but not all of them."""
_LONG_SILENCE = 900.0
"""In pro mode several passes make one answer, and nothing is sent in between; research
is as slow."""


def settings_of_valves(
    valves: SharedValves,
    endpoint: Endpoint,
    ids: Mapping[str, str | None],
    *,
    streams: bool,
    compaction_tokens: int,
) -> Settings:
    """Return the settings of a request that both shells have.

    `ids` name the user and the cache (`hash_ids`). The same chat and user always get
    the same defaults, because the prompt cache and, from gpt-6.2 on, encrypted reasoning
    depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    summary = valves.REASONING_SUMMARY
    defaults: dict[str, Any] = dict(ids)
    if compaction_tokens and not endpoint.is_azure:  # Azure does not have it
        threshold = max(compaction_tokens, _MIN_THRESHOLD)
        compaction = {"type": "compaction", "compact_threshold": threshold}
        defaults["context_management"] = [compaction]
    if not valves.PARALLEL_TOOL_CALLS:
        defaults["parallel_tool_calls"] = False
    return Settings(
        summary=None if summary == "disabled" else summary,
        stream=streams and valves.ENABLE_STREAM,
        defaults=given_values(defaults),
    )


def log_unsent_parameters(
    log: AnswerLog,
    caller: ChatCaller,
    asked: JsonObject,
    request: ResponsesRequest,
    logged: RecentTexts,
) -> None:
    """Log what is asked for and not sent, and values that no API takes, each once a day.

    An administrator can do nothing about the former.
    """
    missing, errors = unsent_parameters(asked, request)
    reasons: dict[str, str] = {}
    for name in missing:
        reasons[name] = "not known to the API"
        if is_api_parameter(name):
            reasons[name] = f"not taken by {request.model}"
    log_left_out(log, caller, reasons, logged)
    for error in errors:
        log.warn_once(f"{caller.name_in_log}: {error}", logged)


def request_timeouts(
    keys: ExpertKeys, model: ResolvedModel, total: float = 0
) -> Timeouts:
    """Return the limits of a request to a model; `total` is that of its answer."""
    is_slow = model.pro or model.research or "-pro" in model.id
    least = _LONG_SILENCE if is_slow else 0.0
    return Timeouts(
        connect=keys.connect_timeout_seconds,
        first_event=max(keys.first_event_timeout_seconds, least),
        idle=max(keys.idle_timeout_seconds, least),
        total=total,
    )


_LONGEST_TAG = 100
"""People choose the tags, and each piece of an answer is compared with all their
beginnings."""


def chosen_tags(metadata: JsonObject) -> list[str] | None:
    """Return the tags of the host's parameter *Reasoning Tags*; None if it has no effect.

    It is a pair of tags, or false for none (docs/reference/open-webui.md, "Tags in
    texts").
    """
    match value_at(metadata, "params", "reasoning_tags"):
        case False:
            return []
        case [str() as start, str() as end] if start.strip() and end.strip():
            if max(len(start), len(end)) <= _LONGEST_TAG:
                return [start, end]
    return None


def chat_limits(
    limits: Limits, agent: StrategyParameters | None, tags: Sequence[str] | None
) -> Limits:
    """Return the limits of a run with what is kept of thoughts in the texts of a chat.

    The `tags` are those of the chat, if it has its own (`chosen_tags`).
    """
    if agent:
        keeps = agent.emit_intermediate_thoughts
        limits = limits._replace(keeps_tagged_thoughts=keeps)
    match tags:
        case None:
            return limits
        case [start, end]:
            return limits._replace(thought_tags=((start, end),))
    return limits._replace(thought_tags=())


def call_limits(
    valves: SharedValves,
    timeouts: ToolTimeouts,
    others: Sequence[tuple[str, float]] = (),
) -> CallLimits:
    """Return the limits of calls; `others` has seconds by names that TOOL_TIMEOUTS lacks."""
    return CallLimits(
        seconds=timeouts.default,
        batch_seconds=_BATCH_SHARE * timeouts.default,
        characters=valves.TOOL_OUTPUT_CHARACTERS,
        own=[*timeouts.by_pattern, *others],
    )
