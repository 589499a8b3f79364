"""What the model reads beside its instruction: context, memories, a window of the chat."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.events import ContextSource
from gpt5_agent.ports import Guide
from gpt5_agent.request import Message
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_mapping, as_text
from owui_chat.host_tools import TOOL_IMAGES_PREFIX

_TEXT_KEYS = ("content", "text", "page_content", "snippet", "document")
_NAME_KEYS = ("title", "name", "source", "file_name")
_URL_KEYS = ("url", "link", "uri")


def read_context(context: object) -> list[ContextSource]:
    """Return the entries of a context, each once: a text, an object, or a list."""
    rows = context if isinstance(context, list) else [context]
    unique = {
        json.dumps(row, sort_keys=True, default=str): row
        for row in rows
        if row is not None
    }
    found = [
        _read_entry(f"Context {n}", row) for n, row in enumerate(unique.values(), 1)
    ]
    return list(dict.fromkeys(source for source in found if source.text.strip()))


def format_context(entries: list[ContextSource]) -> str:
    """Return the entries as the model reads them."""
    if not entries:
        return ""
    texts = (f'<entry name="{e.name}">\n{e.text}\n</entry>' for e in entries)
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _read_entry(default_name: str, row: object) -> ContextSource:
    if isinstance(row, str):
        return ContextSource(default_name, row)
    entry = as_mapping(row)
    more = {**as_mapping(entry.get("metadata")), **entry}
    return ContextSource(
        _first_text_field(more, _NAME_KEYS) or default_name,
        _first_text_field(entry, _TEXT_KEYS)
        or json.dumps(row, ensure_ascii=False, default=str),
        _first_text_field(more, _URL_KEYS),
    )


def _first_text_field(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    texts = (as_text(row.get(key)) for key in keys)
    return next((text for text in texts if text.strip()), "")


_DEFAULT_WINDOW_TURNS = 10
_WINDOW_PATTERN = re.compile(r"sliding-window(?::([1-9]\d{0,3}))?")


class _MemoryWindow(NamedTuple):
    """The messages that remain, and a note about the others."""

    messages: Sequence[Message]
    note: str = ""


def apply_memory_policy(messages: Sequence[Message], policy: str) -> _MemoryWindow:
    """Return what a memory policy leaves of a chat, in whole turns.

    A turn is a message of the user with all that follows it. System messages before the
    first turn stay. Raises InvalidRequest for an unknown policy.
    """
    most = _parse_window(policy.strip())
    starts = find_turn_starts(messages)
    if not most or len(starts) <= most:
        return _MemoryWindow(messages)
    first, kept_from = starts[0], starts[-most]
    head = [each for each in messages[:first] if each.get("role") == "system"]
    dropped = len(starts) - most
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    return _MemoryWindow(
        [*head, *messages[kept_from:]],
        f"The memory holds {most} turns, so {turns} left out. The model no longer "
        "knows them, and because the beginning of the chat changed, its cached prompt "
        "and its earlier reasoning are lost.",
    )


def build_memory_items(guide: Guide) -> list[Item]:
    """Return the guide's memories as one message."""
    texts = [text.strip() for text in guide.initial_memories if text.strip()]
    if not texts:
        return []
    listed = "\n".join(f"- {text}" for text in texts)
    text = f"<memories>\n{listed}\n</memories>"
    part = {"type": "input_text", "text": text}
    return [{"type": "message", "role": "developer", "content": [part]}]


def find_turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the places of the messages that the user wrote.

    After tools with images the host adds a user message of its own.
    """
    places = enumerate(messages)
    return [
        place
        for place, message in places
        if message.get("role") == "user"
        and not (place > 0 and _has_tool_images(messages[place - 1], message))
    ]


def _has_tool_images(previous: Message, message: Message) -> bool:
    content = message.get("content")
    part = content[0] if isinstance(content, list) and content else content
    text = as_text(part.get("text") if isinstance(part, Mapping) else part)
    return previous.get("role") == "tool" and text.startswith(TOOL_IMAGES_PREFIX)


def _parse_window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all."""
    if policy in ("", "all"):
        return 0
    match = _WINDOW_PATTERN.fullmatch(policy)
    if match:
        return int(match[1] or _DEFAULT_WINDOW_TURNS)
    if policy == "vector-db":
        raise InvalidRequest(
            "The preset asks for the memory policy vector-db, which would need a "
            "database that this pipeline does not have. An administrator has to choose "
            "sliding-window or leave the policy empty."
        )
    raise InvalidRequest(
        "The preset asks for a memory policy that there is not. An administrator has "
        "to write sliding-window, sliding-window:20 for another number of turns, or "
        "nothing."
    )
