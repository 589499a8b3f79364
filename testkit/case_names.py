"""What pytest calls a row of a table: its values, where pytest would number them.

pytest names numbers and short texts itself. It calls dicts, lists and objects `body0`,
`body1`, which does not tell what failed. A table whose values do not tell its rows
apart has `ids`.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date
from functools import partial
from typing import Any

from pydantic import BaseModel

LONGEST = 60
"""Names of three longer values fill more than a line of a terminal."""
MOST_READ = 100_000
"""Of a text: to look for runs in ten million characters takes half a second."""
_RUN = re.compile(r"(.)\1{9,}", re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def case_name(value: object) -> str | None:
    """Return what a value of a table is called, or None for what pytest names well."""
    if isinstance(value, str | bytes):
        return _short(_described(value)) if len(value) > LONGEST else None
    if value is None or isinstance(value, int | float | type):
        return None
    return _short(_described(value))


def _short(name: str) -> str:
    """Leave out the middle: values that are alike mostly differ at an end.

    As in pytest's own names there is only ASCII: workers cannot send every character.
    """
    name = name.encode("ascii", "backslashreplace").decode()
    if len(name) <= LONGEST:
        return name
    half = (LONGEST - 2) // 2
    return f"{name[:half]}..{name[-half:]}"


def _described(value: object) -> str:
    if _defaults(value) is not None:
        return _call(type(value).__name__, _telling_fields(value))
    for kind, describe in _DESCRIPTIONS.items():
        if isinstance(value, kind):
            return describe(value)
    return str(getattr(value, "__name__", _ADDRESS.sub("", repr(value))))


def _text(value: str) -> str:
    """Return a text on one line, in which a run of one character is a number.

    Half a character has an escape: the processes of pytest-xdist cannot exchange it.
    """
    if len(value) > MOST_READ:
        value = f"{value[: MOST_READ // 2]}..{value[-MOST_READ // 2 :]}"
    encodable = value.encode("utf-8", "backslashreplace").decode()
    shorter = _RUN.sub(lambda run: f"{run[1]}*{len(run[0])}", encodable)
    return " ".join(shorter.split())


def _mapping(value: Mapping[object, object]) -> str:
    """Begin with the kind of an item, an event or a tool."""
    kind = value.get("type")
    if isinstance(kind, str):
        return _call(kind, {key: value[key] for key in value if key != "type"})
    return _pairs(value) or "{}"


def _pairs(value: Mapping[Any, object]) -> str:
    return ",".join(f"{key}={_described(part)}" for key, part in value.items())


def _call(name: str, arguments: Mapping[Any, object]) -> str:
    return f"{name}({_pairs(arguments)})"


def _sequence(values: Sequence[object]) -> str:
    if len(values) > 2 * LONGEST:
        # Of many, the name shows those at the ends.
        values = [*values[:LONGEST], *values[-LONGEST:]]
    return f"[{','.join(_entry(each) for each in values)}]"


def _entry(value: object) -> str:
    """Of many items only their kinds can be read."""
    if isinstance(value, Mapping):
        kind = value.get("role") or value.get("type")
        if isinstance(kind, str):
            return kind
    return _described(value)


def _defaults(value: Any) -> dict[str, object] | None:
    """Return the fields of a dataclass or a named tuple with their defaults."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: field.default for field in dataclasses.fields(value)}
    if hasattr(value, "_field_defaults"):
        return {name: value._field_defaults.get(name) for name in value._fields}
    return None


def _telling_fields(value: object) -> dict[str, object]:
    """Return the fields that are not empty and not what they are by default."""
    fields = {}
    for name, default in (_defaults(value) or {}).items():
        content = getattr(value, name)
        # A part of which all fields are left out says nothing.
        is_telling = _defaults(content) is None or _telling_fields(content)
        if content and content != default and is_telling:
            fields[name] = content
    return fields


_DESCRIPTIONS: dict[type, Callable[[Any], str]] = {
    str: _text,
    bytes: lambda value: _text(value.decode("ascii", "backslashreplace")),
    Mapping: _mapping,
    list: _sequence,
    tuple: _sequence,
    Set: lambda value: _sequence(sorted(value, key=str)),
    date: str,
    partial: lambda value: (
        _described(value.func) + _sequence([*value.args, *value.keywords.values()])
    ),
    BaseModel: lambda value: (
        _call(type(value).__name__, value.model_dump(exclude_unset=True))
    ),
    BaseException: lambda value: f"{type(value).__name__}({_text(str(value))})",
}
