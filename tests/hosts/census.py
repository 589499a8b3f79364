"""
title: Counts what the pipes of this server hold open
"""

import asyncio
import gc
import json


class Pipe:
    """Answers with the count as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        """One model."""
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        """Count sessions that are not closed, their sockets, and tasks of ours."""
        gc.collect()
        pools = [one for one in gc.get_objects() if type(one).__name__ == "_Pool"]
        pools = [one for one in pools if hasattr(one, "_lent")]
        open_ones = [one._session for one in pools if one._session is not None]
        names = [str(task.get_coro()) for task in asyncio.all_tasks()]
        return json.dumps(
            {
                "sessions": len(open_ones),
                "idle_sockets": sum(_sockets(one.connector) for one in open_ones),
                "lent": sum(one._lent for one in pools),
                "tasks": len([n for n in names if "Pipe." in n or "Connections" in n]),
                "runs": len(
                    [o for o in gc.get_objects() if type(o).__name__ == "RunLog"]
                ),
            }
        )


def _sockets(connector: object) -> int:
    return sum(len(rested) for rested in getattr(connector, "_conns", {}).values())
