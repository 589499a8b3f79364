"""The ids of kept items: ULIDs, 26 characters that sort by time.

Layout of the ULID specification: 48 bits of milliseconds, 80 random bits, written in
Crockford's alphabet. Our own lines, because a package would have to be installed on
the user's server.
"""

import secrets
import time

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """Return a fresh id."""
    return encode_ulid(time.time_ns() // 1_000_000, secrets.randbits(80))


def encode_ulid(milliseconds: int, randomness: int) -> str:
    """Return the id for a time since 1970 and 80 bits of randomness."""
    number = (milliseconds << 80) | randomness
    digits = [_CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "".join(digits)
