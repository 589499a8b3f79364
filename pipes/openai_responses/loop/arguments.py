"""Checks the arguments that a model gives a function against the function's schema.

Only keywords that models get wrong are checked: types, required properties, enums,
items and choices. The tool itself checks the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from reprlib import repr as short_repr
from typing import Any

from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    json_size,
    resolve_reference,
)
from openai_responses.requests.json_schema import (
    LARGEST_SCHEMA,
    is_json_number,
    joined_schemas,
)
from openai_responses.requests.strict_schema import json_types

_ODD_SCHEMA = (TypeError, AttributeError, ValueError)
"""Errors of reading a schema that is not valid; servers send such schemas."""

_MAX_DEPTH = 40
"""Levels of a value that are checked; deeper ones are the tool's to check."""
_MAX_WORK = 200_000
"""Characters, entries and steps that one check may read or take (`JsonBudget`).

Arguments that need more are given to the tool as they are.
"""
_STEP = 20
"""The work of a comparison in addition to what it reads."""
_MAX_SHOWN_CHOICES = 20
_MAX_SHOWN_CHARACTERS = 60
_READ_KEYWORDS = ("properties", "required", "enum", "type", "allOf", "anyOf", "oneOf")


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_json_number,
    "integer": lambda value: is_json_number(value) and value == int(value),
}


@dataclass(frozen=True, slots=True)
class _SchemaCheck:
    """Checks values against the parts of one schema, as long as the budget lasts.

    Each value may be compared with each part, which is why there is a budget. A schema
    can refer to the same part several times, and to itself, so `errors` remembers the
    result of each comparison by path and by the identity of value and part; both must
    outlive the check. If it is `lenient`, null is allowed for every optional property.
    """

    root: JsonObject
    budget: JsonBudget
    errors: dict[tuple[str, int, int], str]
    lenient: bool = False

    def pay_for(self, value: Any, node: JsonObject, path: str = "") -> None:
        """Pay for comparing a value with a part; raises ValueError at the limit."""
        size = _STEP + len(path)
        for keyword in _READ_KEYWORDS:
            part = node.get(keyword)
            if isinstance(part, list | dict):
                size += len(part)
        if isinstance(value, list | dict):
            size += len(value)
            if "enum" in node or "const" in node:
                # Each choice is compared with the whole value.
                size *= json_size(value, self.budget.left)
        self.budget.spend(size)

    def find_error(self, value: Any, node: Any, path: str = "", depth: int = 0) -> str:
        """Return the path and the error there; empty if `value` is valid for `node`."""
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            return ""
        compared = (path, id(value), id(node))
        if compared not in self.errors:
            self.errors[compared] = ""  # a schema that refers to itself ends here
            self.errors[compared] = self._compare(value, node, path, depth)
        return self.errors[compared]

    def _compare(self, value: Any, node: JsonObject, path: str, depth: int) -> str:
        """Compare a value with a node that it was not compared with yet."""
        self.pay_for(value, node, path)
        if value is None and node.get("nullable") is True:
            return ""
        if "$ref" in node:
            target = resolve_reference(self.root, node["$ref"])
            return self.find_error(value, target, path, depth + 1)
        error = _find_own_error(value, node, path)
        if error:
            return error
        for inner, part, own_path in self._inner_values(value, node, path):
            error = self.find_error(inner, part, own_path, depth + 1)
            if error:
                return error
        options = node.get("anyOf") or node.get("oneOf") or ()
        for option in options:
            if not self.find_error(value, option, path, depth + 1):
                return ""
        return f"{path or 'object'} fits none of its forms" if options else ""

    def _inner_values(
        self, value: Any, node: JsonObject, path: str
    ) -> Iterator[tuple[Any, Any, str]]:
        """Yield what is inside a value, and the value for each `allOf`.

        Each comes with the part of the schema that it has to match, and its path.
        """
        items = node.get("items")
        if isinstance(value, Mapping):
            properties = node.get("properties") or {}
            required = _required_names(node) if self.lenient else frozenset()
            for name in properties:
                if name not in value:
                    continue
                may_be_null = self.lenient and name not in required
                if value[name] is not None or not may_be_null:
                    yield value[name], properties[name], _join_path(path, name)
        elif isinstance(value, list) and isinstance(items, Mapping):
            for index, entry in enumerate(value):
                yield entry, items, f"{path}[{index}]"
        for part in node.get("allOf") or ():
            yield value, part, path


