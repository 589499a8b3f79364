"""Records carried by the `reasoning_details` of reasoning items.

The host stores the details of a reasoning item and returns them with later requests for
the same model, but without their places in the message (docs/reference/open-webui.md,
"Reasoning details"). So each entry names its response and its place there:

    {"type": "reasoning.encrypted", "data": ..., "item": the rest of the reasoning}
    {"type": "openai_responses.item", "item": ..., "shown": a text, or its length}
    {"type": "openai_responses.turn", "origin": ..., "notes": ...}

The `signature` of a response's first entry holds for them all, because clients can send
entries of their own; earlier writers signed each entry. Of others only what cannot harm
is read (`storage.records`).

A message is stored without its text if the shown text is the same. Texts get the names
of their records, so that the history is built in one way for all carriers.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from openai_responses.items import (
    Item,
    content_parts,
    has_plain_reasoning,
    is_reasoning,
    item_type,
    message_text,
)
from openai_responses.json_input import as_list, as_mapping, as_text
from openai_responses.requests.replay import Origin, read_origin, replay_output
from owui_chat.messages import AssistantText, ChatPart, UserMessage
from owui_chat.storage.records import Record, harmless_items, text_digest
from owui_chat.storage.signature import Sign, is_signed, sign_object

_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


class _DetailItem(NamedTuple):
    """An item as it is sent again."""

    item: Item
    shown: str | int = ""
    """The text that the host has, or its length if the message has none of its own."""


class DetailTurn(NamedTuple):
    """A response as it came back, with its notes."""

    items: tuple[_DetailItem, ...]
    origin: Origin
    notes: Mapping[str, Any]


def write_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
    sign: Sign | None,
) -> list[Item]:
    """Return the entries of a response from its items and the text shown for each.

    `name` distinguishes the response from all others. Plain reasoning is not kept beyond
    its run.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes), "index": 0}
    named = {"format": _FORMAT, "turn": name}
    entries = [
        _entry(back, shown)
        for item, shown in items
        for back in replay_output([item], with_reasoning=True)
        if not has_plain_reasoning(back)
    ]
    carried = [{**e, **named, "index": n} for n, e in enumerate(entries, 1)]
    return [sign_object({**head, **named}, sign, carried), *carried]


def read_details(details: object, sign: Sign | None) -> list[DetailTurn]:
    """Return the responses in the details of a message of the host, in order."""
    turns: dict[str, list[Item]] = {}
    for entry in filter(_is_entry, as_list(details)):
        turns.setdefault(entry["turn"], []).append(entry)
    ordered = (sorted(turn, key=itemgetter("index")) for turn in turns.values())
    return [_turn(turn, sign) for turn in ordered]


def _entry(item: Item, shown: str) -> Item:
    """Return the entry of an item; a message in its short form has no type."""
    if is_reasoning(item):
        rest = {k: v for k, v in item.items() if k != "encrypted_content"}
        return {"type": _REASONING, "data": item["encrypted_content"], "item": rest}
    typed = {"type": item_type(item), **item}
    if not _says_just(item, shown):
        return {"type": _ITEM, "item": typed, "shown": shown}
    [part] = content_parts(item["content"])
    rest = {k: v for k, v in part.items() if k != "text"}
    return {"type": _ITEM, "item": {**typed, "content": [rest]}, "shown": len(shown)}


def _says_just(item: Item, shown: str) -> bool:
    """Say whether a message has one text that the host will return unchanged.

    The host strips the ends of texts.
    """
    parts = content_parts(item.get("content"))
    whole = bool(shown) and shown == shown.strip()
    return whole and [part.get("text") for part in parts] == [shown]


def _is_entry(entry: object) -> bool:
    """Say whether an entry is a complete entry of ours."""
    if not isinstance(entry, dict) or entry.get("format") != _FORMAT:
        return False
    if not (isinstance(entry.get("turn"), str) and isinstance(entry.get("index"), int)):
        return False
    kind, item = entry.get("type"), entry.get("item")
    if kind == _TURN or not isinstance(item, dict):
        return kind == _TURN
    needed = entry.get("data") if kind == _REASONING else "type" in item
    return kind in (_REASONING, _ITEM) and bool(needed)


