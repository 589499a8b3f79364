"""The texts of an item that deltas can grow."""

from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses.items import item_type

TextPlace = tuple[str, int]
"""A kind of text and its part, as `events.Delta` has them."""


def item_texts(item: Mapping[str, Any]) -> Iterator[tuple[TextPlace, str]]:
    """Yield the place and the text of everything in `item` that deltas can grow."""
    match item_type(item):
        case "message":
            for part, content in _parts(item.get("content")):
                kind = "refusal" if content.get("type") == "refusal" else "text"
                yield (kind, part), _text_or_empty(content.get(kind))
        case "reasoning":
            for part, content in _parts(item.get("summary")):
                yield ("summary", part), _text_or_empty(content.get("text"))
            for part, content in _parts(item.get("content")):
                yield ("reasoning", part), _text_or_empty(content.get("text"))
        case "function_call" | "mcp_call":
            yield ("arguments", 0), _text_or_empty(item.get("arguments"))
        case "custom_tool_call":
            yield ("arguments", 0), _text_or_empty(item.get("input"))
        case "code_interpreter_call":
            yield ("code", 0), _text_or_empty(item.get("code"))


def _parts(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, part in enumerate(value if isinstance(value, list) else ()):
        if isinstance(part, Mapping):
            yield index, part


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
