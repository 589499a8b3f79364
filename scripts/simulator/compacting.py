"""Server-side compaction: when an input is so long that an item takes its place.

The item comes first in the output (responses-api.md §1, `context_management`).
"""

from collections.abc import Mapping
from typing import Any

from simulator.refusals import missing_parameter, out_of_range, wrong_value

SEALED = ("reasoning", "compaction")
LEAST = 1000


def check_compaction(body: Mapping[str, Any]) -> None:
    """Raise the refusal for a way to manage the context that there is not."""
    for index, way in enumerate(body.get("context_management") or []):
        path = f"context_management[{index}]"
        if "type" not in way:
            raise missing_parameter(f"{path}.type")
        if way["type"] != "compaction":
            raise wrong_value(f"{path}.type", way["type"], ("compaction",))
        threshold = way.get("compact_threshold")
        if threshold is not None and threshold < LEAST:
            place = f"{path}.compact_threshold"
            raise out_of_range(place, "integer", f">= {LEAST}", threshold)


def compactions(body: Mapping[str, Any], tokens: int) -> list[dict[str, Any]]:
    """Return the draft of the item that an input of so many tokens calls for."""
    ways = body.get("context_management") or []
    limits = [way.get("compact_threshold") for way in ways]
    over = any(limit is not None and tokens > limit for limit in limits)
    return [{"type": "compaction"}] if over else []
