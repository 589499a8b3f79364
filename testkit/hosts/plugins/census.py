"""
title: Counts what the pipes of this server hold open, and what they keep
"""

import asyncio
import gc
import json
import re
import sys

LONG_PATTERN = 5_000
KEEPERS = ("PipeMemory", "Connections", "Listing", "Pipe")


class Pipe:
    """Answers with the counts as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        """One model."""
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        """Count what the function whose id was said holds: sessions, sockets, logs.

        Of what it keeps, count the bytes; and the long patterns of `re`.
        """
        gc.collect()
        owner = f"function_{body['messages'][-1]['content']}_"
        theirs = [held for held in gc.get_objects() if _module(held).startswith(owner)]
        pools = [held for held in theirs if type(held).__name__ == "_Pool"]
        opened = [pool._session for pool in pools if pool._session is not None]
        frames = [getattr(t.get_coro(), "cr_frame", None) for t in asyncio.all_tasks()]
        names = [frame.f_globals.get("__name__", "") for frame in frames if frame]
        held_open = {
            "sessions": len(opened),
            "idle_sockets": sum(_sockets(session.connector) for session in opened),
            "lent": sum(pool.lent for pool in pools),
            "tasks": sum(name.startswith(owner) for name in names),
            "runs": sum(type(held).__name__ == "RunLog" for held in theirs),
        }
        keepers = [held for held in theirs if type(held).__name__ in KEEPERS]
        patterns = [str(key[1]) for key in re._cache]  # type: ignore[attr-defined]
        kept = {
            "patterns": sum(len(pattern) > LONG_PATTERN for pattern in patterns),
            "keepers": len(keepers),
            "bytes": sum(_size(vars(keeper)) for keeper in keepers),
        }
        return json.dumps({"open": held_open, "kept": kept})


def _module(held: object) -> str:
    return str(getattr(type(held), "__module__", ""))


def _sockets(connector: object) -> int:
    return sum(len(rested) for rested in getattr(connector, "_conns", {}).values())


def _size(value: object) -> int:
    """Return the bytes of a value, with those of containers and texts inside of it."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(_size(part) for item in value.items() for part in item)
    if isinstance(value, list | tuple | set):
        return size + sum(map(_size, value))
    return size
