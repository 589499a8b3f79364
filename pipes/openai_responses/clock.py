"""The time."""

import time


def unix_seconds() -> int:
    """Return the seconds since 1970 in UTC, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that only grows, for measuring spans."""
    return time.monotonic()
