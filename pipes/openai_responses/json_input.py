"""JSON that others wrote, which may be invalid, and JSON that is sent."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from pydantic import ConfigDict, TypeAdapter

JsonObject = Mapping[str, Any]
"""One that is only read."""

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of an event or a body: each can be a whole response with its images."""
MAX_JSON_DEPTH = 128
"""Recursive code, ours and the host's, fails at some hundreds."""
_VALUE_BYTES = 32
"""About what a value takes in memory in addition to its text: `[],` becomes 64 bytes."""


def _finite_number(text: str) -> float | None:
    """Return a number; None for one that JSON can say and no reader has, as 1e999."""
    number = float(text)
    return number if math.isfinite(number) else None


FINITE_NUMBERS: Mapping[str, Any] = {
    "parse_constant": lambda _name: None,
    "parse_float": _finite_number,
}
"""For a decoder: NaN and infinite numbers become null.

Python reads and writes them, others do not: with one of a server in an item, the page
could read no event of its socket, and PostgreSQL refused to store the chat.
"""


def load_json(
    text: str | bytes | bytearray, numbers: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """Return the value of a JSON text; raises ValueError, also if it is too deep.

    `numbers` may be FINITE_NUMBERS.
    """
    with suppress(RecursionError):
        value = json.loads(text, **numbers)
        # Most texts have fewer brackets than levels are allowed, which is quick to see.
        if _count_marks(text, "[{") <= MAX_JSON_DEPTH or not is_too_deep(value):
            return value
    raise ValueError("too deep")


def _count_marks(text: str | bytes | bytearray, marks: str) -> int:
    """Return how many of the marks a JSON text has, those in its strings among them."""
    if isinstance(text, str):
        return sum(text.count(mark) for mark in marks)
    return len(text) - len(text.translate(None, marks.encode()))


def is_too_deep(value: object) -> bool:
    """Say whether a value has more levels than MAX_JSON_DEPTH."""
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value), 1))


def _levels(value: object) -> Iterator[list[Any]]:
    """Yield the objects and lists of each level that hold something.

    A value that contains itself has levels without end.
    """
    level: list[Any] = [value] if value and isinstance(value, dict | list) else []
    while level:
        yield level
        below: list[Any] = []
        for parent in level:
            for part in parent.values() if isinstance(parent, dict) else parent:
                # Most are texts: to look for them first halves the time.
                if part.__class__ is not str and part and isinstance(part, dict | list):
                    below.append(part)
        level = below


def compact_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, in a third of the time that `json` takes.

    Raises ValueError for what `json` may still write: lone surrogates, some hundred
    levels.
    """
    return _COMPACT.to_json(value)


_COMPACT = TypeAdapter[Any](
    Any, config=ConfigDict(ser_json_inf_nan="constants")
).serializer


def json_weight(text: str | bytes | bytearray) -> int:
    """Return about how many bytes a JSON text takes once it is parsed."""
    # A value comes after a comma, or is the first after an opening.
    return len(text) + _VALUE_BYTES * _count_marks(text, "[{,")


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        value = load_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def repeats_a_name(text: str) -> bool:
    """Say whether a JSON text has a name twice in an object: readers take either."""
    has_repeated = False

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_repeated
        fields = dict(pairs)
        has_repeated = has_repeated or len(fields) < len(pairs)
        return fields

    json.loads(text, object_pairs_hook=read_object)
    return has_repeated


def parse_string_map(text: str) -> Mapping[str, str] | None:
    """Return the JSON object of texts in a text; None for anything else.

    An empty text stands for an empty object.
    """
    texts = parse_json_object(text.strip() or "{}")
    if texts is None:
        return None
    for value in texts.values():
        if not isinstance(value, str):
            return None
    return texts


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; anything else is the default."""
    value = int(value) if isinstance(value, bool) else value  # 1, as pydantic reads it
    try:
        number = float(str(value).strip())
        clamped = min(max(number, least), most)
        return int(clamped)
    except ValueError:  # no number, or NaN
        return default


_VALUE_SIZE = 10
"""What each value adds to a size; a walk takes about as long for ten characters."""
_MAX_VALUE_DEPTH = 64


class JsonTooLarge(ValueError):
    """What others sent is more than is read."""


class JsonBudget:
    """The work that may still be done on what others sent."""

    def __init__(self, left: int) -> None:
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
    size = 0
    for depth, level in enumerate(_levels([value])):
        for parent in level:
            size += _VALUE_SIZE * len(parent)
            parts = [*parent, *parent.values()] if isinstance(parent, dict) else parent
            if size <= most:  # else the texts need no look
                size += sum([len(part) for part in parts if isinstance(part, str)])
            if size > most:
                raise JsonTooLarge
        if depth >= _MAX_VALUE_DEPTH:
            raise JsonTooLarge
    return size


def matches_schema(value: object, schema: Any) -> bool:
    """Say whether a JSON value matches a schema of ours.

    A text is a pattern, a type itself, a tuple has schemas of which one matches, a list
    the schema of its values, an object the schemas of its keys; anything else is called.
    """
    match schema:
        case str():
            return isinstance(value, str) and bool(re.fullmatch(schema, value, re.S))
        case type():
            return isinstance(value, schema)
        case tuple():
            return any(matches_schema(value, option) for option in schema)
        case [schema_of_rows]:
            return isinstance(value, list) and all(
                matches_schema(row, schema_of_rows) for row in value
            )
        case dict():
            if not isinstance(value, Mapping) or not value.keys() <= schema.keys():
                return False
            return all(matches_schema(value[key], schema[key]) for key in value)
    return bool(schema(value))


def as_mapping(value: object) -> JsonObject:
    """Return a JSON object, an empty one for anything else."""
    # A dict is a Mapping, too, but to find that out takes several times as long.
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    """Return a value inside nested objects; None where one of them is missing."""
    for key in keys:
        value = as_mapping(value).get(key)
    return value


_MAX_REFERENCE_CHARACTERS = 300


def resolve_reference(root: JsonObject, reference: object) -> Any:
    """Return the part of `root` that a `$ref` names, or None.

    The reference is a JSON pointer after a `#`; `#` alone is the root (RFC 6901).
    """
    # A reference of megabytes would be split into as many steps.
    if not isinstance(reference, str) or len(reference) > _MAX_REFERENCE_CHARACTERS:
        return None
    start, *steps = reference.split("/")
    if start != "#":
        return None
    part: Any = root
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(part, list):
            part = as_mapping(part).get(name)
        elif name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_seconds(value: object) -> float | None:
    """Return a time that a server names, which may be a number in a text, else None."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    with suppress(ValueError, OverflowError):
        seconds = float(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def well_formed(text: str) -> str:
    """Return a text with a question mark for each half of a character.

    JSON may have them ("\\ud83d"), UTF-8 has none, so that no server can send one.
    """
    return text.encode("utf-8", "replace").decode()
