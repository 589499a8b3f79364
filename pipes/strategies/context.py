"""The context that a strategy gives the model to read, in addition to the chat."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from openai_responses.json_input import as_mapping, as_text

_TEXT_KEYS = ("content", "text", "page_content", "snippet", "document")
_NAME_KEYS = ("title", "name", "source", "file_name")
_URL_KEYS = ("url", "link", "uri")


class ContextSource(NamedTuple):
    """A text that is given to the model."""

    name: str
    text: str
    url: str = ""


def read_context(context: object) -> list[ContextSource]:
    """Return the entries of a context, each once: a text, an object, or a list."""
    rows = context if isinstance(context, list) else [context]
    unique_rows: dict[str, object] = {}  # a row that comes twice has one number
    for row in rows:
        if row:
            unique_rows[json.dumps(row, sort_keys=True, default=str)] = row
    sources: dict[ContextSource, None] = {}  # two rows may say the same
    for number, row in enumerate(unique_rows.values(), 1):
        source = ContextSource(f"Context {number}", as_text(row))
        if not isinstance(row, str):
            entry = as_mapping(row)
            fields = {**as_mapping(entry.get("metadata")), **entry}
            text = _first_text_field(entry, _TEXT_KEYS)
            # Without a known text field all of it is the text; one that is blank says
            # that there is nothing to read.
            has_field = any(isinstance(entry.get(key), str) for key in _TEXT_KEYS)
            if not text and not has_field:
                text = json.dumps(row, ensure_ascii=False, default=str)
            source = ContextSource(
                name=_first_text_field(fields, _NAME_KEYS) or source.name,
                text=text,
                url=_first_text_field(fields, _URL_KEYS),
            )
        if source.text.strip():
            sources[source] = None
    return list(sources)


def format_context(entries: Sequence[ContextSource]) -> str:
    """Return the entries as the model reads them."""
    if not entries:
        return ""
    texts = [
        f'<entry name="{entry.name}">\n{entry.text}\n</entry>' for entry in entries
    ]
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _first_text_field(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first field that is a text and not blank; empty without one."""
    for key in keys:
        text = as_text(row.get(key))
        if text.strip():
            return text
    return ""
