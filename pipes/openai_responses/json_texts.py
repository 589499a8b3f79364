"""JSON that a person typed."""

import json
from typing import Any


def typed_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
