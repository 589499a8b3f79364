"""
title: Counts what the pipes of this server hold open
"""

import asyncio
import gc
import json


class Pipe:
    """Answers with the counts as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        """Count what the function whose id was said holds: sessions, sockets, logs."""
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
        return json.dumps(held_open)


def _module(held: object) -> str:
    return str(getattr(type(held), "__module__", ""))


def _sockets(connector: object) -> int:
    return sum(len(rested) for rested in getattr(connector, "_conns", {}).values())
