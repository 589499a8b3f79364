"""Records: what of an answer is stored in the chat, and how the chat stays small.

Each assistant message has its own top-level key of the chat's JSON, because the host
replaces a top-level key whole and several answers can be written at the same time:

    "openai_responses_pipe:{message_id}":
        {"__v": 7, "origin": [family, endpoint, account],
         "items": {ulid: {"payload": [...], "shown": ..., "signature": ...}},
         "repairs": [[word, name], ...]}

`payload` are the items that one marker names; its last message may refer to the shown
text. A record of another origin than the first one has its own `origin`. `repairs` are
those of the chat's items, which the server refused.

Two earlier forms are read and never written. Until version 6, a record had its model,
message, time and origin itself. The first pipes had one key for all messages,
`"openai_responses_pipe": {"__v": 3, "items": {id: record}}`, and records without
`origin`, `shown` and `signature` (docs/reference/markers.md, "Stored items of earlier
pipes"); they listed records in `dead` whose reasoning is not sent again.

The owner of a chat can write anything into its row, and whoever clones a shared chat
takes it along. So a record is signed. One without a valid signature, of an earlier
writer or of a user, is read for what cannot harm: reasoning, which only the API can
have encrypted, in front of texts and calls that the chat itself shows.

Records of deleted messages are removed, and the oldest ones if a chat stores too much.
A key cannot be removed from a chat, so its value is emptied; its repairs stay.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from openai_responses.digest import hex_digest
from openai_responses.items import (
    Item,
    content_parts,
    has_encrypted_reasoning,
    is_call,
    is_commentary,
    is_encrypted,
    is_reasoning,
    item_type,
)
from openai_responses.json_input import JsonObject, as_list, as_mapping
from openai_responses.repairs.chat_repairs import ChatRepair, read_chat_repairs
from openai_responses.requests.replay import Origin, read_origin
from owui_chat.host_tools import UNSTORED
from owui_chat.storage.shown_text import refers_to_shown
from owui_chat.storage.signature import Sign, is_signed, sign_object

_CHAT_KEY = "openai_responses_pipe"
_PREFIX = f"{_CHAT_KEY}:"
_VERSION = 7
_SELF_CONTAINED_VERSION = 5
"""Of the signature of a record that has all of its fields itself."""
_REFERRING_VERSION = 6
"""The same, of one that refers to the shown text: a reader that knows no references
takes such a record for one of somebody else."""

UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part without text; its text is the one after the marker."""


class Record(NamedTuple):
    """The items that one marker names, in the order of the wire.

    If the text part of a message in `payload` has no `text`, the text after the marker
    is its text. If it has one, or refers to pieces of the shown text (`shown_text`),
    that counts as long as `shown` is the digest of the text after the marker. Commentary
    without `shown` has no text in the chat.
    """

    ulid: str
    payload: tuple[Item, ...]
    message_id: str
    origin: Origin
    shown: str = ""
    is_carried: bool = False
    """Whether messages of the request carry it (`details_carrier`), not the chat."""

    @property
    def kind(self) -> str:
        """The type that the marker shows."""
        return str(self.payload[0]["type"]) if len(self.payload) == 1 else "items"


def text_digest(text: str) -> str:
    """Return a digest that tells whether a shown text was edited.

    White space around the text does not count, because the host strips it.
    """
    return hex_digest(text.strip())[:32]


def omit_shown_text(item: Item, shown: str) -> Item:
    """Return a message without its text, if that is all that the host returns for it.

    The host strips the ends of texts and does not know refusals or several parts.
    """
    is_returned = shown != "" and shown == shown.strip()
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts]
    if not is_returned or texts != [shown]:
        return item
    part = {name: value for name, value in parts[0].items() if name != "text"}
    return {**item, "content": [part]}


def storable_record(record: Record) -> Record:
    """Return a record as a chat's row can hold it, so that its signature holds there.

    In the text of an answer's own output (`output_carrier`) it needs no change.
    """
    payload = [_without_unstored(item) for item in record.payload]
    return record._replace(payload=tuple(payload))


