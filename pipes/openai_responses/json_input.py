"""JSON that people and models wrote, which may be invalid."""

import json
from collections.abc import Mapping
from typing import Any


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):  # the latter for thousands of brackets
        return None
    return found if isinstance(found, dict) else None


def parse_string_map(text: str) -> Mapping[str, str] | None:
    """Return the JSON object of texts in a text; {} for an empty text."""
    found = parse_json_object(text.strip() or "{}")
    if found is None or not all(isinstance(one, str) for one in found.values()):
        return None
    return found


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; anything else is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default


def count_entries(value: object, depth: int) -> int:
    """Return about how large a JSON value is: entries and kilobytes, to a depth."""
    if isinstance(value, str):
        return len(value) >> 10
    rows = list(value.values()) if isinstance(value, Mapping) else as_list(value)
    inner = sum(count_entries(row, depth - 1) for row in rows) if depth else 0
    return len(rows) + inner


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""
