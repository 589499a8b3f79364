"""Valves that hold a list of words."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas or lines, each of them once.

    Open WebUI's dialog has a field of several lines for a valve with text.
    """
    words = (word.strip() for word in text.replace("\n", ",").split(","))
    return list(dict.fromkeys(word for word in words if word))


def fits_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name fits one of the patterns, like `gpt-5*`, in any case."""
    lower = name.lower()
    return any(fnmatchcase(lower, pattern.lower()) for pattern in patterns)


_MAX_SHOWN_WORDS = 5
_MAX_WORD_CHARACTERS = 40
"""Both limit a message, because an administrator may paste anything."""


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about unknown words of a valve; empty if all are known."""
    unknown = sorted(set(words).difference(known))[:_MAX_SHOWN_WORDS]
    if not unknown:
        return ""
    shown = ", ".join(word[:_MAX_WORD_CHARACTERS] for word in unknown)
    return f"{valve} contains unknown names: {shown}. {advice}"
