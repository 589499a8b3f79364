"""The Response object: its echo of the request, and finished items with ids, call ids
and sealed reasoning.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from simulator.diagnostics import UNAVAILABLE
from simulator.prefix import read_tier
from simulator.request import ValidRequest
from simulator.scenarios.builders import build_message
from simulator.sealing import (
    NO_PARTNER,
    PREFIXES,
    ItemPlace,
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
    """How long the prompt was, and how much of it was known."""

    tokens: int
    cached: int
    written: int
    reasoning_tokens: int
    """How long one reasoning item is."""


def open_response(
    request: ValidRequest, key: str, now: float, removed: Sequence[Mapping[str, str]]
) -> Item:
    """Return a response in progress that echoes the request.

    The fields and their defaults are those of recorded responses of summer 2026.
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
        "prompt_cache_retention": _retention(request),
        "reasoning": _reasoning(request),
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": read_tier(body),
        "store": body.get("store") is not False,
        "temperature": _or_default(body.get("temperature"), 1.0),
        "text": _text(request),
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
    return {**opened, **_diagnostics(body)}


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
    """Count what a response cost."""
    kinds = [item["type"] for item in output]
    thoughts = prompt.reasoning_tokens * kinds.count("reasoning")
    spoken = [item for item in output if item["type"] != "reasoning"]
    text = json.dumps(spoken, ensure_ascii=False) if spoken else ""
    written = thoughts + count_tokens(text)
    writes = prompt.written if prompt.tokens >= MIN_CACHED_TOKENS else 0
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": {
            "cached_tokens": prompt.cached,
            "cache_write_tokens": writes,
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thoughts},
        "total_tokens": prompt.tokens + written,
    }


def _or_default(value: float | None, default: float) -> float:
    return default if value is None else value


def _retention(request: ValidRequest) -> str:
    given: str | None = request.body.get("prompt_cache_retention")
    return given or request.model.default_retention


def _reasoning(request: ValidRequest) -> Item:
    if not request.model.reasons:
        return {"context": None, "effort": None, "summary": None}
    given = request.body.get("reasoning") or {}
    context = given.get("context") or "auto"
    summary = given.get("summary")
    return {
        **given,
        "context": request.model.default_context if context == "auto" else context,
        "effort": request.effort,
        "mode": given.get("mode") or "standard",
        "summary": "detailed" if summary == "auto" else summary,
    }


def _text(request: ValidRequest) -> Item:
    """Echo what is in force; that an update of the format shows here is assumed."""
    verbosity = (request.body.get("text") or {}).get("verbosity")
    format = dict(request.configuration.format)
    return {"format": format, "verbosity": verbosity or "medium"}


def _diagnostics(body: Mapping[str, Any]) -> Item:
    """Echo the options of the cache; an early event knows no diagnosis yet."""
    options = body.get("prompt_cache_options")
    if not options:
        return {}
    echo = {"mode": "implicit", "ttl": "30m", **options}
    echo.pop("prewarm", None)
    early = dict(UNAVAILABLE) if options.get("comparison_response_id") else None
    return {"prompt_cache_options": echo, "prompt_cache_diagnostics": early}


FIRST_PHASE_VERSION = (5, 3)
# Items that have no status of their own on the wire; recorded.
STATELESS = (
    "reasoning",
    "compaction",
    "configuration_update",
    "mcp_list_tools",
    "mcp_approval_request",
)
INCLUDE_FIELDS = {
    "web_search_call": ("web_search_call.action.sources", "sources"),
    "file_search_call": ("file_search_call.results", "results"),
    "code_interpreter_call": ("code_interpreter_call.outputs", "outputs"),
}


@dataclass(frozen=True)
class SealContext:
    """What sealed reasoning has to know about its making."""

    response: str
    organization: str
    prefix: PrefixHash


