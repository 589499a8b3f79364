"""The pooled HTTP session of each event loop.

A session is opened by the first run that borrows it. It is closed when none has been
under way for a while, or when its owner is gone: a host that replaces a pipe tells the
old one nothing.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

_IDLE_SECONDS = 60.0
"""Less than the keep-alive of OpenAI's front end, so that we close first."""
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; fewer would queue busy servers."""
_KEEPALIVE_SECONDS = 50.0
"""A connection that rested for longer may be closed by the other side at any time."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up costs the first words."""


class _Pool:
    """The session of one event loop, lent to the runs that are under way."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if need be; the last return starts the clock."""
        if self._timer is not None:
            self._timer.cancel()
        if self._session is None:
            self._session = _new_session()
        self._lent += 1
        try:
            yield self._session
        finally:
            self._lent -= 1
            if self._lent == 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle_seconds, self.close_later)

    async def close(self) -> None:
        """Close the session now, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def close_later(self) -> None:
        """Close the session in a task of its own, for callers that cannot wait."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None  # at once: no run may borrow it
        if session is None:
            return
        # A task, held until it is done: a connector closed straight from a timer
        # warns "never awaited" on aiohttp 3.14.
        task = asyncio.get_running_loop().create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Sessions:
    """The pools of one pipe, one for each event loop that runs it."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._idle_seconds = idle_seconds
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def __del__(self) -> None:
        """Close what is open: the last run that held us has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def pool(self) -> _Pool:
        """Return the pool of the running loop; those of ended loops are dropped."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            alive = {one: p for one, p in self._pools.items() if not one.is_closed()}
            self._pools = {**alive, loop: _Pool(self._idle_seconds)}
        return self._pools[loop]

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


def _new_session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=_MAX_CONNECTIONS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        ttl_dns_cache=_DNS_SECONDS,
    )
    # Limits of time are the runs' own; the environment's proxies are looked up by
    # us, because trust_env would also send what a .netrc file holds.
    no_limit = aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None)
    # What a gateway sets for one user must not be sent for another.
    no_cookies = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(
        connector=connector, timeout=no_limit, cookie_jar=no_cookies
    )
