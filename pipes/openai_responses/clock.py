"""Time, random numbers, ids of both, digests, recent texts; threads for long work.

Ids are ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's alphabet, so
they sort by time. A package for them would have to be installed on the user's server.
"""

import asyncio
import gc
import hashlib
import random
import secrets
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TypeVar


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


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text; a lone surrogate is none of UTF-8's characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        self._now = now
        self._ends: dict[int, float] = {}

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + _DAY_SECONDS
        return True


_LARGE = 3000
"""Entries from which on the work takes so long that others would notice it."""
_Done = TypeVar("_Done")


async def run_work(size: int, work: Callable[[], _Done]) -> _Done:
    """Return the result of `work` on a chat with so many entries.

    A large chat takes a thread, so that the server answers others meanwhile.
    """
    if size > _LARGE:
        return await asyncio.to_thread(pause_collection, work)
    return work()


def pause_collection(work: Callable[[], _Done]) -> _Done:
    """Return the result of `work`, during which Python searches for no cycles.

    Each search reads all objects again, of which a large chat makes many. The first of
    several threads that ends lets the searches go on, so they never wait long.
    """
    if not gc.isenabled():
        return work()
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


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
