"""Whether the items of an input belong together.

The rules are numbered as in responses-api.md §2.1.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.ids import LONGEST, NO_PARTNER, PREFIXES, Place, place_of
from simulator.mcp_check import check_approvals
from simulator.refusals import Refusal, too_long
from simulator.sealing import NotOurs, unseal

Item = Mapping[str, Any]
ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
# What each kind of output answers, and how the API's sentences call the call.
ANSWERS = {
    "function_call_output": ("function_call", "function call"),
    "custom_tool_call_output": ("custom_tool_call", "custom tool call"),
}
CALLS = dict(ANSWERS.values())


def check_items(items: Sequence[Item], stored: bool) -> None:
    """Raise the refusal for the first item that is out of place."""
    for index, item in enumerate(items):
        _check_id(item, f"input[{index}]")
    _refuse_duplicates(items)
    for item in items:
        _refuse_lookup(item, stored)
    _check_pairs(items)
    check_approvals(items)
    for index, item in enumerate(items):
        _check_partner(items, index, item)


def kind_of(item: Item) -> str:
    """Return the type of an item, which a message may leave out."""
    kind: str = item.get("type") or ("message" if "role" in item else "item_reference")
    return kind


def id_of(item: Item) -> str | None:
    """Return an item's id; sealed reasoning knows its own when it was left out."""
    id: str | None = item.get("id")
    if id is None and item.get("encrypted_content"):
        with contextlib.suppress(NotOurs):
            return unseal(item["encrypted_content"]).item
    return id


def _check_id(item: Item, path: str) -> None:
    """Check prefix, length, alphabet of ids: rule 6."""
    for name in ("id", "call_id"):
        value = item.get(name) or ""
        if len(value) > LONGEST:
            raise too_long(f"{path}.{name}", LONGEST, len(value))
    id = item.get("id")
    prefix = PREFIXES.get(kind_of(item))
    if id is None or prefix is None:
        return
    complaint = None
    if not id.startswith(prefix):
        complaint = f"Expected an ID that begins with '{prefix}'."
    elif not ALLOWED.fullmatch(id):
        complaint = (
            "Expected an ID that contains letters, numbers, underscores, or dashes, "
            "but this value contained additional characters."
        )
    if complaint:
        raise Refusal(
            f"Invalid '{path}.id': '{id}'. {complaint}",
            code="invalid_value",
            param=f"{path}.id",
        )


def _refuse_duplicates(items: Sequence[Item]) -> None:
    """Refuse a second item of one id, or a second call of one call_id: rule 7."""
    seen: set[tuple[str, str]] = set()
    for item in items:
        kind = kind_of(item)
        keys = [("id", item["id"])] if item.get("id") else []
        if item.get("call_id") and (kind in CALLS or kind in ANSWERS):
            keys.append((kind, item["call_id"]))
        for key in keys:
            if key in seen:
                raise Refusal(
                    f"Duplicate item found with id {key[1]}. Remove duplicate items "
                    "from your input and try again.",
                    param="input",
                )
            seen.add(key)


def _refuse_lookup(item: Item, stored: bool) -> None:
    """Refuse what only a stored item could answer: rule 3, image results too."""
    kind, id = kind_of(item), item.get("id")
    bare_reasoning = kind == "reasoning" and id and not item.get("encrypted_content")
    if not (bare_reasoning or kind in ("item_reference", "image_generation_call")):
        return
    hint = (
        " Items are not persisted when `store` is set to false. Try again with `store` "
        "set to true, or remove this item from your input."
    )
    raise Refusal(
        f"Item with id '{id}' not found.{'' if stored else hint}",
        status=404,
        param="input",
    )


def _check_pairs(items: Sequence[Item]) -> None:
    """Refuse a call without output and the reverse: rule 5."""
    calls = {
        (kind_of(item), item["call_id"]) for item in items if kind_of(item) in CALLS
    }
    opened: set[tuple[str, str]] = set()
    for item in items:
        kind = kind_of(item)
        if kind in CALLS:
            opened.add((kind, item["call_id"]))
        elif kind in ANSWERS:
            call, words = ANSWERS[kind]
            if (call, item["call_id"]) not in opened:
                raise Refusal(
                    f"No tool call found for {words} output with call_id "
                    f"{item['call_id']}.",
                    param="input",
                )
            calls.discard((call, item["call_id"]))
    for item in items:
        if kind_of(item) in CALLS and (kind_of(item), item["call_id"]) in calls:
            words = CALLS[kind_of(item)]
            raise Refusal(
                f"No tool output found for {words} {item['call_id']}.", param="input"
            )


def _check_partner(items: Sequence[Item], index: int, item: Item) -> None:
    """Refuse half of a pair of reasoning and what it led to: rules 1, 2."""
    kind, id = kind_of(item), item.get("id")
    if not id:
        return
    place = place_of(id)
    if kind == "reasoning":
        _check_following(items, index, id, place)
    elif place is not None and place.partner != NO_PARTNER:
        needed = Place(place.response, place.partner, place.index).id("rs")
        before = {id_of(one) for one in items[:index]}
        if needed not in before:
            raise Refusal(
                f"Item '{id}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{needed}'.",
                param="input",
            )


def _check_following(
    items: Sequence[Item], index: int, id: str, place: Place | None
) -> None:
    rest = (item for item in items[index + 1 :] if kind_of(item) != "reasoning")
    follower = next(rest, None)
    if place is None:
        fits = follower is not None and follower.get("role", "assistant") == "assistant"
    else:
        found = place_of(follower.get("id") or "") if follower else None
        fits = found is not None and (found.response, found.index) == (
            place.response,
            place.partner,
        )
    if not fits:
        raise Refusal(
            f"Item '{id}' of type 'reasoning' was provided without its required "
            "following item.",
            param="input",
        )
