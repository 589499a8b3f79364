"""Links to the pages of a search, in a text that is still growing.

The model writes `([host](https://host/page?utm_source=openai))`. Such a link has to be
whole before it can be shown otherwise, so what may become one is held back.
"""

import re

_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

LINK = re.compile(
    rf"(?P<open>\()?\[(?P<label>{_LABEL})\]\((?P<url>{_URL})\)(?(open)\))"
)
"""A Markdown link, with the parentheses that stand directly around it."""

# Every alternative begins with one plain character: `re` then passes over all others
# three times as fast.
_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
_BEGUN_TRACKING = (
    "".join(f"(?:{letter}" for letter in _TRACKED) + ")?" * len(_TRACKED) + r"\Z"
)
_UNFINISHED_TRACKING = rf"\?{_BEGUN_TRACKING}|&{_BEGUN_TRACKING}"
_TRACKING = re.compile(rf"\?{_TRACKED}&|[?&]{_TRACKED}(?![\w-])")

OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)
"""The end of a text that may go on as a link, or as what tells who searched."""


class HeldText:
    """A text whose end is held back while it may go on as something."""

    def __init__(self, unfinished: re.Pattern[str]) -> None:
        """Hold back the end that matches `unfinished`."""
        self._unfinished = unfinished
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what may be shown now."""
        text = self._held + text
        match = self._unfinished.search(text)
        place = match.start() if match else len(text)
        self._held = text[place:]
        return text[:place]

    def rest(self) -> str:
        """Return what was held back, when the text has ended."""
        rest, self._held = self._held, ""
        return rest


def is_tracked(url: str) -> bool:
    """Say whether an address is one that the model's search found."""
    return bool(_TRACKING.search(url))


def without_tracking(text: str) -> str:
    """Return a text, or an address, whose links do not tell who searched."""
    return _TRACKING.sub(_kept_of_tracking, text) if _TRACKED in text else text


def place_without_tracking(text: str, place: int) -> int:
    """Return where a place of `text` is once its links do not tell who searched."""
    gone = (match for match in _TRACKING.finditer(text) if match.start() < place)
    return place - sum(len(match[0]) - len(_kept_of_tracking(match)) for match in gone)


def _kept_of_tracking(match: re.Match[str]) -> str:
    return "?" if match[0].endswith("&") else ""
