"""Ids that look real but also say how items belong together.

The hex part of an item's id holds its response, its place and its partner's place, so
that a replayed pair can be checked without remembering any response.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "computer_call": "cu",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "compaction": "cmp",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
}
LONGEST = 64
NO_PARTNER = 255
SHAPE = re.compile(
    r"^(?P<prefix>[a-z]+)_(?P<response>[0-9a-f]{24})"
    r"(?P<place>[0-9a-f]{2})(?P<partner>[0-9a-f]{2})(?P<check>[0-9a-f]{20})$"
)


@dataclass(frozen=True)
class Place:
    """Where an item stood: its response, its index, the index of its partner."""

    response: str
    index: int
    partner: int = NO_PARTNER

    def id(self, prefix: str) -> str:
        """Return the id of the item that stood here."""
        head = f"{self.response}{self.index:02x}{self.partner:02x}"
        return f"{prefix}_{head}{digest(head)[:20]}"


def digest(text: str) -> str:
    """Return a hex digest that stands for randomness."""
    return hashlib.sha256(f"id {text}".encode()).hexdigest()


def place_of(id: str) -> Place | None:
    """Read the place out of one of our ids, None for a foreign one."""
    found = SHAPE.match(id)
    if found is None:
        return None
    place = Place(found["response"], int(found["place"], 16), int(found["partner"], 16))
    return place if place.id(found["prefix"]) == id else None


def response_id(key: str) -> str:
    """Return the id of the response with this key of 24 hex digits."""
    return f"resp_{key}{digest(key)[:24]}"


def call_id(response: str, index: int) -> str:
    """Return the ``call_id`` of the call at a place."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    number = int(digest(f"call {response} {index}"), 16)
    letters = []
    for _ in range(24):
        number, rest = divmod(number, len(alphabet))
        letters.append(alphabet[rest])
    return f"call_{''.join(letters)}"
