"""What a model gives a function, held against the function's own schema.

The check knows the keywords that models get wrong: types, required properties, enums,
items and choices. Others are the tool's business.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from openai_responses.schema_parts import referred

_DEEPEST_ARGUMENT = 40


def _is_number(value: Any) -> bool:
    """Say whether a value is a number; true is none, nor is what JSON cannot say."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
}


def argument_complaint(arguments: object, schema: Mapping[str, Any]) -> str | None:
    """Return what is wrong with arguments, as a sentence for the model; None if fine.

    Nulls that stand for "not given" are fine.
    """
    if not isinstance(arguments, Mapping):
        return "The arguments must be a JSON object."
    try:
        found = _misfit(without_nulls(arguments, schema), schema, schema, "", 0)
    except (TypeError, AttributeError, ValueError):
        return None  # what a server calls a schema need not be one
    return None if found is None else f"The argument {found}."


def without_nulls(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments without the nulls that stand for "not given".

    They do where a property is optional and must not be null itself.
    """
    return dict(_cleaned(arguments, schema, schema, 0))


def _cleaned(value: Any, node: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > _DEEPEST_ARGUMENT:
        return value
    forms = list(_all_forms(node, root))
    if isinstance(value, list):
        items = next((form["items"] for form in forms if "items" in form), None)
        return [_cleaned(one, items, root, depth + 1) for one in value]
    if not isinstance(value, Mapping):
        return value
    known: dict[str, Any] = {}
    required: set[str] = set()
    for form in forms:
        known |= form.get("properties") or {}
        required |= set(form.get("required") or ())
    return {
        name: _cleaned(one, known.get(name), root, depth + 1)
        for name, one in value.items()
        if one is not None
        or name not in known
        or name in required
        or _misfit(None, known[name], root, name, 0) is None
    }


def _all_forms(node: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
    """Yield a schema, with all the schemas it refers to or is put together from."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_ARGUMENT:
        return
    yield node
    parts = [referred(node, root)] if "$ref" in node else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += node[key] if isinstance(node.get(key), list) else []
    for part in parts:
        yield from _all_forms(part, root, depth + 1)


def _misfit(
    value: Any, node: Any, root: Mapping[str, Any], path: str, depth: int
) -> str | None:
    """Return the path and what is wrong there, or None."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_ARGUMENT:
        return None
    if value is None and node.get("nullable") is True:
        return None
    if "$ref" in node:
        return _misfit(value, referred(node, root), root, path, depth + 1)
    found = _own_misfit(value, node, path)
    if found is None and isinstance(value, Mapping):
        found = _in_object(value, node, root, path, depth)
    if found is None and isinstance(value, list):
        found = _in_list(value, node, root, path, depth)
    return found or _in_parts(value, node, root, path, depth)


def _own_misfit(value: Any, node: Mapping[str, Any], path: str) -> str | None:
    """Hold a value against the type of a schema, then against what it may be."""
    place = path or "object"
    kinds = _known_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{place} must be {_listed(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not any(_same(value, one) for one in allowed):
        return f"{place} must be one of {_listed(list(map(repr, allowed)))}"
    return None


def _known_types(said: Any) -> list[str]:
    kinds = [said] if isinstance(said, str) else said or []
    return [kind for kind in kinds if kind in _TYPES]


def _in_object(
    value: Mapping[str, Any],
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    path: str,
    depth: int,
) -> str | None:
    missing = [name for name in node.get("required") or () if name not in value]
    if missing:
        return f"{_joined(path, str(missing[0]))} is missing"
    properties = node.get("properties") or {}
    parts = ((name, properties[name]) for name in properties if name in value)
    found = (
        _misfit(value[name], part, root, _joined(path, name), depth + 1)
        for name, part in parts
    )
    return next((one for one in found if one), None)


def _in_list(
    value: Sequence[Any],
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    path: str,
    depth: int,
) -> str | None:
    found = (
        _misfit(one, node.get("items"), root, f"{path}[{place}]", depth + 1)
        for place, one in enumerate(value)
    )
    return next((one for one in found if one), None)


def _in_parts(
    value: Any, node: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> str | None:
    """Hold a value against `allOf`, and against one at least of a choice."""
    for part in node.get("allOf") or ():
        found = _misfit(value, part, root, path, depth + 1)
        if found:
            return found
    options = node.get("anyOf") or node.get("oneOf") or ()
    misfits = [_misfit(value, one, root, path, depth + 1) for one in options]
    if misfits and all(misfits):
        return f"{path or 'object'} fits none of its forms"
    return None


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(words: Sequence[str]) -> str:
    """Return a few words as a list; long ones are no help to a model."""
    shown = [word if len(word) <= 60 else word[:57] + "..." for word in words[:20]]
    return " or ".join(shown) + (" ..." if len(words) > 20 else "")


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
