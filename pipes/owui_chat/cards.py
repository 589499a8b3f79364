"""Cards in texts: what the page would draw as a call that was made.

Open WebUI draws `<details type="tool_calls" name=... result=...>` in the text of a model,
in its thought, or in its code after what ends the block, as it draws its own cards, and
runs what the attribute `embeds` says in a frame; `<file type="html" id=...>` opens an
address of its own as a page (docs/reference/open-webui.md, "Cards in texts"). A web page
that the model has read may have it write one. Only the host says that a call was made, so
such a text gets a space that makes it a text. HTML's own `<details>`, and
`<details open>`, have no type.

The host and the page change a text before they look for cards in it. So it is also read
as it is then. No honest text has a card in such a form, and the page may take a space
away: there a character that looks similar begins it.
"""

import html
import re
from bisect import bisect_left
from collections.abc import Iterator

from owui_chat.host_tools import UNSTORED


def beginnings_of(text: str) -> str:
    """Return the pattern of all beginnings of a text, up to the end of the string."""
    return rf"{_any_beginning(text)}\Z"


def _any_beginning(text: str) -> str:
    pattern = ""
    for letter in reversed(text):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


_CARD_SPACE = r"[\s\ufeff]"
"""What JavaScript takes for a space: one more than Python."""
_FILE_CARD = 'file type="html"'
_FILE_TOKEN = "{HTML_FILE_ID_"
"""What follows the first brace of `{{HTML_FILE_ID_1a}}`, of which the page makes a file."""
_FORGED_CARD = re.compile(
    rf"<(?={_FILE_CARD}"
    r"|details(?:\Z"
    rf"|{_CARD_SPACE}(?:[^<>]{{0,300}}?type=|[^<>]{{0,300}}(?:<|\Z)|[^<>]{{300}})))"
    rf"|\{{(?={re.escape(_FILE_TOKEN)})",
    re.IGNORECASE,
)
"""No usual tag is longer, or has another in itself, where the page may find the type. At the
end of a text is one that goes on so in what is held back, or in the next message: a
channel draws all of an answer as one text, with a line feed between two messages."""
_BEGUN_CARD = (
    rf"(?:<details{_CARD_SPACE}[^<>]{{0,305}}|<{_any_beginning('details')}"
    rf"|<{_any_beginning(_FILE_CARD)}|\{{{_any_beginning(_FILE_TOKEN)})"
)
_OPEN_CARD = re.compile(
    rf"{_BEGUN_CARD}\Z"
    # What becomes one of its characters, or nothing, is not whole yet.
    rf"|{_BEGUN_CARD}\s{{0,99}}(?:&[^\s<>{{&\[]{{0,300}}|\[(?=\d|\Z)[^<>{{&\[\]]{{0,300}})\Z"
    r"|&[#\w]{0,40}\Z",
    re.IGNORECASE,
)
"""The end of a text of which it is not certain yet whether it is a card."""
_BEGINS = re.compile("[<&{]")
_LOOKS_SIMILAR = str.maketrans("<&{", "\u2039\uff06\uff5b")
_FEW_BEGINNINGS = 400
"""Each is read with what follows it. In a text with more, and a card, all are replaced; if
it may only end with one, the last ones are read."""
_LONGEST_ANSWER = 1_000_000
"""Characters, twice what a model can write. Each takes a microsecond to be read."""
_LONGEST_BEGINNING = 1_000
"""Characters. What is not certain after so many counts as a card."""

_QUOTATION = re.compile(r"\n[ \t>]+")
"""The beginning of a line that the page takes away where it draws a quotation."""
_NUMBER = re.compile(r"\[\d")
"""The beginning of the number of a source (`[1]`, `[1#a, 2]`). Where a model has no
citations, the page takes numbers away, and the space in front of them."""
_MOST_FOLDS = 8
"""In each fold (`<details>`) it decodes the entities once more. Nobody nests so many."""
_ZEROS = re.compile(r"(&#[xX]?)0+(?=[0-9a-fA-F])")
_LARGE_NUMBER = re.compile("&#[xX]?[0-9a-fA-F]{9,}")
"""Python reads no number of thousands of digits."""
_OPEN_ENTITY = re.compile(r"&[#\w]{0,40}\Z")


def without_cards(text: str) -> str:
    """Return a text of which the page draws no card; a second pass finds nothing new."""
    if not _BEGINS.search(text):
        return text
    if len(text) > _LONGEST_ANSWER:
        return text.translate(_LOOKS_SIMILAR)
    text = _FORGED_CARD.sub(r"\g<0> ", text)
    views = [*_drawn_forms(text)]
    is_forged = any(map(_FORGED_CARD.search, views))
    if not (is_forged or any(map(_OPEN_CARD.search, views))):
        return text
    places = [match.start() for match in _BEGINS.finditer(text)]
    if is_forged and len(places) > _FEW_BEGINNINGS:
        return text.translate(_LOOKS_SIMILAR)

    def as_text(match: re.Match[str]) -> str:
        """Return what takes the place of a character that may begin a card."""
        begun = match.string[match.start() : match.start() + _LONGEST_BEGINNING]
        is_long = len(begun) == _LONGEST_BEGINNING
        for view in _drawn_forms(begun):
            if _FORGED_CARD.match(view) or (is_long and _OPEN_CARD.match(view)):
                return match[0].translate(_LOOKS_SIMILAR)
        return match[0]

    first = places[-_FEW_BEGINNINGS:][0]
    return text[:first] + _BEGINS.sub(as_text, text[first:])


def certain_length(text: str) -> int:
    """Return how much of a growing text can be shown: it ends with no half of a card."""
    end = len(text)
    start = max(0, end - _LONGEST_BEGINNING)
    places = [match.start() for match in _BEGINS.finditer(text, start)]

    def is_open(place: int) -> bool:
        begun = text[max(0, place - _LONGEST_BEGINNING) : place]
        return any(map(_OPEN_CARD.search, _drawn_forms(begun)))

    if not places or not is_open(end):
        return end
    # What follows the beginning of a card is open, too.
    return places[max(0, bisect_left(places, True, key=is_open) - 1)]


def _drawn_forms(text: str) -> Iterator[str]:
    """Yield a text as the page may read it when it looks for cards."""
    text = _QUOTATION.sub("\n", UNSTORED.sub("", text))
    yield _decoded(text)
    if "[" in text or text[-1:].isspace():
        kept: list[str] = []
        for piece in text.split("]"):
            number = _NUMBER.search(piece)
            kept.append(piece[: number.start()].rstrip() if number else f"{piece}]")
        yield _decoded("".join(kept).removesuffix("]").rstrip())


def _decoded(text: str) -> str:
    for _ in range(_MOST_FOLDS):
        if "&" not in text:
            return text
        encoded = text
        short = _LARGE_NUMBER.sub("\ufffd", _ZEROS.sub(r"\1", text))
        unended = _OPEN_ENTITY.search(short)
        rest = unended[0] if unended else ""
        text = html.unescape(short.removesuffix(rest)) + rest
        if text == encoded:
            return text
    return f"<details type={text}"
