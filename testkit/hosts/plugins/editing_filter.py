"""
title: A filter that reads and edits the text of a stream
"""

import logging
from typing import Any


class Filter:
    """Counts what it reads, and writes in capitals."""

    def __init__(self) -> None:
        self.read = ""

    def stream(self, event: dict[str, Any]) -> dict[str, Any]:
        """Edit each delta of Chat Completions."""
        for choice in event["choices"]:
            text = choice["delta"].get("content") or ""
            self.read += text
            choice["delta"]["content"] = text.upper()
        return event

    def outlet(self, body: dict[str, Any]) -> dict[str, Any]:
        """Say at the end what was read."""
        logging.getLogger("editing").warning("the filter read: %r", self.read)
        self.read = ""
        return body
