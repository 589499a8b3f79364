"""Whether the items of an input belong together.

The rules are numbered as in docs/reference/responses-api.md, "Refusals of input items".

Source: the reports that that page lists.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.checks.mcp import check_approvals
from simulator.checks.tools import check_name
from simulator.refusals import check_length, refuse
from simulator.sealing import (
    MAX_ID_CHARACTERS,
    NO_PARTNER,
    PREFIXES,
    ForeignSeal,
    ItemPosition,
    parse_item_id,
    unseal_content,
)

Item = Mapping[str, Any]
ID_CHARACTERS = re.compile(r"[A-Za-z0-9_-]+")
# The type of call that each type of output answers, and its name in the API's messages.
ANSWER_TYPES = {
    "function_call_output": ("function_call", "function call"),
    "custom_tool_call_output": ("custom_tool_call", "custom tool call"),
}
CALL_TYPES = dict(ANSWER_TYPES.values())


def check_items(items: Sequence[Item], stored: bool) -> None:
    """Raise the refusal for the first item that is out of place."""
    for index, item in enumerate(items):
        _check_id(item, f"input[{index}]")
    _refuse_duplicates(items)
    for item in items:
        # Rule 3: what only a stored item could answer, image results too.
        kind = read_item_type(item)
        id = item.get("id")
        is_bare = kind == "reasoning" and id and not item.get("encrypted_content")
        if is_bare or kind in ("item_reference", "image_generation_call"):
            raise refuse("unknown_item" if stored else "unstored_item", id=id)
    _check_pairs(items)
    check_approvals(items)
    for index, item in enumerate(items):
        _check_partner(items, index, item)


def read_item_type(item: Item) -> str:
    """Return the type of an item, which a message may leave out."""
    kind: str = item.get("type") or ("message" if "role" in item else "item_reference")
    return kind


def read_item_id(item: Item) -> str | None:
    """Return an item's id; sealed reasoning knows its own when it was left out."""
    id: str | None = item.get("id")
    if id is None and item.get("encrypted_content"):
        with contextlib.suppress(ForeignSeal):
            return unseal_content(item["encrypted_content"]).item
    return id


def _check_id(item: Item, path: str) -> None:
    """Check prefix, length, alphabet of ids: rule 6."""
    kind = read_item_type(item)
    for name in ("id", "call_id"):
        value = item.get(name)
        if value == "":
            raise refuse("empty", path=f"{path}.{name}")
        check_length(value, MAX_ID_CHARACTERS, f"{path}.{name}")
    if kind in CALL_TYPES:
        check_name(item["name"], f"{path}.name")
    id = item.get("id")
    prefix = PREFIXES.get(kind)
    if id is None or prefix is None:
        return
    if not id.startswith(prefix):
        message = f"Expected an ID that begins with '{prefix}'."
        raise refuse("item_id", path=path, id=id, message=message)
    if not ID_CHARACTERS.fullmatch(id):
        message = (
            "Expected an ID that contains letters, numbers, underscores, or dashes, "
            "but this value contained additional characters."
        )
        raise refuse("item_id", path=path, id=id, message=message)


def _refuse_duplicates(items: Sequence[Item]) -> None:
    """Refuse a second item of one id, or a second call of one call_id: rule 7."""
    seen: set[tuple[str, str]] = set()
    for item in items:
        kind = read_item_type(item)
        keys = [("id", item["id"])] if item.get("id") else []
        if item.get("call_id") and (kind in CALL_TYPES or kind in ANSWER_TYPES):
            keys.append((kind, item["call_id"]))
        for key in keys:
            if key in seen:
                raise refuse("duplicate_item", id=key[1])
            seen.add(key)


def _check_pairs(items: Sequence[Item]) -> None:
    """Refuse a call without output and the reverse: rule 5."""
    opened: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    for item in items:
        kind = read_item_type(item)
        if kind in CALL_TYPES:
            opened.add((kind, item["call_id"]))
        elif kind in ANSWER_TYPES:
            call_type, words = ANSWER_TYPES[kind]
            call = (call_type, item["call_id"])
            if call not in opened:
                raise refuse("output_without_call", words=words, id=item["call_id"])
            answered.add(call)
    for item in items:
        kind = read_item_type(item)
        if kind in CALL_TYPES and (kind, item["call_id"]) not in answered:
            words = CALL_TYPES[kind]
            raise refuse("call_without_output", words=words, id=item["call_id"])


def _check_partner(items: Sequence[Item], index: int, item: Item) -> None:
    """Refuse half of a pair of reasoning and what it led to: rules 1, 2."""
    kind = read_item_type(item)
    id = item.get("id")
    if not id:
        return
    position = parse_item_id(id)
    if kind == "reasoning":
        rest = (it for it in items[index + 1 :] if read_item_type(it) != "reasoning")
        follower = next(rest, None)
        if follower is None or not _may_follow(follower, position):
            raise refuse("reasoning_without_item", id=id)
    elif position is not None and position.partner != NO_PARTNER:
        partner = ItemPosition(position.response, position.partner, position.index)
        reasoning_id = partner.id("rs")
        earlier_ids = {read_item_id(earlier) for earlier in items[:index]}
        if reasoning_id not in earlier_ids:
            raise refuse(
                "item_without_reasoning", id=id, kind=kind, reasoning=reasoning_id
            )


def _may_follow(follower: Item, position: ItemPosition | None) -> bool:
    """Tell whether an item can be the one that reasoning led to: rule 1.

    Recorded: a message without an id is not that item, a call without an id is.
    """
    if not follower.get("id"):
        return read_item_type(follower) in CALL_TYPES
    author = parse_item_id(follower["id"])
    if position is None:
        return bool(follower.get("role", "assistant") == "assistant")
    if author is None:
        return False
    is_same_response = author.response == position.response
    return is_same_response and author.index == position.partner
