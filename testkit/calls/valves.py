"""Valves that hold JSON, written as keyword arguments."""

import json
from typing import Any


def expert(**settings: Any) -> str:
    """The text of EXPERT_JSON with these settings."""
    return json.dumps(settings)
