"""The response object: what it repeats of the request, its items and its usage."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from simulator.diagnostics import UNAVAILABLE
from simulator.fields import without_fields
from simulator.models import read_context
from simulator.prefix import Prompt, read_tier
from simulator.request import ValidRequest
from simulator.scenarios.builders import build_message
from simulator.sealing import (
    NO_PARTNER,
    PREFIXES,
    ItemPosition,
    PrefixHash,
    Seal,
    canonicalize_item,
    make_call_id,
    make_response_id,
    seal_content,
)
from simulator.tokens import (
    MIN_CACHED_TOKENS,
    REASONING_TOKENS,
    SEALED_TYPES,
    count_tokens,
)

Item = dict[str, Any]
NO_TOOL_USAGE = {
    "image_gen": {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "total_tokens": 0,
    },
    "web_search": {"num_requests": 0},
}


def open_response(
    request: ValidRequest, key: str, now: float, removed: Sequence[Mapping[str, str]]
) -> Item:
    """Return a response in progress, with the settings of the request.

    The fields and their defaults are those of responses recorded in summer 2026.
    """
    body = request.body
    model = request.model
    temperature = body.get("temperature")
    top_p = body.get("top_p")
    reasoning: Item = {"context": None, "effort": None, "summary": None}
    if model.reasons:
        wanted = body.get("reasoning") or {}
        summary = wanted.get("summary")
        reasoning = {
            **wanted,
            "context": read_context(body, model),
            "effort": request.effort,
            "mode": wanted.get("mode") or "standard",
            "summary": "detailed" if summary == "auto" else summary,
        }
    # Assumed: an update of the format shows here.
    text = {
        "format": dict(request.configuration.format),
        "verbosity": (body.get("text") or {}).get("verbosity") or "medium",
    }
    opened: Item = {
        "id": make_response_id(key),
        "object": "response",
        "created_at": int(now),
        "status": "queued" if body.get("background") else "in_progress",
        "background": body.get("background") is True,
        "billing": {"payer": "developer"},
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "metadata": body.get("metadata") or {},
        "model": model.snapshot or model.id,
        "moderation": None,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": body.get("prompt_cache_retention")
        or model.default_retention,
        "reasoning": reasoning,
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": read_tier(body),
        "store": body.get("store") is not False,
        "temperature": 1.0 if temperature is None else temperature,
        "text": text,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": list(request.configuration.declared),
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": model.default_top_p if top_p is None else top_p,
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
    }
    if model.series >= (6, 0):
        opened["access_programs"] = None
    if model.binds_reasoning_to_prefix:
        opened["input_transformations"] = [dict(report) for report in removed]
    wanted_cache = body.get("prompt_cache_options")
    if wanted_cache:
        options = {"mode": "implicit", "ttl": "30m", **wanted_cache}
        opened["prompt_cache_options"] = without_fields(options, "prewarm")
        # The diagnosis itself comes with the last event.
        compares = wanted_cache.get("comparison_response_id")
        diagnosis = dict(UNAVAILABLE) if compares else None
        opened["prompt_cache_diagnostics"] = diagnosis
    return opened


def close_response(
    opened: Item, output: Sequence[Item], now: float, fields: Item
) -> Item:
    """Return the response as its last event shows it."""
    completed = fields["status"] == "completed"
    searches = sum(item["type"] == "web_search_call" for item in output)
    tool_usage = {**NO_TOOL_USAGE, "web_search": {"num_requests": searches}}
    return {
        **opened,
        "output": list(output),
        "completed_at": int(now) if completed else None,
        "tool_usage": tool_usage,
        **fields,
    }


def count_usage(
    request: ValidRequest, prompt: Prompt, cached: int, output: Sequence[Item]
) -> Item:
    """Return the usage of a response, of whose prompt so many tokens were cached."""
    visible = [item for item in output if item["type"] != "reasoning"]
    text = json.dumps(visible, ensure_ascii=False) if visible else ""
    reasoning_tokens = request.reasoning_tokens * (len(output) - len(visible))
    output_tokens = reasoning_tokens + count_tokens(text)
    written = 0
    if request.model.writes_cache_explicitly and prompt.tokens >= MIN_CACHED_TOKENS:
        written = prompt.tokens - cached - prompt.uncached_tokens
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": {
            "cached_tokens": cached,
            "cache_write_tokens": written,
        },
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": prompt.tokens + output_tokens,
    }


FIRST_SERIES_WITH_PHASES = (5, 3)
TYPES_WITHOUT_STATUS = (
    "reasoning",
    "compaction",
    "configuration_update",
    "mcp_list_tools",
    "mcp_approval_request",
)
"""Items of these types have no status (recorded)."""
POSITIONS = frozenset({"start_index", "end_index", "index"})
"""The fields of an annotation that are positions in its text."""
INCLUDE_FIELDS = {
    "web_search_call": ("web_search_call.action.sources", "sources"),
    "file_search_call": ("file_search_call.results", "results"),
    "code_interpreter_call": ("code_interpreter_call.outputs", "outputs"),
}
"""The value of ``include`` that a field of an item needs, and the field."""


@dataclass(frozen=True)
class SealContext:
    """Which response reasoning belongs to, whose it is, and what precedes it."""

    response: str
    organization: str
    prefix: PrefixHash


def fill_drafts(
    drafts: Sequence[Item], request: ValidRequest, context: SealContext
) -> list[Item]:
    """Return the items of a response, with ids, call ids and sealed reasoning."""
    words = request.words()
    filled = [fill_placeholders(draft, words) for draft in drafts]
    possible = [draft for draft in filled if request.configuration.may_call(draft)]
    has_message = any(draft["type"] == "message" for draft in possible)
    if len(possible) < len(drafts) and not has_message:
        possible.append(build_message("I may not call that tool here."))
    if not request.reasons:
        possible = [draft for draft in possible if draft["type"] != "reasoning"]
    finished: list[Item] = []
    for index, draft in enumerate(possible):
        # What reasoning led to, or the reasoning that led here.
        partner = NO_PARTNER
        if draft["type"] == "reasoning":
            rest = range(index + 1, len(possible))
            led_to = (at for at in rest if possible[at]["type"] != "reasoning")
            partner = next(led_to, NO_PARTNER)
        elif index > 0 and possible[index - 1]["type"] == "reasoning":
            partner = index - 1
        position = ItemPosition(context.response, index, partner)
        item = _finish_item(draft, position, request)
        if item["type"] in SEALED_TYPES:
            item["encrypted_content"] = _seal_item(item, request, context)
        context.prefix.read(canonicalize_item(item))
        finished.append(item)
    return finished


def fill_placeholders(value: Any, words: Mapping[str, str]) -> Any:
    """Return a value with its placeholders replaced, at every depth."""
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, list):
        return [fill_placeholders(inner, words) for inner in value]
    if not isinstance(value, dict):
        return value
    filled = {name: fill_placeholders(inner, words) for name, inner in value.items()}
    for annotation in filled.get("annotations") or ():
        for field in POSITIONS & annotation.keys():
            text_before = value["text"][: annotation[field]]
            annotation[field] = len(fill_placeholders(text_before, words))
    return filled


def _finish_item(draft: Item, position: ItemPosition, request: ValidRequest) -> Item:
    """Return an item with the fields that the API gives to items of its type."""
    kind = draft["type"]
    item: Item = {"id": position.id(PREFIXES[kind]), **draft}
    if kind not in TYPES_WITHOUT_STATUS:
        item.setdefault("status", "completed")
    if kind in ("function_call", "custom_tool_call"):
        item.setdefault("call_id", make_call_id(position.response, position.index))
        namespace = request.configuration.namespace_of(item, request.model)
        if namespace:
            item["namespace"] = namespace
    if kind == "message" and request.model.series >= FIRST_SERIES_WITH_PHASES:
        item.setdefault("phase", "final_answer")
    if kind == "reasoning" and not request.wants_summary:
        item["summary"] = []
    include, field = INCLUDE_FIELDS.get(kind, ("", ""))
    if not field or include in (request.body.get("include") or []):
        return item
    if "action" in item:
        return {**item, "action": without_fields(item["action"], field)}
    return {**item, field: None}


def _seal_item(item: Item, request: ValidRequest, context: SealContext) -> str:
    """Return the encrypted content of reasoning or of a compaction."""
    is_compaction = item["type"] == "compaction"
    seal = Seal(
        item=item["id"],
        organization=context.organization,
        family=request.model.family,
        prefix=context.prefix.digest(),
        end_user=request.body.get("safety_identifier"),
        tokens=REASONING_TOKENS if is_compaction else request.reasoning_tokens,
        tools=request.configuration.appended if is_compaction else (),
    )
    return seal_content(seal)
