"""How long a server asks to wait, as it writes it, and as people are told."""

import math
import re

from openai_responses.clock import unix_seconds

_FIRST_DATE = 1e9
_FIRST_DATE_IN_MS = 1e11
"""Numbers above are times since 1970, in 2001 and in 1973, and no waits."""


def seconds_until(reset: float) -> float:
    """Return the seconds to wait for a time that a server names in one of three ways."""
    if reset < _FIRST_DATE:
        return reset
    since_1970 = reset / 1000 if reset >= _FIRST_DATE_IN_MS else reset
    return max(0.0, since_1970 - unix_seconds())


_SECONDS_OF_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|d|h|m|s)[a-z]{0,8},? ?")
_WAIT_IN_WORDS = re.compile(
    r"\b(?:try again|retry|resets?) (?:in|after) "
    r"((?:\d{1,9}(?:\.\d{1,9})? ?(?:ms|milli|d|h|m|s)[a-z]{0,8},? ?){1,4})",
    re.IGNORECASE,
)


def wait_in_words(text: str) -> float | None:
    """Return the seconds that a message asks to wait, None if it names none.

    "Please try again in 6m0s." (OpenAI), "Please retry after 20 seconds." (Azure), "Your
    quota will reset after 142h40m7s." (Google's Antigravity).
    """
    match = _WAIT_IN_WORDS.search(text)
    return read_duration(match[1]) if match else None


def read_duration(text: str) -> float | None:
    """Return the seconds in a text like `6m0s`, `250ms` or `20 seconds`."""
    times = _TIME.findall(text.lower())
    if not times:
        return None
    return sum(
        float(number) * _SECONDS_OF_UNIT["ms" if unit == "milli" else unit]
        for number, unit in times
    )


_UNITS_TOLD = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def told_wait(seconds: float) -> str:
    """Return a time to wait as people say it; it is not over before."""
    for unit, size in _UNITS_TOLD:
        if seconds > size:  # so that none of them is one
            return f"{math.ceil(seconds / size)} {unit}"
    return "a moment"
