"""
title: A filter written for Chat Completions
"""


class Filter:
    def stream(self, event: dict) -> dict:  # type: ignore[type-arg]
        for choice in event["choices"]:  # fails where an event has no choices
            choice["delta"].get("content")
        return event
