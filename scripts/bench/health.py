"""Ask servers again and again whether they are well, until standard input ends.

python scripts/bench/health.py http://127.0.0.1:8080/health ...

Prints the longest time between two answers of one of them, in milliseconds. It is a
process of its own: one that also reads the answers of a crowd would be late itself.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

PAUSE = 0.05


class Gap:
    """The longest time between two answers so far, in milliseconds."""

    milliseconds = 0.0


@asynccontextmanager
async def watched_health(urls: Sequence[str]) -> AsyncIterator[Gap]:
    """Run this program during the block; the gap is known afterwards."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        *urls,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    gap = Gap()
    try:
        yield gap
    finally:
        # Without input, asyncio of Python 3.11 does not close it.
        output, _ = await process.communicate(b"")
    gap.milliseconds = float(output)


async def longest_gap(urls: Sequence[str]) -> float:
    """Return the longest gap of all servers until standard input ends."""
    stopped = asyncio.Event()
    watching = [asyncio.create_task(_watch(url, stopped)) for url in urls]
    await asyncio.to_thread(sys.stdin.read)
    stopped.set()
    return max(await asyncio.gather(*watching))


async def _watch(url: str, stopped: asyncio.Event) -> float:
    """Return the longest gap of one server."""
    longest = 0.0
    async with aiohttp.ClientSession() as session:
        answered = time.perf_counter()
        while not stopped.is_set():
            async with session.get(url) as response:
                response.raise_for_status()
            now = time.perf_counter()
            longest = max(longest, now - answered)
            answered = now
            await asyncio.sleep(PAUSE)
    return longest * 1e3


if __name__ == "__main__":
    print(asyncio.run(longest_gap(sys.argv[1:])))
