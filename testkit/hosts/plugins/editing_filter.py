"""
title: A filter that edits the text of a stream
"""

from typing import Any


class Filter:
    """Writes in capitals."""

    def stream(self, event: dict[str, Any]) -> dict[str, Any]:
        """Edit each delta of Chat Completions."""
        for choice in event["choices"]:
            text = choice["delta"].get("content") or ""
            choice["delta"]["content"] = text.upper()
        return event