def _turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn:
    head = next((entry for entry in entries if entry["type"] == _TURN), {})
    carried = [entry for entry in entries if entry["type"] != _TURN]
    details = tuple(map(_detail_item, carried))
    origin = read_origin(head.get("origin"), "")
    if is_signed(head, sign, carried):
        return DetailTurn(details, origin, as_mapping(head.get("notes")))
    notes = as_mapping(head.get("notes")) if is_signed(head, sign) else {}
    stubs = harmless_items([detail.item for detail in details])
    items = (
        detail if is_signed(entry, sign) else _stub_detail(detail, stub)
        for entry, detail, stub in zip(carried, details, stubs, strict=True)
    )
    return DetailTurn(tuple(filter(None, items)), origin, notes)


def _detail_item(entry: Item) -> _DetailItem:
    if entry["type"] == _REASONING:
        return _DetailItem({**entry["item"], "encrypted_content": entry["data"]})
    shown = entry.get("shown")
    return _DetailItem(entry["item"], shown if isinstance(shown, str | int) else "")


def _stub_detail(detail: _DetailItem, stub: Item | None) -> _DetailItem | None:
    """Return an entry of somebody else: its place in the shown text is used."""
    shown = detail.shown
    length = shown if isinstance(shown, int) else len(shown)
    return None if stub is None else _DetailItem(stub, length)


def restore_from_details(
    parts: Iterable[ChatPart], sign: Sign | None
) -> tuple[list[ChatPart], dict[str, Record]]:
    """Return a chat whose texts name the records in its details, and those by id.

    Records without a text stand at the end of their run.
    """
    records: dict[str, Record] = {}
    found, textless = list[ChatPart](), list[AssistantText]()
    for part in parts:
        if isinstance(part, AssistantText) and part.details:
            turns = read_details(part.details, sign)
            for one in _name_records(part.text, turns, records):
                (found if one.text else textless).append(one)
            continue
        if isinstance(part, UserMessage):
            found += textless
            textless = []
        found.append(part)
    return [*found, *textless], records


def _name_records(
    content: str, turns: Sequence[DetailTurn], records: dict[str, Record]
) -> Iterator[AssistantText]:
    """Yield the pieces of a text behind their records, which are added.

    A record ends with a message whose text the host shows, or with its response.
    """
    shown = [one.shown for turn in turns for one in turn.items if one.shown]
    texts = deque(_split_text(content if content.strip() else "", shown))
    for turn in turns:
        begun: list[_DetailItem] = []
        for detail in turn.items:
            begun.append(detail)
            if detail.shown or detail is turn.items[-1]:
                has_text = detail.shown and texts
                text = _own_text(detail, texts.popleft()) if has_text else ""
                yield AssistantText(text, [_add_record(begun, turn.origin, records)])
                begun = []
    yield from map(AssistantText, texts)


def _add_record(
    items: Sequence[_DetailItem], origin: Origin, records: dict[str, Record]
) -> str:
    ulid, last = f"{len(records):026d}", items[-1]
    payload = tuple([detail.item for detail in items])
    shown = as_text(last.shown) and text_digest(message_text(last.item))
    records[ulid] = Record(ulid, "", 0, payload, "", origin, shown)
    return ulid


def _split_text(content: str, shown: Sequence[str | int]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    If a person changed the text so that the places do not fit, it stays in one piece.
    """
    lengths = [one if isinstance(one, int) else len(one) for one in shown]
    texts, start = list[str](), 0
    for length in lengths[:-1]:
        end = start + length
        if length < 0 or content[end : end + 1] != "\n":
            return [content] if content else []
        texts.append(content[start:end])
        start = end + 1
    return [*texts, content[start:]] if content[start:] else texts


def _own_text(detail: _DetailItem, text: str) -> str:
    """Return the model's own text if another one is shown, unless it was edited."""
    if isinstance(detail.shown, str) and detail.shown.strip() == text.strip():
        return message_text(detail.item)
    return text
