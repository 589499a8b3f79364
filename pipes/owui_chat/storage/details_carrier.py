"""Records carried by the `reasoning_details` of reasoning items.

The host stores the details of a reasoning item and returns them with later requests for
the same model, but without their places in the message (docs/reference/open-webui.md,
"Reasoning details"). So each entry names its response and its place there:

    {"type": "reasoning.encrypted", "data": ..., "item": the rest of the reasoning}
    {"type": "openai_responses.item", "item": ..., "shown": a text, or its length}
    {"type": "openai_responses.turn", "origin": ..., "notes": ...}

Each entry has a `signature`, because clients can send entries of their own; of others
only what cannot harm is read (`storage.records`).

A message is stored without its text if the shown text is the same. Messages with
entries are translated to messages with markers and their records, so that the history
is built in one way for all carriers.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from openai_responses.items import (
    Item,
    content_parts,
    is_reasoning,
    item_type,
    message_text,
)
from openai_responses.requests.replay import Origin, read_origin, replay_output
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import Record, harmless_items, text_digest
from owui_chat.storage.signature import Sign, is_signed

_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"
_SIGNATURE = "signature"


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
    """Return the entries of a response, from its items and the text shown for each.

    `name` distinguishes the response from all others.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes)}
    entries = [
        _entry(back, shown)
        for item, shown in items
        for back in replay_output([item], with_reasoning=True)
    ]
    return [
        _sign_entry({**entry, "format": _FORMAT, "turn": name, "index": place}, sign)
        for place, entry in enumerate([head, *entries])
    ]


def read_details(message: Mapping[str, Any], sign: Sign | None) -> list[DetailTurn]:
    """Return the responses that a message of the host carries, in order."""
    details = message.get("reasoning_details")
    entries = [e for e in details if _is_entry(e)] if isinstance(details, list) else []
    order = list(dict.fromkeys(entry["turn"] for entry in entries))
    entries.sort(key=lambda entry: (order.index(entry["turn"]), entry["index"]))
    groups = groupby(entries, lambda entry: entry["turn"])
    return [_turn(list(group), sign) for _, group in groups]


def _sign_entry(entry: Item, sign: Sign | None) -> Item:
    return {**entry, _SIGNATURE: sign(entry)} if sign else entry


def _is_own_entry(entry: Item, sign: Sign | None) -> bool:
    bare = {key: value for key, value in entry.items() if key != _SIGNATURE}
    return is_signed(bare, entry.get(_SIGNATURE), sign)


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
    """Say whether a message has one text that the host will return unchanged.

    The host strips the ends of texts.
    """
    parts = content_parts(item.get("content"))
    whole = bool(shown) and shown == shown.strip()
    return whole and [part.get("text") for part in parts] == [shown]


def _is_entry(entry: object) -> bool:
    """Say whether an entry is a complete entry of ours."""
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


def _turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn:
    heads = [entry for entry in entries if entry["type"] == _TURN]
    head = heads[0] if heads else {}
    carried = [entry for entry in entries if entry["type"] != _TURN]
    harmless = harmless_items([_detail_item(entry).item for entry in carried])
    items = (
        (
            _detail_item(entry)
            if _is_own_entry(entry, sign)
            else _harmless_detail(entry, stub)
        )
        for entry, stub in zip(carried, harmless, strict=True)
    )
    notes = head.get("notes") if _is_own_entry(head, sign) else None
    return DetailTurn(
        tuple(filter(None, items)),
        read_origin(head.get("origin"), ""),
        notes if isinstance(notes, Mapping) else {},
    )


def _detail_item(entry: Item) -> _DetailItem:
    if entry["type"] == _REASONING:
        return _DetailItem({**entry["item"], "encrypted_content": entry["data"]})
    shown = entry.get("shown")
    return _DetailItem(entry["item"], shown if isinstance(shown, str | int) else "")


def _harmless_detail(entry: Item, stub: Item | None) -> _DetailItem | None:
    """Return an item that is not ours; its place in the shown text is all of it."""
    if stub is None:
        return None
    detail = _detail_item(entry)
    return _DetailItem(stub, _shown_length(detail))


def restore_from_details(
    messages: Sequence[Mapping[str, Any]], sign: Sign | None
) -> tuple[list[Mapping[str, Any]], dict[str, Record]]:
    """Return the messages with markers for their entries, and the records by id."""
    reading = _Reading(sign)
    return reading.marked(messages), reading.records


class _Span(NamedTuple):
    """Items of a turn up to a message whose text the host shows, or to the end."""

    items: tuple[_DetailItem, ...]
    origin: Origin

    @property
    def last(self) -> _DetailItem:
        return self.items[-1]


class _Reading:
    """Inserts the markers into the messages of one chat."""

    def __init__(self, sign: Sign | None) -> None:
        self._sign = sign
        self.records: dict[str, Record] = {}
        self._textless: list[str] = []

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the messages; markers without a text come at the end of their run."""
        found: list[Mapping[str, Any]] = []
        for message in messages:
            is_message = isinstance(message, Mapping)  # else the reader says so
            if is_message and message.get("role") == "user":
                found += self._rest()
            turns = read_details(message, self._sign) if is_message else []
            found.append(self._message(message, turns) if turns else message)
        return [*found, *self._rest()]

    def _rest(self) -> list[Mapping[str, Any]]:
        """Return a message for the items of calls, which come before the calls."""
        content = "".join(self._textless)
        self._textless = []
        return [{"role": "assistant", "content": content}] if content else []

    def _message(
        self, message: Mapping[str, Any], turns: Sequence[DetailTurn]
    ) -> Mapping[str, Any]:
        content = message.get("content")
        spans = [one for turn in turns for one in _spans_of(turn)]
        texts = _split_text(content if isinstance(content, str) else "", spans)
        pieces: list[str] = []
        for span in spans:
            line = self._marker(span)
            if span.last.shown and texts:
                pieces += [line, _own_text(span.last, texts.pop(0))]
            else:
                self._textless.append(line)
        return {**message, "content": "".join([*pieces, *texts])}

    def _marker(self, span: _Span) -> str:
        ulid = f"{len(self.records):026d}"
        payload = tuple(detail.item for detail in span.items)
        record = Record(ulid, "", 0, payload, "", span.origin)
        if span.last.shown:
            shown = text_digest(message_text(span.last.item))
            record = record._replace(shown=shown)
        self.records[ulid] = record
        return format_marker(record.kind, ulid)


def _spans_of(turn: DetailTurn) -> list[_Span]:
    found: list[_Span] = []
    begun: list[_DetailItem] = []
    for detail in turn.items:
        begun.append(detail)
        if detail.shown:
            found.append(_Span(tuple(begun), turn.origin))
            begun = []
    return [*found, _Span(tuple(begun), turn.origin)] if begun else found


def _split_text(content: str, spans: Sequence[_Span]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    If a person changed the text so that the places do not fit, it stays in one piece.
    """
    lengths = [_shown_length(one.last) for one in spans if one.last.shown]
    texts, rest = list[str](), content
    for length in lengths[:-1]:
        if rest[length : length + 1] != "\n":
            return [content] if content else []
        texts.append(rest[:length])
        rest = rest[length + 1 :]
    return [*texts, rest] if rest else texts


def _shown_length(detail: _DetailItem) -> int:
    return detail.shown if isinstance(detail.shown, int) else len(detail.shown)


def _own_text(detail: _DetailItem, text: str) -> str:
    """Return the model's own text if another one is shown, unless it was edited."""
    if isinstance(detail.shown, str) and detail.shown.strip() == text.strip():
        return message_text(detail.item)
    return text
