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
    unique_rows = {
        json.dumps(row, sort_keys=True, default=str): row
        for row in rows
        if row is not None
    }
    sources: dict[ContextSource, None] = {}  # in their order, each once
    for number, row in enumerate(unique_rows.values(), 1):
        source = _read_entry(f"Context {number}", row)
        if source.text.strip():
            sources[source] = None
    return list(sources)


def format_context(entries: list[ContextSource]) -> str:
    """Return the entries as the model reads them."""
    if not entries:
        return ""
    texts = [
        f'<entry name="{entry.name}">\n{entry.text}\n</entry>' for entry in entries
    ]
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _read_entry(default_name: str, row: object) -> ContextSource:
    """Return an entry of a context; without a known text field all of it is the text."""
    if isinstance(row, str):
        return ContextSource(default_name, row)
    entry = as_mapping(row)
    fields = {**as_mapping(entry.get("metadata")), **entry}
    text = _first_text_field(entry, _TEXT_KEYS)
    return ContextSource(
        name=_first_text_field(fields, _NAME_KEYS) or default_name,
        text=text or json.dumps(row, ensure_ascii=False, default=str),
        url=_first_text_field(fields, _URL_KEYS),
    )


def _first_text_field(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first field that is a text and not blank; empty without one."""
    for key in keys:
        text = as_text(row.get(key))
        if text.strip():
            return text
    return ""


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
    window = _parse_window(policy.strip())
    starts = find_turn_starts(messages)
    if window == 0 or len(starts) <= window:
        return _MemoryWindow(messages)
    head = [
        message for message in messages[: starts[0]] if message.get("role") == "system"
    ]
    dropped = len(starts) - window
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    return _MemoryWindow(
        [*head, *messages[starts[-window] :]],
        f"The memory holds {window} turns, so {turns} left out. The model no longer "
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
    """Return the indexes of the messages that the user wrote.

    After tools with images the host adds a user message of its own.
    """
    starts: list[int] = []
    previous_role: object = None
    for index, message in enumerate(messages):
        role = message.get("role")
        follows_tool = previous_role == "tool"
        if role == "user" and not (follows_tool and _has_tool_images(message)):
            starts.append(index)
        previous_role = role
    return starts


def _has_tool_images(message: Message) -> bool:
    """Say whether a message begins as that of the host with the pictures of tools."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, Mapping) else first
    return as_text(text).startswith(TOOL_IMAGES_PREFIX)


def _parse_window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all. Raises InvalidRequest."""
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
