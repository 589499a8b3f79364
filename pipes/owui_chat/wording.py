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
    r"\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, and that leave no trace: joiners, fillers,
the empty pattern of Braille, variation selectors."""
_LONE_SELECTOR = re.compile(r"(?<![\u203c-\u3299\U0001f000-\U0001faff])\ufe0f")
"""The selector that makes an emoji of a symbol is common, one after each symbol."""


class _Escapes(dict[int, str]):
    """What is shown of each character of a text, by its number.

    A stranger may write megabytes of them, so each is looked at once.
    """

    def __missing__(self, number: int) -> str:
        shown = chr(number)
        if not shown.isprintable() or _SHOWS_NOTHING.match(shown):
            shown = json.dumps(shown)[1:-1]  # as JSON writes it in ASCII
        self[number] = shown
        return shown


def with_escapes(text: str, kept: str = "") -> str:
    """Return a text with escapes for what cannot be seen, or changes what is next to it.

    Some characters turn the direction of a line around, others take no room and can
    hold a text of their own; a carriage return ends a block of code in Markdown. The
    `kept` ones stay.
    """
    escapes = _Escapes({ord(character): character for character in kept})
    return _LONE_SELECTOR.sub(r"\\ufe0f", text).translate(escapes)


_MARKS_OF_MARKDOWN = re.compile(r"[`*<>]|(?<![^\W_])_|_(?![^\W_])")
"""A `_` inside of a word draws nothing: `a_b.txt`, but not `__init__.py`."""
_MARKS_OF_HOST = re.compile(r"[\\\[\]${]")
"""The host draws a formula of `\\[x\\]` and `$x$`, and a file of `{{HTML_FILE_ID_1a}}`."""


def as_plain_markdown(name: str, kept: str = "") -> str:
    """Return the name of a file or a page as Markdown that shows it, and draws nothing.

    Of a longer text the `kept` characters stay: its lines.
    """
    escaped = _MARKS_OF_HOST.sub(_as_entity, with_escapes(name, kept))
    return _MARKS_OF_MARKDOWN.sub(r"\\\g<0>", escaped)


def _as_entity(mark: re.Match[str]) -> str:
    return f"&#{ord(mark[0])};"


def code_block(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown, which it cannot end."""
    longest_run = max((len(run) for run in re.findall("`+", text)), default=0)
    fence_length = max(3, longest_run + 1)
    fence = "`" * fence_length
    return f"{fence}{language}\n{text}\n{fence}"


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
        return with_escapes(value, kept="\n\t")
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