def _without_unstored(value: Any) -> Any:
    """Return a JSON value without the characters that the host leaves out."""
    if isinstance(value, str):
        return UNSTORED.sub("", value)
    if isinstance(value, list):
        return [_without_unstored(part) for part in value]
    if isinstance(value, dict):
        return {name: _without_unstored(part) for name, part in value.items()}
    return value


def message_key(message_id: str) -> str:
    """Return the top-level key that holds the records of one message."""
    return _PREFIX + message_id


def write_records(
    records: Mapping[str, Record], sign: Sign | None, repairs: Iterable[ChatRepair] = ()
) -> dict[str, Any]:
    """Return the JSON value for the key of one message."""
    value: dict[str, Any] = {"__v": _VERSION}
    items: dict[str, Any] = {}
    for ulid, record in records.items():
        origin = list(record.origin)
        shared = value.setdefault("origin", origin)
        wire: dict[str, Any] = {"origin": origin, "payload": list(record.payload)}
        if record.shown:
            wire["shown"] = record.shown
        items[ulid] = sign_object(wire, sign, _VERSION, ulid)
        if origin == shared:
            del items[ulid]["origin"]
    value["items"] = items
    rows = [row for row in (repair.stored() for repair in repairs) if row]
    return {**value, "repairs": rows} if rows else value


def is_pipe_key(key: str) -> bool:
    """Say whether a top-level key of a chat holds records, of any writer."""
    return key.startswith(_PREFIX) or key == _CHAT_KEY


def read_records(chat: JsonObject, sign: Sign | None) -> dict[str, Record]:
    """Return every record of a chat's JSON that can be read, by id."""
    # Of a chat that was moved here from an earlier pipe both kinds of keys may be
    # there.
    values = {key: as_mapping(chat[key]) for key in chat if is_pipe_key(key)}
    dead: set[str] = set()
    for value in values.values():
        dead.update(str(ulid) for ulid in as_list(value.get("dead")))
    records: dict[str, Record] = {}
    for key, value in values.items():
        message_id = str(value.get("message_id") or key.removeprefix(_PREFIX))
        for ulid, wire in _wires_in(value):
            if value.get("__v") == _VERSION:
                # Its own origin, if it has one; the signature holds with any of them.
                whole = {"origin": value.get("origin"), **wire}
                record = _read_record(ulid, whole, message_id, sign, _VERSION)
            else:
                own_id = str(wire.get("message_id") or "")
                record = _read_record(ulid, wire, own_id, sign)
            if record is None:
                continue
            if ulid in dead:
                kept = [item for item in record.payload if not is_encrypted(item)]
                record = record._replace(payload=tuple(kept))
            records[ulid] = record
    return records


def stored_repairs(values: Iterable[object]) -> tuple[ChatRepair, ...]:
    """Return the repairs in the values of a chat's keys, each once."""
    rows: list[object] = []
    for value in values:
        rows += as_list(as_mapping(value).get("repairs"))
    return tuple(read_chat_repairs(rows))


def _wires_in(value: object) -> Iterator[tuple[str, JsonObject]]:
    """Yield the stored records of a key's value, with their ids."""
    for ulid, wire in as_mapping(as_mapping(value).get("items")).items():
        yield str(ulid).upper(), as_mapping(wire)


def _read_record(
    ulid: str,
    wire: JsonObject,
    message_id: str,
    sign: Sign | None,
    version: int | None = None,
) -> Record | None:
    """Return what is used of a stored record, or None for nothing.

    Of one that we did not sign nothing is used that could instruct the model.
    """
    stored = wire.get("payload")
    rows: list[Any] = stored if isinstance(stored, list) else [stored]
    are_items = all(isinstance(row, dict) and row.get("type") for row in rows)
    payload: tuple[Item, ...] = tuple(rows) if are_items else ()
    if version is None:
        refers = bool(payload) and refers_to_shown(payload[-1])
        version = _REFERRING_VERSION if refers else _SELF_CONTAINED_VERSION
    is_ours = is_signed(wire, sign, version, ulid)
    if not is_ours:
        # The chat has the text of the last message only: it comes after the marker.
        items = [item for item in payload[:-1] if item_type(item) != "message"]
        safe = keep_unsigned_safe([*items, *payload[-1:]])
        payload = tuple(item for item in safe if item is not None)
    if not payload:
        return None
    # The first pipes stored only the model. The part in front of the first dot is the
    # function's; a model's id may have dots itself (functions.py:193 of Open WebUI
    # 0.12.4).
    own_name = str(wire.get("model") or "").split(".", 1)[-1]
    return Record(
        ulid=ulid,
        payload=payload,
        message_id=message_id,
        origin=read_origin(wire.get("origin"), own_name),
        shown=str(wire.get("shown") or "") if is_ours else "",
    )


