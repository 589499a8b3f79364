"""What a person is warned of before a tool runs, by the words of its name."""

from collections.abc import Mapping

_HARM: Mapping[str, str] = {
    "delete": "It can delete things.",
    "remove": "It can delete things.",
    "drop": "It can delete things.",
    "write": "It can change things.",
    "update": "It can change things.",
    "move": "It can change things.",
    "create": "It can change things.",
    "send": "It can send things to others.",
    "post": "It can send things to others.",
    "publish": "It can send things to others.",
    "pay": "It can spend money.",
    "buy": "It can spend money.",
    "order": "It can spend money.",
    "execute": "It runs code.",
    "exec": "It runs code.",
    "run": "It runs code.",
    "shell": "It runs code.",
}
"""Words in the names of tools that can do harm, with what to warn of."""


def security_warning(name: str) -> Mapping[str, str] | None:
    """Return what to warn of before a tool runs; its name is all that is known.

    A word in it that means harm warns; a tool whose name says only that it reads does
    not.
    """
    words = "".join(one if one.isalnum() else " " for one in _spaced(name)).split()
    reason = next((_HARM[word] for word in words if word in _HARM), None)
    return {"level": "high", "reason": reason} if reason else None


def _spaced(name: str) -> str:
    """Return a name with its words in small letters, apart from each other."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name)
