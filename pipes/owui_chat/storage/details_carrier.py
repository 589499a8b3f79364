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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from openai_responses.items import (
    Item,
    content_parts,
    has_encrypted_reasoning,
    has_plain_reasoning,
    item_type,
    message_text,
)
from openai_responses.json_input import as_mapping
from openai_responses.requests.replay import Origin, read_origin, replayed_rows
from owui_chat.messages import AssistantText, ChatPart, UserMessage
from owui_chat.storage.records import (
    Record,
    keep_unsigned_safe,
    omit_shown_text,
    text_digest,
)
from owui_chat.storage.signature import Sign, is_signed, sign_object

_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


class DetailTurn(NamedTuple):
    """A response as it came back, with its notes."""

    items: Sequence[tuple[Item, str | int]]
    """Each with the text that the page shows of it; with only the length of that, if the
    item is stored without it."""
    origin: Origin
    notes: Mapping[str, Any]


def write_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
    sign: Sign | None,
    *,
    continues: bool = False,
) -> list[Item]:
    """Return the entries of a response from its items and the text shown for each.

    `name` distinguishes the response from all others. Plain reasoning is not kept beyond
    its run: only if the run `continues` in a later request of the host, that needs it.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes), "index": 0}
    named = {"format": _FORMAT, "turn": name}
    entries: list[Item] = []
    turn = list(items)
    rows = replayed_rows([item for item, _ in turn], with_reasoning=True)
    for (_, shown), own_rows in zip(turn, rows, strict=True):
        for replayed in own_rows:
            if has_plain_reasoning(replayed) and not continues:
                continue
            if has_encrypted_reasoning(replayed):
                rest = dict(replayed)
                data = rest.pop("encrypted_content")
                entries.append({"type": _REASONING, "data": data, "item": rest})
                continue
            # A message in its short form has no type.
            typed = {"type": item_type(replayed), **replayed}
            kept = omit_shown_text(typed, shown)
            told = shown if kept is typed else len(shown)
            entries.append({"type": _ITEM, "item": kept, "shown": told})
    carried = [
        {**entry, **named, "index": index} for index, entry in enumerate(entries, 1)
    ]
    return [sign_object({**head, **named}, sign, carried), *carried]


def read_details(details: object, sign: Sign | None) -> list[DetailTurn]:
    """Return the responses in the details of a message of the host, in order."""
    turns: dict[str, list[Item]] = {}
    for entry in content_parts(details):
        if isinstance(entry.get("index"), int):
            turns.setdefault(str(entry.get("turn")), []).append(entry)
    read: list[DetailTurn] = []
    for entries in turns.values():
        entries.sort(key=itemgetter("index"))
        turn = _read_turn(entries, sign)
        if turn is not None:
            read.append(turn)
    return read


def _is_entry(entry: Item) -> bool:
    """Say whether an entry is a complete entry of ours."""
    if entry.get("format") != _FORMAT or not isinstance(entry.get("turn"), str):
        return False
    kind = entry.get("type")
    if kind == _TURN:
        return True
    is_whole = kind == _ITEM or (kind == _REASONING and "data" in entry)
    return is_whole and "type" in as_mapping(entry.get("item"))


def _read_turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn | None:
    """Return the response of some entries, which have one name; None for nothing."""
    head = entries[0]
    carried = entries[1:]
    if is_signed(head, sign, carried):
        items = [_carried_item(entry) for entry in carried]
        notes = head.get("notes")
    else:
        ours = [entry for entry in entries if _is_entry(entry)]
        if not ours:
            return None
        heads = [entry for entry in ours if entry["type"] == _TURN]
        head = heads[0] if heads else {}
        notes = head.get("notes") if is_signed(head, sign) else {}
        carried = [entry for entry in ours if entry["type"] != _TURN]
        items = []
        own_items = [_carried_item(entry) for entry in carried]
        safe_items = keep_unsigned_safe([item for item, _ in own_items])
        for entry, own, safe in zip(carried, own_items, safe_items, strict=True):
            if is_signed(entry, sign):
                items.append(own)
            elif safe:  # of somebody else: its place in the shown text is used
                items.append((safe, _length(own[1])))
    origin = read_origin(head.get("origin"), "")
    return DetailTurn(items, origin, as_mapping(notes))


def _carried_item(entry: Item) -> tuple[Item, str | int]:
    """Return the item of an entry, and its text or the length of that."""
    item = entry["item"]
    shown = entry.get("shown")
    if not isinstance(shown, str | int):
        shown = ""
    if entry["type"] == _REASONING:
        item = {**item, "encrypted_content": entry["data"]}
    return item, shown


def _length(shown: str | int) -> int:
    return shown if isinstance(shown, int) else len(shown)


def restore_from_details(
    parts: Iterable[ChatPart], sign: Sign | None
) -> tuple[list[ChatPart], dict[str, Record]]:
    """Return a chat whose texts name the records in its details, and those by id.

    Records without a text are at the end of their run.
    """
    records: dict[str, Record] = {}
    restored: list[ChatPart] = []
    textless: list[AssistantText] = []
    for part in parts:
        if isinstance(part, UserMessage):  # the run of the model has ended
            restored += textless
            textless = []
        if not isinstance(part, AssistantText) or not part.details:
            restored.append(part)
            continue
        turns = read_details(part.details, sign)
        for piece in _name_records(part.text, turns, records):
            if piece.text:
                restored.append(piece)
            else:
                textless.append(piece)
    return [*restored, *textless], records


def _name_records(
    content: str, turns: Sequence[DetailTurn], records: dict[str, Record]
) -> Iterator[AssistantText]:
    """Yield the pieces of a text after their records, which are added."""
    shown_texts: list[str | int] = []
    for turn in turns:
        shown_texts += [shown for _, shown in turn.items if shown]
    # Each record with a shown text takes the next one; what is left has no record.
    texts = iter(_split_text(content if content.strip() else "", shown_texts))
    for turn in turns:
        payload: list[Item] = []
        for number, (item, shown) in enumerate(turn.items, 1):
            payload.append(item)
            # A record ends with a message whose text the host shows, or with its response.
            if not shown and number < len(turn.items):
                continue
            # A message of which nothing is shown is the model's own form of no text at all.
            is_known = isinstance(shown, str) and bool(shown or message_text(item))
            ulid = f"{len(records):026d}"  # it counts in this request alone
            records[ulid] = Record(
                ulid=ulid,
                payload=tuple(payload),
                message_id="",
                origin=turn.origin,
                shown=text_digest(str(shown)) if is_known else "",
                is_carried=True,
            )
            payload = []
            yield AssistantText(next(texts, "") if shown else "", [ulid])
    for text in texts:
        yield AssistantText(text)


def _split_text(content: str, shown: Sequence[str | int]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    If a user changed the text so that the places do not fit, it stays in one piece.
    """
    texts: list[str] = []
    start = 0
    for text in shown[:-1]:
        length = _length(text)
        end = start + length
        # Open WebUI joins the messages of one answer by a line feed
        # (utils/misc.py:408).
        if length < 0 or content[end : end + 1] != "\n":
            return [content] if content else []
        texts.append(content[start:end])
        start = end + 1
    rest = content[start:]
    return [*texts, rest] if rest else texts
