"""The time, with the chance that spreads retries over it."""

import random
import time
from datetime import UTC, date, datetime


def unix_seconds() -> int:
    """Return the seconds since 1970 in UTC, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that only grows, for measuring spans."""
    return time.monotonic()


def random_fraction() -> float:
    """Return a number from 0 to 1, for waits that must not all end at once."""
    return random.random()


def utc_today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()
