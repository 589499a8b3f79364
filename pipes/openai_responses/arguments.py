"""What a model gives a function, held against the function's own schema."""

from collections.abc import Mapping
from typing import Any

from openai_responses.misfits import DEEPEST_ARGUMENT, SchemaCheck
from openai_responses.schema_parts import referred

_ODD_SCHEMA = (TypeError, AttributeError, ValueError)
"""What a server calls a schema need not be one."""


def argument_complaint(arguments: object, schema: Mapping[str, Any]) -> str | None:
    """Return what is wrong with arguments, as a sentence for the model; None if fine.

    Nulls that stand for "not given" are fine.
    """
    if not isinstance(arguments, Mapping):
        return "The arguments must be a JSON object."
    given = without_nulls(arguments, schema)
    try:
        found = SchemaCheck(schema).misfit(given, schema)
    except _ODD_SCHEMA:
        return None
    return f"The argument {found}." if found else None


def without_nulls(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments without the nulls that stand for "not given".

    They do where a property is optional and must not be null itself. Where the schema
    is a choice, the form that the model chose tells.
    """
    try:
        return dict(_cleaned(arguments, schema, schema, 0))
    except _ODD_SCHEMA:
        return dict(arguments)


def _cleaned(value: Any, node: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > DEEPEST_ARGUMENT or not isinstance(value, Mapping | list):
        return value
    forms = _held_against(value, node, root)
    if isinstance(value, list):
        items = {"allOf": [form["items"] for form in forms if "items" in form]}
        return [_cleaned(one, items, root, depth + 1) for one in value]
    known: dict[str, list[Any]] = {}
    required: set[str] = set()
    for form in forms:
        for name, part in (form.get("properties") or {}).items():
            known.setdefault(name, []).append(part)
        required |= set(form.get("required") or ())
    whole = {name: {"allOf": parts} for name, parts in known.items()}
    may_be_null = SchemaCheck(root)
    return {
        name: _cleaned(one, whole.get(name), root, depth + 1)
        for name, one in value.items()
        if one is not None
        or name not in whole
        or name in required
        or not may_be_null.misfit(None, whole[name])
    }


def _held_against(value: Any, node: Any, root: Mapping[str, Any]) -> list[Any]:
    """Return the schemas that a value is held against, each once.

    Of choices it is the option that fits.
    """
    found: dict[int, Any] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in found:
            found[id(part)] = part
            ahead += reversed(_parts_of(value, part, root))
    return list(found.values())


def _parts_of(
    value: Any, node: Mapping[str, Any], root: Mapping[str, Any]
) -> list[Any]:
    parts = [referred(node, root)] if "$ref" in node else []
    parts += node["allOf"] if isinstance(node.get("allOf"), list) else []
    for key in ("anyOf", "oneOf"):
        options = node.get(key)
        parts += (
            _chosen_option(value, options, root) if isinstance(options, list) else []
        )
    return parts


def _chosen_option(
    value: Any, options: list[Any], root: Mapping[str, Any]
) -> list[Any]:
    """Return the option that a value fits; all of them where it fits none."""
    check = SchemaCheck(root, lenient=True)
    fitting = (option for option in options if not check.misfit(value, option))
    first = next(fitting, None)
    return options if first is None else [first]
