"""Checks values against the API's limits: ranges, lengths, the format of the text."""

import json
import re
from collections.abc import Mapping
from typing import Any

from simulator.checks.schemas import check_format, check_schemas
from simulator.checks.tools import check_choice, check_name, check_tools, list_tools
from simulator.configuration import is_update, list_items
from simulator.models import ModelFacts
from simulator.refusals import check_length, check_range, refuse
from simulator.tokens import check_compaction

Body = Mapping[str, Any]
MAX_LENGTHS = {"prompt_cache_key": 64, "safety_identifier": 128, "user": 128}
Ranges = Mapping[str, tuple[int, int | None]]
DECIMAL_RANGES: Ranges = {"temperature": (0, 2), "top_p": (0, 1)}
INTEGER_RANGES: Ranges = {
    "max_output_tokens": (16, None),
    "top_logprobs": (0, 20),
    "max_tool_calls": (1, None),
}
MAX_TEXT_CHARACTERS = 10_485_760
MAX_ARGUMENTS_CHARACTERS = 1_048_576
MAX_INPUT_ITEMS = 16_384
ITEM_TEXTS = {
    **dict.fromkeys(("content", "output", "encrypted_content"), MAX_TEXT_CHARACTERS),
    **dict.fromkeys(("arguments", "input"), MAX_ARGUMENTS_CHARACTERS),
}
JSON_WORD = re.compile("json", re.IGNORECASE)


def check_ranges(body: Body) -> None:
    """Refuse the first number outside its range, whatever the model.

    Recorded: too few output tokens are refused before the model is looked up; of the
    other numbers it is assumed. Source: reports of OpenAI's users; the ends of
    `max_output_tokens`, `max_tool_calls` and `top_logprobs` are assumed.
    """
    for kind, ranges in (("decimal", DECIMAL_RANGES), ("integer", INTEGER_RANGES)):
        for name, (low, high) in ranges.items():
            check_range(name, kind, body.get(name), low, high)


def check_limits(body: Body, model: ModelFacts) -> None:
    """Raise the refusal for the first value beyond a limit.

    Source: types of openai 3.54.0; guide "Background mode".
    """
    for name, limit in MAX_LENGTHS.items():
        check_length(body.get(name), limit, name)
    wanted = body.get("max_output_tokens")
    check_range("max_output_tokens", "integer", wanted, 0, model.max_output)
    _check_metadata(body.get("metadata") or {})
    # Several clients of the Responses API met it in 2026. On its endpoint for compaction
    # the limit was 131,072 in September (openai/codex 46353).
    count = len(list_items(body))
    if count > MAX_INPUT_ITEMS:
        raise refuse("array_length", path="input", limit=MAX_INPUT_ITEMS, length=count)
    _check_texts(body)
    _check_formats(body)
    check_tools(body)
    for path, listed in list_tools(body):
        check_schemas(listed, path)
    check_compaction(body)
    check_choice(body, model)
    _check_completion_window(body)


def _check_completion_window(body: Body) -> None:
    """Source: types of openai 3.57.0; the wording is assumed."""
    window = (body.get("background_options") or {}).get("completion_window")
    if window in (None, "soonest"):
        return
    is_standard = body.get("service_tier") in (None, "auto", "default")
    if not body.get("background") or body.get("stream") or not is_standard:
        raise refuse("completion_window")


def _check_metadata(metadata: Mapping[str, str]) -> None:
    """Source: types of openai 3.54.0; the wording is assumed."""
    if len(metadata) > 16:
        raise refuse("metadata_size", count=len(metadata))
    for name, value in metadata.items():
        check_length(name, 64, "metadata")
        check_length(value, 512, f"metadata.{name}")


def _check_texts(body: Body) -> None:
    """Refuse the first text that is too long."""
    _check_text("instructions", body.get("instructions"))
    body_input = body.get("input")
    if isinstance(body_input, str):
        _check_text("input", body_input)
    for index, item in enumerate(list_items(body)):
        for name, limit in ITEM_TEXTS.items():
            _check_text(f"input[{index}].{name}", item.get(name), limit)


def _check_text(path: str, value: Any, limit: int = MAX_TEXT_CHARACTERS) -> None:
    """Refuse a text, or that of a part, which is too long.

    Source: bluebox 31, of `content`; openai/codex 13270, of `arguments`; of the `input`
    of a custom call and other texts assumed.
    """
    if isinstance(value, list):
        for index, part in enumerate(value):
            _check_text(f"{path}[{index}].text", part.get("text"), limit)
    if isinstance(value, str):
        check_length(value, limit, path)


def _check_formats(body: Body) -> None:
    """Refuse a format with an invalid name or schema, or `json_object` without the word.

    Source: reports of OpenAI's users.
    """
    holders = [("text.format", body)]
    for index, item in enumerate(list_items(body)):
        if is_update(item):
            holders.append((f"input[{index}].text.format", item))
    for path, holder in holders:
        format = (holder.get("text") or {}).get("format") or {}
        if format.get("type") == "json_schema":
            check_name(format["name"], f"{path}.name")
            check_format(format, path)
    if ((body.get("text") or {}).get("format") or {}).get("type") == "json_object":
        messages = body.get("input")
        if isinstance(messages, list):
            messages = [item for item in messages if "role" in item]
        if not JSON_WORD.search(json.dumps(messages)):
            raise refuse("json_word")
