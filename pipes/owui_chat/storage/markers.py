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
# Ours has 26 characters and no query. Versions 0.8.15 to 0.9.15 of the earlier pipe had
# ids of 16, 1.0.0 also `?model=...`; the space and the `#` may have been lost.
_V2 = (
    r"\[openai_responses:v2:(?P<kind>[a-z0-9_]{2,30}):(?P<ulid>[0-9a-z]{16}"
    r"(?:[0-9a-z]{10})?)(?:\?[^\]\n]{0,500})?\]:[ \t]*\#?"
)
# 0.8.10 to 0.8.14: an empty link.
_V1 = (
    r"\[\]\(openai_responses:v1:(?P<kind1>[a-z0-9_]{2,30}):(?P<ulid1>[0-9a-z]{26})"
    r"(?:\?[^)\n]{0,500})?\)"
)
# 0.8.6 to 0.8.9: 26 characters of eight bits each, between two word joiners.
_ZERO_WIDTH = "\u2060(?P<bits>[\u200b\u200c]{208})\u2060"
# Lines of other pipes, whose items lie in tables of their own.
_FOREIGN = (
    r"(?m:^[^\S\n]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#"
    r"[^\S\n]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
_SIGNS = ("openai_responses:v", "\u2060", "]: #")
"""Without one a text has no marker, and a search for them is cheap."""
_MAX_PASSES = 5
_ZERO_BIT = "\u200b"
_ONE_BIT = "\u200c"
"""The digits of a zero-width block, eight for each character of an id."""


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
    if not any(sign in text for sign in _SIGNS):
        only_text = text.strip() if ulid else text
        return [MarkedText(ulid, only_text)]
    pieces: list[MarkedText] = []
    start = 0
    for match in _MARKER.finditer(text):
        pieces.append(MarkedText(ulid, text[start : match.start()].strip()))
        ulid = _marker_id(match)
        start = match.end()
    pieces.append(MarkedText(ulid, text[start:].strip()))
    return [piece for piece in pieces if piece.ulid or piece.text]


def strip_markers(text: str) -> str:
    """Return `text` as a user reads it.

    The search is repeated, because a line of another pipe may become a line of its own
    only then.
    """
    for _ in range(_MAX_PASSES):
        pieces = [piece.text for piece in split_at_markers(text)]
        if pieces == [text]:
            break
        text = "\n\n".join(piece for piece in pieces if piece)
    return text


def _marker_id(match: re.Match[str]) -> str:
    """Return the id that a marker names; empty for a line of another pipe."""
    if match["bits"]:
        digits = match["bits"].replace(_ZERO_BIT, "0").replace(_ONE_BIT, "1")
        octets = [digits[start : start + 8] for start in range(0, len(digits), 8)]
        return "".join(chr(int(octet, 2)) for octet in octets).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()
