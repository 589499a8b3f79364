"""The keywords of strict mode that hold no other schema."""

import json
import re
from collections.abc import Iterable
from typing import Any

from openai_responses.merging import NotStrict
from openai_responses.subschemas import Schema, is_kind, own_values

FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email")
    + ("hostname", "ipv4", "ipv6", "uuid")
)
_BOUNDS = {
    "number": ("multipleOf", "minimum", "maximum", "exclusiveMinimum")
    + ("exclusiveMaximum",),
    "array": ("minItems", "maxItems"),
}
_NOTED = (
    ("default", "format", "pattern", "minLength", "maxLength", "uniqueItems")
    + ("minProperties", "maxProperties", "examples", "example")
)  # fmt: skip
_BEYOND_THE_MODE = re.compile(r"\(\?(?!:)|\\[1-9kpP]")
"""Lookaround, which the API refuses, and what not every matcher knows."""
_LONGEST_NOTE = 200


def scalar_form(schema: Schema, kinds: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a value that is no object or array."""
    allowed = list(kinds)
    form: dict[str, Any] = {"type": allowed[0] if len(allowed) == 1 else allowed}
    values = own_values(schema)
    if values is not None:
        return {**form, **_values_of(values, allowed, single="const" in schema)}
    if "string" in allowed:
        form |= _text_words(schema)
    if {"number", "integer"} & {*allowed}:
        form |= bounds(schema, "number")
    return form


def bounds(schema: Schema, kind: str) -> dict[str, Any]:
    """Return the bounds of a number or of an array's length."""
    found = {
        word: schema[word]
        for word in _BOUNDS[kind]
        if word in schema and is_kind(schema[word], "number")
    }
    for side in ("inimum", "aximum"):
        # Draft 4 and OpenAPI 3.0 say with true that `minimum` itself is left out.
        if schema.get(f"exclusiveM{side}") is True and f"m{side}" in found:
            found[f"exclusiveM{side}"] = found.pop(f"m{side}")
    return found


def noted(schema: Schema) -> str:
    """Return what a reader should know of a schema: its description, and beside it
    what strict mode has no keyword for."""
    kept = _text_words(schema)
    notes = [
        f"{word}: {note}"
        for word in _NOTED
        if word not in kept and schema.get(word) is not None
        if len(note := json.dumps(schema[word], ensure_ascii=False)) <= _LONGEST_NOTE
    ]
    description = schema.get("description")
    texts = [description] if isinstance(description, str) and description else []
    return " ".join([*texts, *([f"({'; '.join(notes)})"] if notes else [])])


def described(form: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return `form` with what is noted of `schema`; a reference stands alone."""
    text = noted(schema)
    return {**form, "description": text} if text and "$ref" not in form else form


def _values_of(values: list[Any], kinds: list[str], single: bool) -> dict[str, Any]:
    kept = [value for value in values if any(is_kind(value, kind) for kind in kinds)]
    if "null" in kinds and None not in kept:
        kept.append(None)
    if not kept:
        raise NotStrict("a value that nothing can be")
    return {"const": kept[0]} if single and len(kept) == 1 else {"enum": kept}


def _text_words(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if schema.get("format") in FORMATS:
        found["format"] = schema["format"]
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _BEYOND_THE_MODE.search(pattern):
        found["pattern"] = pattern
    return found
