"""How numbers are written for people."""


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2 rounds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
