"""The clock and the sources of randomness, with the ids made of both.

The time, with the chance that spreads retries over it.

The ids of kept items: ULIDs, 26 characters that sort by time.

Layout of the ULID specification: 48 bits of milliseconds, 80 random bits, written in
Crockford's alphabet. Our own lines, because a package would have to be installed on
the user's server.
"""

import random
import secrets
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


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """Return a fresh id."""
    return encode_ulid(time.time_ns() // 1_000_000, secrets.randbits(80))


def encode_ulid(milliseconds: int, randomness: int) -> str:
    """Return the id for a time since 1970 and 80 bits of randomness."""
    number = (milliseconds << 80) | randomness
    digits = [_CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "".join(digits)
