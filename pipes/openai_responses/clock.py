"""The time, random numbers, and ids made of both.

Ids are ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's alphabet, so
they sort by time. A package for them would have to be installed on the user's server.
"""

import random
import secrets
import time
from datetime import UTC, date, datetime


def unix_seconds() -> int:
    """Return the seconds since 1970, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that never goes back, for measuring durations."""
    return time.monotonic()


def random_fraction() -> float:
    """Return a number from 0 to 1, to spread waits."""
    return random.random()


def utc_today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """Return a fresh id."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    digits = [_CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "".join(digits)
