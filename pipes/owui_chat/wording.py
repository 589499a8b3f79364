"""Words for people that several rooms share."""


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2 rounds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


CHECK_HEADING = "The setup of this pipe, tested with"
USAGE_HEADING = "### What it cost"
"""How the answers to commands begin."""
