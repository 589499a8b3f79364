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
    asked: ValidRequest, key: str, now: float, removed: Sequence[Mapping[str, str]]
) -> Item:
    """Return a response in progress that echoes the request.

    The fields and their defaults are those of recorded responses of summer 2026.
    """
    body = asked.body
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
        "model": asked.model.snapshot or asked.model.id,
        "moderation": None,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": _retention(asked),
        "reasoning": _reasoning(asked),
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": read_tier(body),
        "store": body.get("store") is not False,
        "temperature": _or_default(body.get("temperature"), 1.0),
        "text": _text(asked),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": list(asked.configuration.declared),
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": _or_default(body.get("top_p"), asked.model.default_top_p),
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
    }
    if asked.model.series >= (6, 0):
        opened["access_programs"] = None
    if asked.model.binds_reasoning_to_prefix:
        opened["input_transformations"] = [dict(one) for one in removed]
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
    kinds = [one["type"] for one in output]
    thoughts = prompt.reasoning_tokens * kinds.count("reasoning")
    spoken = [one for one in output if one["type"] != "reasoning"]
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


def _retention(asked: ValidRequest) -> str:
    given: str | None = asked.body.get("prompt_cache_retention")
    return given or asked.model.default_retention


def _reasoning(asked: ValidRequest) -> Item:
    if not asked.model.reasons:
        return {"context": None, "effort": None, "summary": None}
    given = asked.body.get("reasoning") or {}
    context = given.get("context") or "auto"
    summary = given.get("summary")
    return {
        **given,
        "context": asked.model.default_context if context == "auto" else context,
        "effort": asked.effort,
        "mode": given.get("mode") or "standard",
        "summary": "detailed" if summary == "auto" else summary,
    }


def _text(asked: ValidRequest) -> Item:
    """Echo what is in force; that an update of the format shows here is assumed."""
    verbosity = (asked.body.get("text") or {}).get("verbosity")
    format = dict(asked.configuration.format)
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
    *("reasoning", "compaction", "configuration_update"),
    *("mcp_list_tools", "mcp_approval_request"),
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
    organisation: str
    prefix: PrefixHash


def fill_drafts(
    drafts: Sequence[Item], asked: ValidRequest, author: SealContext
) -> list[Item]:
    """Return finished items with ids, call ids and sealed reasoning."""
    words = asked.words()
    filled = [fill_placeholders(one, words) for one in drafts]
    wanted = _keep_possible(filled, asked)
    finished: list[Item] = []
    for index, draft in enumerate(wanted):
        partner = _find_partner(wanted, index)
        place = ItemPlace(author.response, index, partner)
        item = _finish_item(draft, place, asked)
        if item["type"] in SEALED_TYPES:
            item["encrypted_content"] = _seal_item(item, asked, author)
        author.prefix.read(canonicalize_item(item))
        finished.append(item)
    return finished


def _keep_possible(drafts: Sequence[Item], asked: ValidRequest) -> list[Item]:
    """Leave out reasoning without effort and calls that are not allowed."""
    possible = [one for one in drafts if asked.configuration.may_call(one)]
    spoke = any(one["type"] == "message" for one in possible)
    if len(possible) < len(drafts) and not spoke:
        possible.append(build_message("I may not call that tool here."))
    return [one for one in possible if asked.reasons or one["type"] != "reasoning"]


def fill_placeholders(value: Any, words: Mapping[str, str]) -> Any:
    """Fill the words that a draft leaves open."""
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, list):
        return [fill_placeholders(inner, words) for inner in value]
    if isinstance(value, dict):
        return {name: fill_placeholders(inner, words) for name, inner in value.items()}
    return value


def _find_partner(items: Sequence[Item], index: int) -> int:
    """Return the place of what a reasoning led to, or of the reasoning before."""
    if items[index]["type"] == "reasoning":
        later = range(index + 1, len(items))
        led_to = (one for one in later if items[one]["type"] != "reasoning")
        return next(led_to, NO_PARTNER)
    after_reasoning = index and items[index - 1]["type"] == "reasoning"
    return index - 1 if after_reasoning else NO_PARTNER


def _finish_item(draft: Item, place: ItemPlace, asked: ValidRequest) -> Item:
    kind = draft["type"]
    item: Item = {"id": place.id(PREFIXES[kind]), **draft}
    if kind not in STATELESS:
        item.setdefault("status", "completed")
    if kind in ("function_call", "custom_tool_call"):
        item.setdefault("call_id", make_call_id(place.response, place.index))
        namespace = asked.configuration.namespace_of(item)
        item |= {"namespace": namespace} if namespace else {}
    if kind == "message" and asked.model.series >= FIRST_PHASE_VERSION:
        item.setdefault("phase", "final_answer")
    if kind == "reasoning" and not asked.wants_summary:
        item["summary"] = []
    return _drop_unrequested(item, asked)


def _drop_unrequested(item: Item, asked: ValidRequest) -> Item:
    wish, field = INCLUDE_FIELDS.get(item["type"], ("", ""))
    if not field or wish in (asked.body.get("include") or []):
        return item
    if "action" in item:
        action = {key: one for key, one in item["action"].items() if key != field}
        return {**item, "action": action}
    return {**item, field: None}


def _seal_item(item: Item, asked: ValidRequest, author: SealContext) -> str:
    compacts = item["type"] == "compaction"
    return seal_content(
        Seal(
            item=item["id"],
            organisation=author.organisation,
            family=asked.model.family,
            prefix=author.prefix.digest(),
            end_user=asked.body.get("safety_identifier"),
            tokens=REASONING_TOKENS if compacts else asked.reasoning_tokens,
            tools=asked.configuration.appended if compacts else (),
        )
    )
