"""
title: Counts what the pipe of this server keeps between requests
"""

import gc
import json
import re
import sys

LONG_PATTERN = 5_000
KEEPERS = ("AccountCapabilities", "Connections", "Listing", "Pipe")


class Pipe:
    """Answers with the count as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        """One model."""
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        """Count the long patterns of `re`, and the bytes that the function keeps."""
        gc.collect()
        owner = f"function_{body['messages'][-1]['content']}_"
        keepers = [
            value
            for value in gc.get_objects()
            if type(value).__name__ in KEEPERS
            and type(value).__module__.startswith(owner)
        ]
        patterns = [
            key
            for key in re._cache  # type: ignore[attr-defined]
            if len(str(key[1])) > LONG_PATTERN
        ]
        return json.dumps(
            {
                "patterns": len(patterns),
                "keepers": len(keepers),
                "bytes": sum(_size(vars(keeper)) for keeper in keepers),
            }
        )


def _size(value: object) -> int:
    """Return the bytes of a value, with those of containers and texts inside of it."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(_size(part) for item in value.items() for part in item)
    if isinstance(value, list | tuple | set):
        return size + sum(map(_size, value))
    return size
