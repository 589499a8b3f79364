"""Cards in texts: what the page would draw as a call that was made.

Open WebUI draws `<details type="tool_calls" name=... result=...>` in the text of a model,
in its thought, or in its code after what ends the block, as it draws its own cards, and
runs what the attribute `embeds` says in a frame; `<file type="html" id=...>` opens an
address of its own as a page (docs/reference/open-webui.md, "Cards in texts"). A web page
that the model has read may have it write one. Only the host says that a call was made, so
such a text gets a space that makes it a text. HTML's own `<details>`, and
`<details open>`, have no type.
"""

import re


def beginnings_of(text: str) -> str:
    """Return the pattern of all beginnings of a text, up to the end of the string."""
    pattern = ""
    for letter in reversed(text):
        pattern = f"(?:{letter}{pattern})?"
    return rf"{pattern}\Z"


_CARD_SPACE = r"[\s\ufeff]"
"""What JavaScript takes for a space: one more than Python."""
_FILE_CARD = 'file type="html"'
_FORGED_CARD = re.compile(
    rf"<(?={_FILE_CARD}"
    rf"|details{_CARD_SPACE}(?:[^<>]{{0,300}}?type=|[^<>]{{0,300}}(?:<|\Z)|[^<>]{{300}}))",
    re.IGNORECASE,
)
"""No usual tag is longer, or has another in itself, where the page may find the type. At the
end of a text is one that goes on so in what is held back."""
UNFINISHED_CARD = (
    rf"<(?i:{beginnings_of('details')})|<(?i:details){_CARD_SPACE}[^<>]{{0,305}}\Z"
    rf"|<(?i:{beginnings_of(_FILE_CARD)})"
)
"""The end of a text of which it is not certain yet whether it is a card."""
OPEN_CARD = re.compile(UNFINISHED_CARD)


def without_cards(text: str) -> str:
    """Return a text of which the page draws no card; a second pass finds nothing new."""
    return _FORGED_CARD.sub("< ", text) if "<" in text else text
