"""What of a chat's kept items goes: that of deleted messages, and the oldest of too much.

The values are those of the keys of messages, in clear, as `stored` writes them. A key
cannot be taken out of a chat, so a value is emptied; what it calls dead stays.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from openai_responses.items import Item, content_parts
from owui_chat.stored import SEED_KEY, created_in, message_key

MAX_STORED_KB = 4096
"""Most that is kept in one chat: the host reads and writes it whole with every answer."""

_KEPT_SHARE = 0.75  # so that not every answer changes what the next request begins with
_SHORT = 500
_STAYS = ("__v", "dead")

Values = Mapping[str, Any]


def tidied(
    values: Values, messages: Mapping[str, Any], own: str, most: int
) -> dict[str, Any]:
    """Return the values to write anew beside that of the key `own`.

    `messages` are those of the chat; without any nothing is known of them. Answers
    that are still growing are left alone, because others write them. What remains has
    at most `most` characters.
    """
    present = set(map(message_key, messages)) if messages else set(values)
    growing = {message_key(id) for id, message in messages.items() if _grows(message)}
    ours = {
        key: value
        for key, value in values.items()
        if key not in (own, SEED_KEY) and isinstance(value, Mapping)
    }
    gone = {k: _without_kept(v) for k, v in ours.items() if k not in present}
    gone = {key: value for key, value in gone.items() if value != ours[key]}
    left = {k: v for k, v in ours.items() if k in present and k not in growing}
    return gone | _pruned(left, most)


def stored_size(value: object) -> int:
    """Return how many characters a value takes."""
    return len(json.dumps(value, separators=(",", ":")))


def _grows(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("done") is False


def _has(value: Values) -> bool:
    items = value.get("items")
    return isinstance(items, Mapping) and bool(items)


def _without_kept(value: Values) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name in _STAYS}


def _emptied(value: Values) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name != "items"}


def _pruned(values: Values, most: int) -> dict[str, Any]:
    """Return the values that get smaller: outputs shortened first, the oldest first."""
    over = sum(map(stored_size, values.values())) - most
    if over <= 0:
        return {}
    over += int(most * (1 - _KEPT_SHARE))
    now = dict(values)
    oldest = sorted(filter(lambda key: _has(values[key]), values), key=_age(values))
    for shrink in (_with_short_outputs, _emptied):
        for key in oldest:
            if over <= 0:
                break
            smaller = shrink(now[key])
            over -= stored_size(now[key]) - stored_size(smaller)
            now[key] = smaller
    return {key: value for key, value in now.items() if value != values[key]}


def _age(values: Values) -> Callable[[str], int]:
    return lambda key: created_in(values[key])


def _with_short_outputs(value: Values) -> dict[str, Any]:
    items = {ulid: _short_record(wire) for ulid, wire in value["items"].items()}
    return {**value, "items": items}


def _short_record(wire: Any) -> Any:
    if not isinstance(wire, Mapping):
        return wire
    payload = wire.get("payload")
    rows = payload if isinstance(payload, list) else None
    short = list(map(_short_item, rows)) if rows is not None else _short_item(payload)
    return {**wire, "payload": short}


def _short_item(item: Any) -> Any:
    """Return an item whose output, or the logs of whose code, is cut."""
    if not isinstance(item, dict):
        return item
    short: Item = {}
    if isinstance(item.get("output"), str):
        short["output"] = _cut(item["output"])
    if isinstance(item.get("outputs"), list):
        short["outputs"] = list(_short_logs(item["outputs"]))
    return {**item, **short}


def _short_logs(outputs: Iterable[Any]) -> Iterable[Item]:
    for part in content_parts(list(outputs)):
        logs = part.get("logs")
        yield {**part, "logs": _cut(logs)} if isinstance(logs, str) else part


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]} [shortened]"