def fill_drafts(
    drafts: Sequence[Item], request: ValidRequest, author: SealContext
) -> list[Item]:
    """Return finished items with ids, call ids and sealed reasoning."""
    words = request.words()
    filled = [fill_placeholders(draft, words) for draft in drafts]
    wanted = _keep_possible(filled, request)
    finished: list[Item] = []
    for index, draft in enumerate(wanted):
        partner = _find_partner(wanted, index)
        place = ItemPlace(author.response, index, partner)
        item = _finish_item(draft, place, request)
        if item["type"] in SEALED_TYPES:
            item["encrypted_content"] = _seal_item(item, request, author)
        author.prefix.read(canonicalize_item(item))
        finished.append(item)
    return finished


def _keep_possible(drafts: Sequence[Item], request: ValidRequest) -> list[Item]:
    """Leave out reasoning without effort and calls that are not allowed."""
    possible = [draft for draft in drafts if request.configuration.may_call(draft)]
    spoke = any(draft["type"] == "message" for draft in possible)
    if len(possible) < len(drafts) and not spoke:
        possible.append(build_message("I may not call that tool here."))
    return [
        draft for draft in possible if request.reasons or draft["type"] != "reasoning"
    ]


def fill_placeholders(value: Any, words: Mapping[str, str]) -> Any:
    """Fill the words that a draft leaves open."""
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, list):
        return [fill_placeholders(inner, words) for inner in value]
    if isinstance(value, dict):
        filled = {
            name: fill_placeholders(inner, words) for name, inner in value.items()
        }
        if value.get("annotations"):
            filled["annotations"] = [
                _moved_annotation(annotation, value["text"], words)
                for annotation in filled["annotations"]
            ]
        return filled
    return value


_POSITIONS = ("start_index", "end_index", "index")
"""The fields of an annotation that are places in its text."""


def _moved_annotation(annotation: Item, draft: str, words: Mapping[str, str]) -> Item:
    """Return an annotation of a draft's text at its place in the filled text."""
    moved = dict(annotation)
    for field in _POSITIONS:
        if field in moved:
            moved[field] = len(fill_placeholders(draft[: moved[field]], words))
    return moved


def _find_partner(items: Sequence[Item], index: int) -> int:
    """Return the place of what a reasoning led to, or of the reasoning before."""
    if items[index]["type"] == "reasoning":
        later = range(index + 1, len(items))
        led_to = (
            position for position in later if items[position]["type"] != "reasoning"
        )
        return next(led_to, NO_PARTNER)
    after_reasoning = index and items[index - 1]["type"] == "reasoning"
    return index - 1 if after_reasoning else NO_PARTNER


def _finish_item(draft: Item, place: ItemPlace, request: ValidRequest) -> Item:
    kind = draft["type"]
    item: Item = {"id": place.id(PREFIXES[kind]), **draft}
    if kind not in STATELESS:
        item.setdefault("status", "completed")
    if kind in ("function_call", "custom_tool_call"):
        item.setdefault("call_id", make_call_id(place.response, place.index))
        namespace = request.configuration.namespace_of(item, request.model)
        item |= {"namespace": namespace} if namespace else {}
    if kind == "message" and request.model.series >= FIRST_PHASE_VERSION:
        item.setdefault("phase", "final_answer")
    if kind == "reasoning" and not request.wants_summary:
        item["summary"] = []
    return _drop_unrequested(item, request)


def _drop_unrequested(item: Item, request: ValidRequest) -> Item:
    wish, field = INCLUDE_FIELDS.get(item["type"], ("", ""))
    if not field or wish in (request.body.get("include") or []):
        return item
    if "action" in item:
        action = {key: value for key, value in item["action"].items() if key != field}
        return {**item, "action": action}
    return {**item, field: None}


def _seal_item(item: Item, request: ValidRequest, author: SealContext) -> str:
    compacts = item["type"] == "compaction"
    return seal_content(
        Seal(
            item=item["id"],
            organisation=author.organization,
            family=request.model.family,
            prefix=author.prefix.digest(),
            end_user=request.body.get("safety_identifier"),
            tokens=REASONING_TOKENS if compacts else request.reasoning_tokens,
            tools=request.configuration.appended if compacts else (),
        )
    )
