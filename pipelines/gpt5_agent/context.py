"""What a request gives the model to read beside the chat."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gpt5_agent.events import SourceGiven

_TEXT_KEYS = ("content", "text", "page_content", "snippet", "document")
_NAME_KEYS = ("title", "name", "source", "file_name")
_URL_KEYS = ("url", "link", "uri")


def read_context(context: object) -> list[SourceGiven]:
    """Return the entries of a context, once each: a text, an object, or a list."""
    rows = context if isinstance(context, list) else [context]
    found = [one for one in map(_entry_of, _numbered(rows)) if one.text.strip()]
    return list(dict.fromkeys(found))


def context_text(entries: list[SourceGiven]) -> str:
    """Return what the model reads of the entries; nothing for none."""
    if not entries:
        return ""
    texts = (f'<entry name="{one.name}">\n{one.text}\n</entry>' for one in entries)
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _numbered(rows: list[Any]) -> Iterator[tuple[int, Any]]:
    unique: list[Any] = []
    for row in rows:
        if row not in unique and row is not None:
            unique.append(row)
    yield from enumerate(unique, 1)


def _entry_of(numbered: tuple[int, Any]) -> SourceGiven:
    number, row = numbered
    usual = f"Context {number}"
    if not isinstance(row, Mapping):
        return SourceGiven(usual, row if isinstance(row, str) else _as_json(row))
    metadata = row.get("metadata")
    more = {**(metadata if isinstance(metadata, Mapping) else {}), **row}
    text = _first(row, _TEXT_KEYS) or _as_json(row)
    return SourceGiven(_first(more, _NAME_KEYS) or usual, text, _first(more, _URL_KEYS))


def _first(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    texts = (row[key] for key in keys if isinstance(row.get(key), str))
    return next((text for text in texts if text.strip()), "")


def _as_json(row: object) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)
