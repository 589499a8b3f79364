"""What a guide lets the agent remember of a chat."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpt5_agent.ports import Guide
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item

Message = Mapping[str, Any]
"""A message of a chat, as the host sends it."""

WINDOW_TURNS = 10
"""How many turns a `sliding-window` keeps that does not say."""

_WINDOW = re.compile(r"sliding-window(?::([1-9]\d{0,3}))?")

_TOOL_PICTURES = "Here are the images from the tool results above."
"""How the host begins a message that it makes of a tool's pictures (misc.py:438)."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The messages that are left, with what to tell of those that are not."""

    messages: Sequence[Message]
    note: str = ""


def remembered(messages: Sequence[Message], policy: str) -> Remembered:
    """Return what a memory policy leaves of a chat, by whole turns.

    A turn is a message of the user with all that followed it; what the system says
    before the first stays. Raises InvalidRequest for a policy that there is not.
    """
    most = _window(policy.strip())
    starts = [place for place, _ in enumerate(messages) if begins_turn(messages, place)]
    if not most or len(starts) <= most:
        return Remembered(messages)
    first, kept_from = starts[0], starts[-most]
    head = [one for one in messages[:first] if one.get("role") == "system"]
    dropped = len(starts) - most
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    return Remembered(
        [*head, *messages[kept_from:]],
        f"The memory holds {most} turns, so {turns} left out. The model no longer "
        "knows them, and because the beginning of the chat changed, its cached prompt "
        "and its earlier reasoning are lost.",
    )


def memory_items(guide: Guide) -> list[Item]:
    """Return what the agent remembers before the chat begins, as one message."""
    texts = [text.strip() for text in guide.initial_memories if text.strip()]
    if not texts:
        return []
    listed = "\n".join(f"- {text}" for text in texts)
    text = f"<memories>\n{listed}\n</memories>"
    part = {"type": "input_text", "text": text}
    return [{"type": "message", "role": "developer", "content": [part]}]


def begins_turn(messages: Sequence[Message], place: int) -> bool:
    """Say whether a message is one that the user wrote.

    After tools with pictures the host makes one of its own.
    """
    if messages[place].get("role") != "user":
        return False
    after_tool = place > 0 and messages[place - 1].get("role") == "tool"
    return not (after_tool and _first_text(messages[place]).startswith(_TOOL_PICTURES))


def _first_text(message: Message) -> str:
    content = message.get("content")
    part = content[0] if isinstance(content, list) and content else content
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else ""


def _window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all."""
    if policy in ("", "all"):
        return 0
    match = _WINDOW.fullmatch(policy)
    if match:
        return int(match[1] or WINDOW_TURNS)
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
