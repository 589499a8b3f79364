"""Prompt cache diagnostics: why a prompt begins differently from an earlier one.

Source: guide "Prompt cache diagnostics"; types, `response.py`,
`PromptCacheDiagnostics`; vendors: pydantic-ai 2.68.0. Assumed: the order of the reasons
and the wording of the refusal; ``parallel_tool_calls`` counts as changed tools and
``context_management`` as changed input, because no reason names them; a prompt too
short for the cache is ``unavailable``.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.models import ModelFacts
from simulator.prefix import Prompt
from simulator.refusals import refuse
from simulator.tokens import MIN_CACHED_TOKENS, count_common_prefix, count_prefix

Body = Mapping[str, Any]
Diagnosis = dict[str, Any]
MAX_KEPT = 256
UNAVAILABLE: Mapping[str, str] = {"type": "unavailable"}
REASONS = {
    "service_tier": "service_tier_changed",
    "parallel_tool_calls": "tools_changed",
    "text_format": "text_format_changed",
    "reasoning_effort": "reasoning_effort_changed",
    "verbosity": "verbosity_changed",
    "context_management": "input_changed",
}


@dataclass(frozen=True)
class PromptRecord:
    """What is kept of a request to compare a later one with it."""

    organization: str
    model: ModelFacts
    key: str | None
    tools: Hashable
    prompt: Prompt
    compactions: int


class PromptRecords:
    """The newest prompts by the ids of their responses."""

    def __init__(self) -> None:
        self._kept: dict[str, PromptRecord] = {}

    def keep(self, response: str, record: PromptRecord) -> None:
        """Keep a prompt, and no more than the newest ones."""
        self._kept[response] = record
        if len(self._kept) > MAX_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]

    def forget(self) -> None:
        self._kept.clear()

    def compare(self, earlier: str, record: PromptRecord) -> Diagnosis:
        """Return the diagnosis of a prompt compared with that of an earlier response."""
        if not record.model.diagnoses_cache:
            return dict(UNAVAILABLE)
        before = self._kept.get(earlier)
        if before is None or before.organization != record.organization:
            return {"type": "comparison_response_not_found"}
        if min(before.prompt.tokens, record.prompt.tokens) < MIN_CACHED_TOKENS:
            return dict(UNAVAILABLE)
        earlier_prefix, prefix = before.prompt.prefix, record.prompt.prefix
        shared = count_common_prefix(earlier_prefix, prefix)
        reason = _find_reason(before, record)
        if reason is None and shared == min(len(earlier_prefix), len(prefix)):
            return {"type": "cache_hit"}
        reusable = 0 if reason else count_prefix(earlier_prefix[:shared])
        return {
            "type": "cache_miss",
            "reason": reason or "input_changed",
            "cache_missed_tokens": max(0, record.prompt.tokens - reusable),
            "comparison_reusable_tokens": reusable,
        }


def _find_reason(before: PromptRecord, now: PromptRecord) -> str | None:
    """Return the first reason other than the input itself."""
    if before.model.id != now.model.id:
        return "model_changed"
    if before.key != now.key:
        return "prompt_cache_key_changed"
    if before.tools != now.tools:
        return "tools_changed"
    for name, reason in REASONS.items():
        if before.prompt.settings[name] != now.prompt.settings[name]:
            return reason
    return "context_compacted" if before.compactions < now.compactions else None


def read_comparison(body: Body) -> str | None:
    """Return the id of the response to compare with, or raise the refusal."""
    options = body.get("prompt_cache_options") or {}
    earlier: str | None = options.get("comparison_response_id")
    if earlier is not None and not earlier.startswith("resp"):
        path = "prompt_cache_options.comparison_response_id"
        raise refuse("response_id", path=path, id=earlier)
    return earlier