def keep_unsigned_safe(items: Sequence[Item]) -> list[Item | None]:
    """Return what is used of items that anybody may have written, None for nothing.

    Reasoning stays only in front of what stays, because it belongs to its product; the
    text after the marker stays.
    """
    safe: list[Item | None] = []
    has_product = True
    # From the end, because reasoning is worth what follows it.
    for item in reversed(items):
        kept = None
        if has_product or not is_reasoning(item):
            kept = _without_hidden_text(item)
        safe.append(kept)
        has_product = kept is not None
    safe.reverse()
    return safe


def _without_hidden_text(item: Item) -> Item | None:
    """Return an item without the words that the chat does not show, or None."""
    if has_encrypted_reasoning(item):
        sealed = str(item["encrypted_content"])
        return {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    if is_call(item):
        return {"type": item["type"], "call_id": str(item.get("call_id"))}
    is_answer = item_type(item) == "message" and item.get("role") == "assistant"
    if not is_answer or is_commentary(item):
        return None
    head: Item = {"type": "message", "role": "assistant"}
    if item.get("phase") == "final_answer":
        head["phase"] = "final_answer"
    return {**head, "content": [UNSHOWN_TEXT]}


MAX_STORED_KB = 4096
"""In one chat, which the host reads at every answer."""
_KEPT_SHARE = 0.75
"""What is left of a chat that is too large: more, and each answer would remove something
and change the beginning of the next request."""
_KEYS_OF_DELETED = ("__v", "dead", "repairs")
"""What is left in the value of a deleted message."""


def prune(
    values: JsonObject, messages: JsonObject, own_key: str, max_characters: int
) -> dict[str, Any]:
    """Return the values to write in addition to that of `own_key`.

    `messages` are those of the chat; without any, all count as present. Answers that
    are still growing are not touched, because others write them. The remaining values
    have at most `max_characters` of JSON.
    """
    # Earlier hosts do not say of each answer whether it has ended.
    has_ended = {
        message_key(name): as_mapping(row).get("done") is not False
        for name, row in messages.items()
    }
    pruned: dict[str, Any] = {}
    present: dict[str, JsonObject] = {}
    for key, value in values.items():
        # The key of earlier pipes is never written.
        if key in (own_key, _CHAT_KEY) or not isinstance(value, Mapping):
            continue
        if not messages or has_ended.get(key):
            present[key] = value
        elif key not in has_ended:
            kept = {name: value[name] for name in _KEYS_OF_DELETED if name in value}
            pruned[key] = kept
    pruned |= _prune_oldest(present, max_characters)
    return {key: value for key, value in pruned.items() if value != values[key]}


def stored_size(value: object) -> int:
    """Return the number of characters that a value takes."""
    return len(json.dumps(value, separators=(",", ":")))


def _prune_oldest(
    values: Mapping[str, JsonObject], max_characters: int
) -> dict[str, Any]:
    """Return the values that lose their items, the oldest first."""
    sizes = {key: stored_size(value) for key, value in values.items()}
    excess = sum(sizes.values()) - max_characters
    if excess <= 0:
        return {}
    # More goes than has to, or the next answer would remove something again, and each
    # removal changes the beginning of a request.
    excess += int(max_characters * (1 - _KEPT_SHARE))
    ages: list[tuple[str, str]] = []
    for key, value in values.items():
        # Ids of records sort by the time when they were made.
        ulids = [ulid for ulid, _ in _wires_in(value)]
        if ulids:
            ages.append((min(ulids), key))
    ages.sort(key=itemgetter(0))
    pruned: dict[str, Any] = {}
    for _, key in ages:
        if excess <= 0:
            break
        of_items = ("items", "origin")
        emptied = {n: part for n, part in values[key].items() if n not in of_items}
        pruned[key] = emptied
        excess -= sizes[key] - stored_size(emptied)
    return pruned
