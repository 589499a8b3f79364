"""The marker grammar: a line in the text that names stored items and is invisible.

`[openai_responses:v2:{type}:{ulid}]: #` is a link reference definition, which Markdown
renders as nothing on a line of its own after a blank line. It is written with blank
lines around it, whole in one chunk.

The forms of earlier writers are read as well: ids of 16 or 26 characters in any case,
with or without a query; v1 links; zero-width blocks. Lines of other pipes are removed
from the text. White space around a marker comes from its writer or the host, not from
the model: texts of a model that begin or end with white space are stored whole. See
docs/reference/markers.md, "Our marker" and "Markers of earlier pipes".
"""

import re
from typing import NamedTuple

# A query has a limit, so that a hostile text is read in linear time.
_V2 = (
    r"\[openai_responses:v2:(?P<kind>[a-z0-9_]{2,30}):(?P<ulid>[0-9a-z]{16}"
    r"(?:[0-9a-z]{10})?)(?:\?[^\]\n]{0,500})?\]:[ \t]*\#?"
)
_V1 = (
    r"\[\]\(openai_responses:v1:(?P<kind1>[a-z0-9_]{2,30}):(?P<ulid1>[0-9a-z]{26})"
    r"(?:\?[^)\n]{0,500})?\)"
)
_ZERO_WIDTH = "\u2060(?P<bits>[\u200b\u200c]{208})\u2060"
_FOREIGN = (
    r"(?m:^[^\S\n]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#"
    r"[^\S\n]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
# Without one a text has no marker, and a search for them is cheap.
_SIGNS = ("openai_responses:v", "\u2060", "]: #")


_MOST_PASSES = 5


class MarkedText(NamedTuple):
    """A piece of text, and the id in the marker before it; empty without a marker."""

    ulid: str
    text: str


def format_marker(kind: str, ulid: str) -> str:
    """Return the marker as it is written to the text, blank lines included."""
    return f"\n\n[openai_responses:v2:{kind}:{ulid}]: #\n\n"


def split_at_markers(text: str, ulid: str = "") -> list[MarkedText]:
    """Return the pieces of `text`; at a marker they have no white space.

    `ulid` is in a marker before the text. Without a marker its ends are the model's own.
    """
    if not any(map(text.__contains__, _SIGNS)):
        return [MarkedText(ulid, text.strip() if ulid else text)]
    pieces, start = list[MarkedText](), 0
    for match in _MARKER.finditer(text):
        pieces.append(MarkedText(ulid, text[start : match.start()].strip()))
        ulid, start = _named(match), match.end()
    pieces.append(MarkedText(ulid, text[start:].strip()))
    return [piece for piece in pieces if piece.ulid or piece.text]


def strip_markers(text: str) -> str:
    """Return `text` as a person reads it.

    The search is repeated, because a line of another pipe may become a line of its own
    only then.
    """
    for _ in range(_MOST_PASSES):
        pieces = [piece.text for piece in split_at_markers(text)]
        if pieces == [text]:
            break
        text = "\n\n".join(filter(None, pieces))
    return text


def _named(match: re.Match[str]) -> str:
    bits = match["bits"]
    if bits:
        digits = bits.replace("\u200b", "0").replace("\u200c", "1")
        codes = (int(digits[i : i + 8], 2) for i in range(0, len(digits), 8))
        return "".join(map(chr, codes)).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()
