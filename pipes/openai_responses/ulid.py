"""ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's alphabet.

They sort by time. A package for them would have to be installed on the user's server;
tests compare these with ulid-py.
"""

import secrets
import time

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_DIGITS = 26
_RANDOM_BITS = 80
_NANOSECONDS_OF_MILLISECOND = 1_000_000


def new_ulid() -> str:
    """Return a fresh id."""
    milliseconds = time.time_ns() // _NANOSECONDS_OF_MILLISECOND
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    digits: list[str] = []
    for _ in range(_ULID_DIGITS):
        number, digit = divmod(number, len(_CROCKFORD))
        digits.append(_CROCKFORD[digit])
    return "".join(reversed(digits))
