"""The outcome of a chat as text, the same at every run of the same code.

Ids get numbers in the order in which they appear, so that it still shows which of them
are the same. Deltas are joined, because they are cut by time. Times,
ports, signatures and sealed texts are replaced. Long encoded texts are shortened to
their beginning and a digest. Records are shown as the values that their texts hold.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

_ULID = re.compile(r"(?<![0-9A-Za-z])[0-9A-HJKMNP-TV-Z]{26}(?![0-9A-Za-z])")
_ERROR_ID = re.compile(r"Error id: [0-9A-Z]{10}")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_SECONDS = re.compile(r"\b\d+\.\d+ s\b")
_DURATION = re.compile(r"\b(in|after|for|took) (under a second|\d+ min \d+ s|\d+ s)\b")
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{120,}")
_REPLACED_FIELDS: Mapping[str, str] = {
    "signature": "<signature>",
    "created": "<time>",
    "created_at": "<time>",
    "seconds": "<seconds>",
    "duration": "<seconds>",
    "latency": "<seconds>",
    "sent": "<sealed>",
}
_RECORD_FIELD = "kept"
_DELTA_FIELDS = ("content", "reasoning_content")


def normal_form(outcome: Json) -> str:
    """Return an outcome as indented JSON; the order of the fields is kept."""
    text = json.dumps(_replace_fields(outcome), indent=1, ensure_ascii=False)
    text = _PORT.sub("127.0.0.1:<port>", text)
    text = _ERROR_ID.sub("Error id: <id>", text)
    text = _SECONDS.sub("<time>", text)
    text = _DURATION.sub(r"\1 <time>", text)
    text = _number_ulids(text)
    return _ENCODED.sub(_shorten, text) + "\n"


def _replace_fields(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _replace_field(str(name), value[name]) for name in value}
    if isinstance(value, list | tuple):
        return [_replace_fields(element) for element in value]
    return value


def _replace_field(name: str, value: Any) -> Any:
    replacement = _REPLACED_FIELDS.get(name)
    is_plain = isinstance(value, str | int | float)
    if replacement and is_plain:
        return replacement
    if name == _RECORD_FIELD and isinstance(value, str):
        return _replace_fields(json.loads(value))
    return _replace_fields(value)


def _number_ulids(text: str) -> str:
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        ulid = match[0]
        numbers.setdefault(ulid, len(numbers) + 1)
        return f"<ulid {numbers[ulid]}>"

    return _ULID.sub(number, text)


def _shorten(match: re.Match[str]) -> str:
    digest = hashlib.sha256(match[0].encode()).hexdigest()[:12]
    return f"{match[0][:24]}...<{len(match[0])} characters, {digest}>"


_NO_DELTA = {"index": 0, "delta": {}, "finish_reason": None}
_HEAD = {"id", "object", "created", "model"}


def is_beat(piece: Any) -> bool:
    """Say whether the pipeline yields this while it waits; how often depends on time."""
    if not isinstance(piece, dict) or piece.keys() - _HEAD != {"choices"}:
        return False
    return piece["choices"] in ([], [_NO_DELTA])


def join_deltas(chunks: Iterable[Any]) -> list[Any]:
    """Return chunks of which no two could have been one delta.

    The deltas of a native item become one, where its first was: what the pipe stores
    is shown as soon as it is written, between any two of them.
    """
    joined: list[Any] = []
    first_indexes: dict[str, int] = {}
    for chunk in chunks:
        key = _delta_key(chunk)
        if key and key in first_indexes:
            index = first_indexes[key]
            joined[index] = _joined_native(joined[index], chunk)
            continue
        if key:
            first_indexes[key] = len(joined)
        longer = _joined_plain(joined[-1], chunk) if joined else None
        if longer is None:
            joined.append(chunk)
        else:
            joined[-1] = longer
    return joined


def _delta_key(chunk: Any) -> str:
    """Return all of a native delta but its texts; empty for any other chunk."""
    if not isinstance(chunk, dict) or not isinstance(chunk.get("delta"), str):
        return ""
    return json.dumps({**chunk, "delta": "", "choices": None})


def _joined_native(before: Json, chunk: Json) -> Json:
    """Return two native deltas as one, with the text that their choices repeat."""
    joined = {**before, "delta": before["delta"] + chunk["delta"]}
    field, text = _plain_delta(chunk)
    if field:
        [choice] = before["choices"]
        said = {field: choice["delta"].get(field, "") + text}
        joined["choices"] = [{**choice, "delta": said}]
    return joined


def _joined_plain(before: Any, chunk: Any) -> Json | None:
    """Return two neighboring deltas of a plain stream as one; None if they are none."""
    if not isinstance(before, dict) or not isinstance(chunk, dict):
        return None
    field, text = _plain_delta(chunk)
    field_before, text_before = _plain_delta(before)
    head = {**chunk, "choices": None}
    head_before = {**before, "choices": None}
    if not field or field != field_before or head != head_before:
        return None
    [choice] = chunk["choices"]
    whole = {**choice, "delta": {field: text_before + text}}
    return {**chunk, "choices": [whole]}


def _plain_delta(chunk: Json) -> tuple[str, str]:
    """Return the field and the text of a chunk that is nothing but text."""
    choices = chunk.get("choices") or []
    if len(choices) != 1:
        return "", ""
    [choice] = choices
    delta = choice.get("delta") or {}
    if len(delta) != 1 or choice.get("finish_reason"):
        return "", ""
    [(field, text)] = delta.items()
    is_text = field in _DELTA_FIELDS and isinstance(text, str)
    return (field, text) if is_text else ("", "")
