"""The Response object around the items."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.asked import Asked
from simulator.ids import response_id
from simulator.tokens import REASONING_TOKENS, count_tokens

Item = dict[str, Any]
NO_TOOL_USAGE = {
    "image_gen": {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "total_tokens": 0,
    },
    "web_search": {"num_requests": 0},
}


@dataclass(frozen=True)
class Prompt:
    """How long the prompt was, and how much of it was known."""

    tokens: int
    cached: int
    writes_cache: bool


def open_response(
    asked: Asked, key: str, now: float, removed: Sequence[Mapping[str, str]]
) -> Item:
    """Return a response in progress that echoes the request."""
    body = asked.body
    opened: Item = {
        "id": response_id(key),
        "object": "response",
        "created_at": int(now),
        "status": "queued" if body.get("background") else "in_progress",
        "background": body.get("background") is True,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "metadata": body.get("metadata") or {},
        "model": asked.model.snapshot or asked.model.id,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": body.get("prompt_cache_retention"),
        "reasoning": _reasoning(asked),
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": _tier(body.get("service_tier")),
        "temperature": body.get("temperature", 1.0),
        "text": _text(body.get("text") or {}),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": list(body.get("tools") or []),
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
    }
    if asked.model.binds_reasoning_to_prefix:
        opened["input_transformations"] = [dict(one) for one in removed]
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


def usage_of(prompt: Prompt, output: Sequence[Item]) -> Item:
    """Count what a response cost."""
    thoughts = sum(REASONING_TOKENS for one in output if one["type"] == "reasoning")
    spoken = [one for one in output if one["type"] != "reasoning"]
    text = json.dumps(spoken, ensure_ascii=False) if spoken else ""
    written = thoughts + count_tokens(text)
    new = prompt.tokens - prompt.cached
    writes = new if prompt.writes_cache and prompt.tokens >= 1024 else 0
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


def _reasoning(asked: Asked) -> Item:
    given = asked.body.get("reasoning") or {}
    summary = given.get("summary")
    shown = "detailed" if summary == "auto" else summary
    return {**given, "effort": asked.effort, "summary": shown}


def _text(given: Mapping[str, Any]) -> Item:
    return {
        "format": given.get("format") or {"type": "text"},
        "verbosity": given.get("verbosity") or "medium",
    }


def _tier(asked: str | None) -> str:
    """Return the tier that was used: ``fast`` shows as ``priority``."""
    return {"fast": "priority", "auto": "default"}.get(asked or "auto", asked or "")
