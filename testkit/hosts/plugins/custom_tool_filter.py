"""
title: Offers a tool of the toolkit as one of free text
"""


class Filter:
    def inlet(self, body: dict) -> dict:  # type: ignore[type-arg]
        if "toolkit" in (body.get("tool_ids") or []):
            tool = {"type": "custom", "name": "take_note", "description": "Keep a note"}
            body["extra_tools"] = [tool]
        return body