def _find_own_error(value: Any, node: JsonObject, path: str) -> str:
    """Return the error of a value itself: its type, its choice, its missing keys."""
    shown_path = path or "object"
    kinds = json_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{shown_path} must be {' or '.join(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    is_flag = isinstance(value, bool)  # in JSON, true is not 1
    if isinstance(allowed, Sequence) and not any(
        is_flag is isinstance(choice, bool) and value == choice for choice in allowed
    ):
        shown: list[str] = []
        for choice in allowed[:_MAX_SHOWN_CHOICES]:
            word = (
                repr(choice[:_MAX_SHOWN_CHARACTERS])
                if isinstance(choice, str)
                else short_repr(choice)
            )
            is_long = len(word) > _MAX_SHOWN_CHARACTERS
            shown.append(word[: _MAX_SHOWN_CHARACTERS - 3] + "..." if is_long else word)
        others = " ..." if len(allowed) > _MAX_SHOWN_CHOICES else ""
        return f"{shown_path} must be one of {' or '.join(shown)}{others}"
    if isinstance(value, Mapping):
        for name in node.get("required") or ():
            if isinstance(name, str) and name not in value:
                return f"{_join_path(path, name)} is missing"
    return ""


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def check_arguments(
    arguments: object, schema: JsonObject
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments to call a function with, and the error in them, if any.

    Nulls that mean "not given" are left out. A null means that if its property is
    optional and must not be null itself; in a choice, the option that the model chose
    decides. The error is a message for the model.
    """
    if arguments is None:  # some models write null for none
        arguments = {}
    if not isinstance(arguments, Mapping):
        return {}, "The arguments must be a JSON object."
    kept = dict(arguments)
    error = ""
    with suppress(*_ODD_SCHEMA):
        json_size(schema, LARGEST_SCHEMA)  # raises ValueError for a larger one
        check = _SchemaCheck(schema, JsonBudget(_MAX_WORK), {})
        kept = _drop_nulls(arguments, schema, check, 0)
        error = check.find_error(kept, schema)
    return kept, f"The argument {error}." if error else None


def _drop_nulls(value: Any, node: Any, check: _SchemaCheck, depth: int) -> Any:
    """Return a value without the nulls that mean "not given", at any depth."""
    if depth > _MAX_DEPTH or not isinstance(value, Mapping | list):
        return value
    forms = _applicable_schemas(value, node, check)
    if isinstance(value, list):
        items = {"allOf": [form["items"] for form in forms if "items" in form]}
        return [_drop_nulls(entry, items, check, depth + 1) for entry in value]
    # The schemas of the keys that the value has, joined over all forms.
    known: dict[str, dict[str, list[Any]]] = {}
    required: set[str] = set()
    for form in forms:
        required |= _required_names(form)
        properties = form.get("properties") or {}
        for name in properties:
            if name in value:
                known.setdefault(name, {"allOf": []})["allOf"].append(properties[name])
    # With errors of its own: `known` is made here, and remembered errors hold only as
    # long as the parts that they are about.
    null_check = replace(check, errors={})
    kept: dict[Any, Any] = {}
    for name, entry in value.items():
        may_be_dropped = entry is None and name in known and name not in required
        if may_be_dropped and null_check.find_error(None, known[name]):
            continue
        kept[name] = _drop_nulls(entry, known.get(name), check, depth + 1)
    return kept


def _applicable_schemas(value: Any, node: Any, check: _SchemaCheck) -> list[JsonObject]:
    """Return a schema and all that it joins to itself; of a choice, one option."""

    def choose(options: list[Any]) -> list[Any]:
        """Return the option that the value fits; all options if it fits none."""
        lenient = replace(check, errors={}, lenient=True)
        for option in options:
            if not lenient.find_error(value, option):
                return [option]
        return options

    joined: list[JsonObject] = []
    for part in joined_schemas(check.root, node, choose):
        check.pay_for(value, part)
        joined.append(part)
    return joined


def _required_names(node: JsonObject) -> Set[str]:
    """Return the names that a schema requires.

    Numbers are none: a stranger can choose thousands that have one hash.
    """
    names = node.get("required")
    if not isinstance(names, list):
        return frozenset()
    kinds = set(map(type, names))
    if all(issubclass(kind, str) for kind in kinds):  # as almost always
        return frozenset(names)
    return {name for name in names if isinstance(name, str)}
