"""The response object: what it repeats of the request, its items and its usage."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from simulator.diagnostics import UNAVAILABLE
from simulator.fields import without_fields
from simulator.prefix import read_tier
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


@dataclass(frozen=True)
class PromptCount:
    """The tokens of a prompt: all, those read from the cache, those written to it."""

    tokens: int
    cached: int
    written: int
    reasoning_tokens: int
    """The tokens of each reasoning item of the answer."""


def open_response(
    request: ValidRequest, key: str, now: float, removed: Sequence[Mapping[str, str]]
) -> Item:
    """Return a response in progress, with the settings of the request.

    The fields and their defaults are those of responses recorded in summer 2026.
    """
    body = request.body
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
        "model": request.model.snapshot or request.model.id,
        "moderation": None,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": _cache_retention(request),
        "reasoning": _reasoning_settings(request),
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": read_tier(body),
        "store": body.get("store") is not False,
        "temperature": _or_default(body.get("temperature"), 1.0),
        "text": _text_settings(request),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": list(request.configuration.declared),
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": _or_default(body.get("top_p"), request.model.default_top_p),
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
    }
    if request.model.series >= (6, 0):
        opened["access_programs"] = None
    if request.model.binds_reasoning_to_prefix:
        opened["input_transformations"] = [dict(report) for report in removed]
    return {**opened, **_cache_options(body)}


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


def count_usage(prompt: PromptCount, output: Sequence[Item]) -> Item:
    """Return the usage of a response."""
    visible = [item for item in output if item["type"] != "reasoning"]
    text = json.dumps(visible, ensure_ascii=False) if visible else ""
    reasoning_tokens = prompt.reasoning_tokens * (len(output) - len(visible))
    output_tokens = reasoning_tokens + count_tokens(text)
    is_cacheable = prompt.tokens >= MIN_CACHED_TOKENS
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": {
            "cached_tokens": prompt.cached,
            "cache_write_tokens": prompt.written if is_cacheable else 0,
        },
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": prompt.tokens + output_tokens,
    }


def _or_default(value: float | None, default: float) -> float:
    return default if value is None else value


def _cache_retention(request: ValidRequest) -> str:
    requested: str | None = request.body.get("prompt_cache_retention")
    return requested or request.model.default_retention


def _reasoning_settings(request: ValidRequest) -> Item:
    if not request.model.reasons:
        return {"context": None, "effort": None, "summary": None}
    requested = request.body.get("reasoning") or {}
    context = requested.get("context") or "auto"
    if context == "auto":
        context = request.model.default_context
    summary = requested.get("summary")
    if summary == "auto":
        summary = "detailed"
    return {
        **requested,
        "context": context,
        "effort": request.effort,
        "mode": requested.get("mode") or "standard",
        "summary": summary,
    }


def _text_settings(request: ValidRequest) -> Item:
    """Return the settings in force; assumed: an update of the format shows here."""
    verbosity = (request.body.get("text") or {}).get("verbosity")
    format = dict(request.configuration.format)
    return {"format": format, "verbosity": verbosity or "medium"}


def _cache_options(body: Mapping[str, Any]) -> Item:
    """Return the options of the cache; the diagnosis comes with the last event."""
    requested = body.get("prompt_cache_options")
    if not requested:
        return {}
    options = {"mode": "implicit", "ttl": "30m", **requested}
    options.pop("prewarm", None)
    compares = requested.get("comparison_response_id")
    return {
        "prompt_cache_options": options,
        "prompt_cache_diagnostics": dict(UNAVAILABLE) if compares else None,
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
    possible = _drop_impossible(filled, request)
    finished: list[Item] = []
    for index, draft in enumerate(possible):
        partner = _find_partner(possible, index)
        position = ItemPosition(context.response, index, partner)
        item = _finish_item(draft, position, request)
        if item["type"] in SEALED_TYPES:
            item["encrypted_content"] = _seal_item(item, request, context)
        context.prefix.read(canonicalize_item(item))
        finished.append(item)
    return finished


def _drop_impossible(drafts: Sequence[Item], request: ValidRequest) -> list[Item]:
    """Leave out calls that are not allowed, and reasoning of a model that does not think.

    A message says so if nothing else would be said.
    """
    allowed = [draft for draft in drafts if request.configuration.may_call(draft)]
    has_message = any(draft["type"] == "message" for draft in allowed)
    if len(allowed) < len(drafts) and not has_message:
        allowed.append(build_message("I may not call that tool here."))
    if request.reasons:
        return allowed
    return [draft for draft in allowed if draft["type"] != "reasoning"]


def fill_placeholders(value: Any, words: Mapping[str, str]) -> Any:
    """Return a value with its placeholders replaced, at every depth."""
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, list):
        return [fill_placeholders(inner, words) for inner in value]
    if not isinstance(value, dict):
        return value
    filled = {name: fill_placeholders(inner, words) for name, inner in value.items()}
    if value.get("annotations"):
        filled["annotations"] = _moved_annotations(
            filled["annotations"], value["text"], words
        )
    return filled


_POSITIONS = ("start_index", "end_index", "index")
"""The fields of an annotation that are positions in its text."""


def _moved_annotations(
    annotations: Sequence[Item], draft: str, words: Mapping[str, str]
) -> list[Item]:
    """Return the annotations of a draft with their positions in the filled text."""
    moved_annotations: list[Item] = []
    for annotation in annotations:
        moved = dict(annotation)
        for field in _POSITIONS:
            if field in moved:
                text_before = draft[: moved[field]]
                moved[field] = len(fill_placeholders(text_before, words))
        moved_annotations.append(moved)
    return moved_annotations


def _find_partner(items: Sequence[Item], index: int) -> int:
    """Return the index of what reasoning led to, or of the reasoning that led here."""
    if items[index]["type"] == "reasoning":
        for later in range(index + 1, len(items)):
            if items[later]["type"] != "reasoning":
                return later
        return NO_PARTNER
    if index > 0 and items[index - 1]["type"] == "reasoning":
        return index - 1
    return NO_PARTNER


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
    return _drop_unrequested(item, request)


def _drop_unrequested(item: Item, request: ValidRequest) -> Item:
    """Return an item without the field that only ``include`` gives."""
    include, field = INCLUDE_FIELDS.get(item["type"], ("", ""))
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
