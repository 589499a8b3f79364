"""Valves that hold JSON, written as keyword arguments."""

import json
from typing import Any


def expert(**settings: Any) -> str:
    return json.dumps(settings)
