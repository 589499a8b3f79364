"""Turns that ride in the host's `reasoning_details`, written and read.

The host stores what a reasoning item carries and gives it back with later requests for
the same model, but loses its order and its place in the message (open-webui.md §0.3,
§14). So each entry says to which turn it belongs, with its place there:

    {"type": "reasoning.encrypted", "data": ..., "item": the rest of the reasoning}
    {"type": "openai_responses.item", "item": ..., "shown": a text, or its length}
    {"type": "openai_responses.turn", "origin": ..., "notes": ...}

A message goes without its text where that is shown as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from openai_responses.items import (
    Item,
    content_parts,
    is_reasoning,
    item_type,
)
from openai_responses.origin import Origin, read_origin
from openai_responses.replay import given_back

_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


@dataclass(frozen=True, slots=True)
class CarriedItem:
    """An item as it is sent again.

    `shown` is the text that the host has of it, or its length where the item, a
    message, goes without its own; nothing for what has no text there.
    """

    item: Item
    shown: str | int = ""


@dataclass(frozen=True, slots=True)
class CarriedTurn:
    """A turn as it came back, with what was noted of it."""

    items: tuple[CarriedItem, ...]
    origin: Origin
    notes: Mapping[str, Any]


def turn_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
) -> list[Item]:
    """Return the entries of a turn, from its items with the text shown of each.

    `name` tells the turn from others of its message.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes)}
    entries = [
        _entry(back, shown)
        for item, shown in items
        for back in given_back([item], with_reasoning=True)
    ]
    return [
        {**entry, "format": _FORMAT, "turn": name, "index": place}
        for place, entry in enumerate([head, *entries])
    ]


def carried_turns(message: Mapping[str, Any]) -> list[CarriedTurn]:
    """Return the turns that a message of the host carries, in their order."""
    carried = message.get("reasoning_details")
    entries = [e for e in carried if _is_entry(e)] if isinstance(carried, list) else []
    order = list(dict.fromkeys(entry["turn"] for entry in entries))
    entries.sort(key=lambda entry: (order.index(entry["turn"]), entry["index"]))
    groups = groupby(entries, lambda entry: entry["turn"])
    return [_turn(list(group)) for _, group in groups]


def _entry(item: Item, shown: str) -> Item:
    if is_reasoning(item):
        rest = {k: v for k, v in item.items() if k != "encrypted_content"}
        return {"type": _REASONING, "data": item["encrypted_content"], "item": rest}
    typed = {"type": item_type(item), **item}  # a message in its short form has none
    if not _says_just(item, shown):
        return {"type": _ITEM, "item": typed, "shown": shown}
    [part] = content_parts(item["content"])
    rest = {k: v for k, v in part.items() if k != "text"}
    return {"type": _ITEM, "item": {**typed, "content": [rest]}, "shown": len(shown)}


def _says_just(item: Item, shown: str) -> bool:
    """Say whether a message holds one text, and the host will give back just that.

    It strips the ends of texts.
    """
    parts = content_parts(item.get("content"))
    whole = bool(shown) and shown == shown.strip()
    return whole and [part.get("text") for part in parts] == [shown]


def _is_entry(entry: object) -> bool:
    """Say whether an entry is one of ours, and whole."""
    if not isinstance(entry, Mapping) or entry.get("format") != _FORMAT:
        return False
    if not (isinstance(entry.get("turn"), str) and isinstance(entry.get("index"), int)):
        return False
    match entry.get("type"):
        case "reasoning.encrypted":
            return isinstance(entry.get("item"), dict) and bool(entry.get("data"))
        case "openai_responses.item":
            return isinstance(entry.get("item"), dict) and "type" in entry["item"]
    return entry.get("type") == _TURN


def _turn(entries: Sequence[Item]) -> CarriedTurn:
    heads = [entry for entry in entries if entry["type"] == _TURN]
    head = heads[0] if heads else {}
    items = tuple(_carried(entry) for entry in entries if entry["type"] != _TURN)
    notes = head.get("notes")
    return CarriedTurn(
        items,
        read_origin(head.get("origin"), ""),
        notes if isinstance(notes, Mapping) else {},
    )


def _carried(entry: Item) -> CarriedItem:
    if entry["type"] == _REASONING:
        return CarriedItem({**entry["item"], "encrypted_content": entry["data"]})
    shown = entry.get("shown")
    return CarriedItem(entry["item"], shown if isinstance(shown, str | int) else "")
