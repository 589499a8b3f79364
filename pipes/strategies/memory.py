"""What a strategy remembers: memories from before the chat, and a window of the chat."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import INSTRUCTING, Item, text_message
from openai_responses.json_input import as_mapping, as_text
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.wording import plural
from strategies.guide import Guide

Message = Mapping[str, Any]
"""A message of a chat, as the host sends it."""

_DEFAULT_WINDOW_TURNS = 10
_WINDOW_PATTERN = re.compile(r"sliding-window(?::([1-9]\d{0,3}))?")


def apply_memory_policy(
    messages: Sequence[Message], policy: str, *, has_wish: bool = False
) -> tuple[Sequence[Message], str]:
    """Return what a memory policy leaves of a chat, and a note about the rest.

    It leaves whole turns: messages of the user, each with all that follows it.
    Instructions before the first turn stay. With `has_wish` the last message says how to
    answer the turn before it again, and is none itself. Raises InvalidRequest for an
    unknown policy.
    """
    window = _parse_window(policy.strip())
    starts = find_turn_starts(messages)
    if has_wish:
        starts = starts[:-1]
    if window == 0 or len(starts) <= window:
        return messages, ""
    before_first_turn = messages[: starts[0]]
    instructions = [
        message
        for message in before_first_turn
        if as_mapping(message).get("role") in INSTRUCTING
    ]
    remembered = messages[starts[-window] :]
    dropped = len(starts) - window
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    note = (
        f"The agent remembers {plural(window, 'turn')}, so {turns} left out. Because the "
        "beginning of the chat changed, its cached prompt and its earlier reasoning are "
        "lost."
    )
    return [*instructions, *remembered], note


def build_memory_items(guide: Guide) -> list[Item]:
    """Return the guide's memories as one message."""
    texts = [text.strip() for text in guide.initial_memories if text.strip()]
    if not texts:
        return []
    listed = "\n".join(f"- {text}" for text in texts)
    return [text_message("developer", f"<memories>\n{listed}\n</memories>")]


def find_turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages that the user wrote.

    After tools with images the host adds a user message of its own.
    """
    starts: list[int] = []
    previous_role: object = None
    for index, message in enumerate(messages):
        role = as_mapping(message).get("role")  # parsing refuses others
        follows_tool = previous_role == "tool"
        if role == "user" and not (follows_tool and _has_tool_images(message)):
            starts.append(index)
        previous_role = role
    return starts


def _has_tool_images(message: Message) -> bool:
    """Say whether a message is the host's own with the images of tools."""
    content = message.get("content")
    if isinstance(content, list) and content:
        content = content[0]
    if isinstance(content, Mapping):
        content = content.get("text")
    return as_text(content).startswith(TOOL_IMAGES_PREFIX)


def _parse_window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all. Raises InvalidRequest."""
    if policy in ("", "all"):
        return 0
    match = _WINDOW_PATTERN.fullmatch(policy)
    if match:
        return int(match[1] or _DEFAULT_WINDOW_TURNS)
    if policy == "vector-db":
        raise InvalidRequest(
            "The guide asks for the memory policy vector-db, which would need a "
            "database that agents do not have here. An administrator has to choose "
            "sliding-window or leave the policy empty.",
            remedy="setup",
        )
    raise InvalidRequest(
        "The guide names an unknown memory policy. An administrator has "
        "to write sliding-window, sliding-window:20 for another number of turns, or "
        "nothing.",
        remedy="setup",
    )
