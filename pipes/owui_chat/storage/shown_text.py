"""Refers a model's text to the text that the chat shows, so that it is stored once.

The shown text often differs a little from the model's: the host strips its ends, links
to sources become numbers, and two parts of a message become one text. Then the stored
message has pieces in the place of its text: a string is the model's own, and a pair is
the start and the length of what it has in common with the shown text.

    shown   "Rain. [1]"
    model   "Rain. ([a.example](https://a.example))\n"
    stored  [[0, 6], "([a.example](https://a.example))\n"]

Who reads the pieces has to know that the shown text is still the same.
"""

from openai_responses.items import Item, content_parts

_LEAST = 24
"""Characters in common: fewer are hardly longer than their pair."""
_LEAST_IN_ALL = 128
"""The references themselves and the digest of the shown text take about half of them."""
_AHEAD = 4096
"""How much of the shown text is searched for what the model wrote next."""
_MOST_OWN = 8192
"""Characters without a counterpart, each of which is searched for; then the text is
another one."""

_ModelPiece = str | list[int]


def refer_to_shown(item: Item, shown: str) -> Item:
    """Return a message with pieces of `shown` in the place of its texts.

    It is the `item` itself if that is not shorter.
    """
    shown = shown.strip()
    place = common = 0
    parts: list[Item] = []
    for part in content_parts(item.get("content")):
        field = _shown_field(part)
        text = part.get(field)
        pieces = _common_pieces(text, shown, place) if isinstance(text, str) else None
        if pieces is None:
            return item
        parts.append({**part, field: pieces})
        pairs = [piece for piece in pieces if isinstance(piece, list)]
        place = sum(pairs[-1])
        common += sum(length for _, length in pairs)
    return {**item, "content": parts} if common >= _LEAST_IN_ALL else item


def refers_to_shown(item: Item) -> bool:
    """Say whether a message has pieces in the place of its texts."""
    parts = content_parts(item.get("content"))
    return any(isinstance(part.get(_shown_field(part)), list) for part in parts)


def restore_from_shown(item: Item, shown: str) -> Item:
    """Return a message with its texts; `shown` is what `refer_to_shown` was given."""
    shown = shown.strip()
    parts: list[Item] = []
    for part in content_parts(item.get("content")):
        field = _shown_field(part)
        pieces = part.get(field)
        if not isinstance(pieces, list):
            parts.append(part)
            continue
        texts: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
            else:
                start, length = piece
                texts.append(shown[start : start + length])
        parts.append({**part, field: "".join(texts)})
    return {**item, "content": parts}


def _shown_field(part: Item) -> str:
    return "refusal" if part.get("type") == "refusal" else "text"


def _common_pieces(text: str, shown: str, place: int) -> list[_ModelPiece] | None:
    """Return `text` as pieces, of which `shown` has some after `place`; else None."""
    pieces: list[_ModelPiece] = []
    own_start = at = 0
    own_length = 0
    while at + _LEAST <= len(text):
        found = shown.find(text[at : at + _LEAST], place, place + _AHEAD)
        if found < 0:
            at += 1
            own_length += 1
            if own_length > _MOST_OWN:
                return None
            continue
        length = _common_length(text, at, shown, found)
        if own_start < at:
            pieces.append(text[own_start:at])
        pieces.append([found, length])
        own_start = at = at + length
        place = found + length
    if own_start < len(text):
        pieces.append(text[own_start:])
    has_common = any(isinstance(piece, list) for piece in pieces)
    return pieces if has_common else None


def _common_length(text: str, at: int, shown: str, place: int) -> int:
    """Return how many characters are the same from two places on.

    Slices are compared in halves: character by character, a long text takes
    milliseconds.
    """
    low = 0
    high = min(len(text) - at, len(shown) - place)
    while low < high:
        middle = (low + high + 1) // 2
        if text[at + low : at + middle] == shown[place + low : place + middle]:
            low = middle
        else:
            high = middle - 1
    return low
