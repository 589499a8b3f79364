"""How numbers, and texts of strangers, are written for people."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2,000 rounds`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_SHOWS_NOTHING = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    r"\U000e0100-\U000e01ef]|(?<![\u203c-\u3299\U0001f000-\U0001faff])\ufe0f"
)
"""Characters that Python calls printable, and that leave no trace: joiners, fillers,
the empty pattern of Braille, variation selectors. The selector that makes an emoji of a
symbol is common and stays, one after each symbol."""


def with_escapes(text: str) -> str:
    """Return a text with escapes for what cannot be seen, or changes what is next to it.

    Some characters turn the direction of a line around, others take no room and can
    hold a text of their own; a carriage return ends a block of code in Markdown.
    """
    if text.isprintable() and not _SHOWS_NOTHING.search(text):
        return text
    shown: list[str] = []
    for index, character in enumerate(text):
        if character.isprintable() and not _SHOWS_NOTHING.match(text, index):
            shown.append(character)
        else:
            shown.append(json.dumps(character)[1:-1])  # as JSON writes it in ASCII
    return "".join(shown)


_MARKS_OF_MARKDOWN = re.compile(r"[\\`*\[\]<>]|(?<![^\W_])_|_(?![^\W_])")
"""A `_` inside of a word draws nothing: `a_b.txt`, but not `__init__.py`."""


def as_plain_markdown(name: str) -> str:
    """Return the name of a file or a page as Markdown that shows it, and draws nothing."""
    return _MARKS_OF_MARKDOWN.sub(r"\\\g<0>", with_escapes(name))


_BETWEEN_BREAKS = re.compile(r"[^\n\t]+")


def value_with_escapes(value: Any) -> Any:
    """Return a JSON value whose texts have such escapes; they keep their lines and tabs.

    A number that a page cannot show becomes a text.
    """
    if isinstance(value, Mapping):
        shown: dict[str, Any] = {}
        repeats = Counter[str]()
        for name, inner in value.items():
            escaped = shown_name = value_with_escapes(str(name))
            while shown_name in shown:  # the model wrote an escape itself
                repeats[escaped] += 1
                count = repeats[escaped]
                shown_name = f"{escaped}'{count if count > 1 else ''}"
            shown[shown_name] = value_with_escapes(inner)
        return shown
    if isinstance(value, list):
        return [value_with_escapes(item) for item in value]
    if isinstance(value, str):
        return _BETWEEN_BREAKS.sub(lambda found: with_escapes(found[0]), value)
    if isinstance(value, int) and abs(value) > _LARGEST_OF_PAGE:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


_LARGEST_OF_PAGE = 2**53 - 1
"""JavaScript rounds larger whole numbers: a page would show another one. It shows `1e999`
as null, and cannot read an event that has Python's word for it."""

CHECK_HEADING = "The setup of this pipe, "
USAGE_HEADING = "### What it cost"
NO_USAGE_HEADING = "Usage is not counted here, "
"""How the answers to commands begin; here, so that the filter need not import how chats
are parsed."""
