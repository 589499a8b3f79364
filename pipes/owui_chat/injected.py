"""The user's words apart from what the host put around them.

Retrieved text, results of a search, notes about files: the host puts them around the
words that are asked (utils/middleware.py:645, 1444), later around others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openai_responses.items import Item, content_parts
from owui_chat.messages import Said
from owui_chat.stored import text_digest

_MOST_CHARACTERS = 200_000
"""What is kept of one message; a chat's row is read and written whole."""

_Text = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Injected:
    """The texts of a message as it was sent; the one with the words, cut around them.

    `words` is their digest: edited ones are sent afresh.
    """

    words: str
    texts: tuple[_Text, ...]

    def wire(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return {"words": self.words, "texts": list(self.texts)}


def injected_around(said: Said, words: str) -> Injected | None:
    """Return what stands around `words`; None: nothing, too much, or other words."""
    texts: list[_Text] = [
        part["text"] for part in _said_parts(said) if _is_input_text(part)
    ]
    size = sum(map(len, texts)) - len(words)
    for place, text in enumerate(texts):
        if isinstance(text, str) and words in text:
            before, _, after = text.rpartition(words) if words else (text, "", "")
            texts[place] = (before, after)
            return Injected(text_digest(words), tuple(texts)) if _fits(size) else None
    return None


def with_injected(said: Said, words: str, kept: Injected | None) -> Said:
    """Return a message as it was sent, unless its words are no longer those."""
    if kept is None or kept.words != text_digest(words):
        return said
    parts = _said_parts(said)
    if not any(_is_input_text(part) and words in part["text"] for part in parts):
        return said
    whole = [t if isinstance(t, str) else f"{t[0]}{words}{t[1]}" for t in kept.texts]
    texts = [{"type": "input_text", "text": text} for text in whole]
    others = [part for part in parts if not _is_input_text(part)]
    return Said({**said.item, "content": [*texts, *others]})


def read_injected(wire: object) -> Injected | None:
    """Return what `wire` says; None where it says nothing that can be read."""
    rows = wire.get("texts") if isinstance(wire, Mapping) else None
    if not isinstance(wire, Mapping) or not isinstance(rows, list):
        return None
    texts = tuple(_read_text(row) for row in rows)
    return Injected(str(wire.get("words")), texts)


def _read_text(row: object) -> _Text:
    if isinstance(row, list | tuple) and len(row) == 2:
        return str(row[0]), str(row[1])
    return str(row)


def _fits(size: int) -> bool:
    """Say whether there is something, and not too much of it."""
    return 0 < size <= _MOST_CHARACTERS


def _said_parts(said: Said) -> list[Item]:
    return content_parts(said.item.get("content"))


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"
