"""Small jobs that the host gives a model: titles, tags, follow-up questions.

The host names the job itself; its prompt quotes the chat, markers included.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from owui_chat.markers import without_markers


def task_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a task without the markers of the chat they quote."""
    return [
        {**message, "content": _clean(message.get("content"))} for message in messages
    ]


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; an empty one where it failed.

    The host would take the text of an error for a title.
    """
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    if isinstance(content, str):
        return without_markers(content)
    if not isinstance(content, list):
        return content
    return [_clean_part(part) for part in content]


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": without_markers(part["text"])}
    return part
