"""JSON that others wrote, which may be invalid."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

JsonObject = Mapping[str, Any]
"""One that is only read."""

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of an event or a body: each can be a whole response with its images."""
MAX_JSON_DEPTH = 128
"""Recursive code, ours and the host's, fails at some hundreds."""
_VALUE_BYTES = 32
"""About what a value takes in memory beside its text: `[],` becomes 64 bytes."""


def load_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text; raises ValueError, also if it is too deep."""
    with suppress(RecursionError):
        value = json.loads(text)
        if not is_too_deep(value):
            return value
    raise ValueError("too deep")


def is_too_deep(value: object) -> bool:
    """Say whether a value has more levels than MAX_JSON_DEPTH."""
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value)))


def _levels(value: object) -> Iterator[list[Any]]:
    """Yield the values of each level, names of objects among them."""
    level = [value]
    while level:
        yield level
        objects = [one for one in level if isinstance(one, dict)]
        names = [name for one in objects for name in one]
        inner = [row for one in objects for row in one.values()]
        lists = [row for one in level if isinstance(one, list) for row in one]
        level = [*names, *inner, *lists]


def json_weight(text: bytes | bytearray) -> int:
    """Return about how many bytes a JSON text takes once it is parsed."""
    values = len(text) - len(text.translate(None, b"[{,"))
    return len(text) + _VALUE_BYTES * values


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    try:
        found = load_json(text) if isinstance(text, str) else None
    except ValueError:
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


_VALUE_SIZE = 10
"""What each value adds to a size; a walk takes about as long for ten characters."""
_DEEPEST_VALUE = 64


class JsonTooLarge(ValueError):
    """What others sent is more than is read."""


class JsonBudget:
    """The work that may still be done on what others sent."""

    def __init__(self, left: int) -> None:
        """Begin with the size that may be read."""
        self.left = left

    def spend(self, size: int) -> None:
        """Take a size away; raises JsonTooLarge if there is not so much."""
        if size > self.left:
            raise JsonTooLarge
        self.left -= size


def json_size(value: object, most: int) -> int:
    """Return the size of a JSON value: its characters, and ten for each value.

    Raises JsonTooLarge for more than `most`, and for too many levels.
    """
    size = _VALUE_SIZE
    for depth, level in enumerate(_levels(value)):
        for one in level:
            if isinstance(one, str):
                size += len(one)
            elif isinstance(one, dict | list):
                size += _VALUE_SIZE * len(one)
            if size > most:
                raise JsonTooLarge
        if depth >= _DEEPEST_VALUE:
            raise JsonTooLarge
    return size


def fits_form(value: object, form: Any) -> bool:
    """Say whether a JSON value has a form.

    A text is a pattern, a type itself, a tuple has forms of which one fits, a list the
    form of its values, an object the forms of its keys; anything else is called.
    """
    match form:
        case str():
            return isinstance(value, str) and bool(re.fullmatch(form, value, re.S))
        case type():
            return isinstance(value, form)
        case tuple():
            return any(fits_form(value, one) for one in form)
        case [inner]:
            return isinstance(value, list) and all(fits_form(v, inner) for v in value)
        case dict():
            return isinstance(value, Mapping) and all(
                key in form and fits_form(one, form[key]) for key, one in value.items()
            )
    return bool(form(value))


def as_mapping(value: object) -> JsonObject:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    """Return what stands in objects in each other; None where one is missing."""
    for key in keys:
        value = as_mapping(value).get(key)
    return value


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""
