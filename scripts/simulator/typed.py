"""A walker that holds a JSON value against a type of the openai package."""

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from openai._types import SequenceNotStr

from simulator.refusals import (
    Refusal,
    missing_parameter,
    unknown_parameter,
    wrong_type,
    wrong_value,
)

Hint = Any
WORDS: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a decimal",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def word_of(value: object) -> str:
    """Name the JSON type of a value as the API's messages do."""
    return WORDS.get(type(value), "something else")


@cache
def fields_of(shape: type) -> Mapping[str, Hint]:
    """Return the fields of a TypedDict, each with its ``Required`` wrapper."""
    return typing.get_type_hints(shape, include_extras=True)


def origin_of(hint: Hint) -> Any:
    """Return what a hint is made from: ``list`` for ``list[int]``."""
    return typing.get_origin(hint)


def unwrap(hint: Hint) -> tuple[Hint, bool]:
    """Take ``Required`` or ``Annotated`` off a hint; tell whether it was required."""
    required = False
    while origin_of(hint) in (
        typing.Required,
        typing.NotRequired,
        typing.Annotated,
    ):
        required = required or origin_of(hint) is typing.Required
        hint = typing.get_args(hint)[0]
    return hint, required


def is_shape(hint: Hint) -> bool:
    """Tell whether a hint is one of the package's TypedDicts."""
    return typing.is_typeddict(hint) or hasattr(hint, "__required_keys__")


def check(value: object, hint: Hint, path: str) -> None:
    """Raise the API's refusal if the value does not fit the hint."""
    hint, _ = unwrap(hint)
    origin = origin_of(hint)
    if hint is object or hint is Any:
        return
    if origin in (typing.Union, types.UnionType):
        _check_union(value, typing.get_args(hint), path)
    elif origin is typing.Literal:
        _check_literal(value, typing.get_args(hint), path)
    elif is_shape(hint):
        check_shape(value, hint, path)
    elif origin is dict or hint is dict:
        _check_map(value, typing.get_args(hint), path)
    elif is_array(hint):
        _check_array(value, typing.get_args(hint), path)
    else:
        _check_plain(value, hint, path)


def is_array(hint: Hint) -> bool:
    """Tell whether a hint stands for a JSON array."""
    origin = origin_of(hint)
    return origin in (list, Iterable, Sequence, SequenceNotStr)


def check_shape(
    value: object, shape: type, path: str, optional: frozenset[str] = frozenset()
) -> None:
    """Hold an object against a TypedDict: no unknown field, none missing.

    ``optional`` names fields that the types require although the API does not.
    """
    if not isinstance(value, dict):
        raise wrong_type(path, "an object", word_of(value))
    fields = fields_of(shape)
    for name, hint in fields.items():
        if name not in value and unwrap(hint)[1] and name not in optional:
            raise missing_parameter(join(path, name))
    for name, inner in value.items():
        if name not in fields:
            raise unknown_parameter(join(path, name))
        check(inner, fields[name], join(path, name))


def join(path: str, name: str) -> str:
    """Append a field to a path such as ``input[0]``."""
    return f"{path}.{name}" if path else name


def _check_plain(value: object, hint: Hint, path: str) -> None:
    if hint is type(None):
        fits = value is None
    elif isinstance(value, bool):
        fits = hint is bool
    else:
        fits = isinstance(value, (int, float) if hint is float else hint)
    if not fits:
        raise wrong_type(path, WORDS.get(hint, "something else"), word_of(value))


def _check_literal(value: object, allowed: tuple[str, ...], path: str) -> None:
    if value in allowed:
        return
    if not isinstance(value, str):
        expected = f"one of {' or '.join(repr(one) for one in allowed)}"
        raise wrong_type(path, expected, word_of(value))
    raise wrong_value(path, value, allowed)


def _check_map(value: object, args: tuple[Hint, ...], path: str) -> None:
    if not isinstance(value, dict):
        raise wrong_type(path, "an object", word_of(value))
    for name, inner in value.items():
        check(inner, args[1] if args else object, join(path, name))


def _check_array(value: object, args: tuple[Hint, ...], path: str) -> None:
    if not isinstance(value, list):
        raise wrong_type(path, "an array", word_of(value))
    for index, inner in enumerate(value):
        check(inner, args[0] if args else object, f"{path}[{index}]")


def _check_union(value: object, options: tuple[Hint, ...], path: str) -> None:
    if value is None and type(None) in options:
        return
    if isinstance(value, dict):
        shapes = [option for option in options if is_shape(option)]
        if shapes:
            _check_variant(value, shapes, path)
            return
    refusals = _refusals(options, lambda option: check(value, option, path))
    if refusals:
        raise _most_telling(refusals, options, value, path)


def _refusals(options: Sequence[Hint], checked: Callable[[Any], None]) -> list[Refusal]:
    """Return what is wrong under each of the options; nothing where one fits."""
    refusals: list[Refusal] = []
    for option in options:
        try:
            checked(option)
        except Refusal as refusal:
            refusals.append(refusal)
        else:
            return []
    return refusals


def _most_telling(
    refusals: list[Refusal], options: tuple[Hint, ...], value: object, path: str
) -> Refusal:
    for refusal in refusals:
        if refusal.code != "invalid_type" or refusal.param != path:
            return refusal
    words = [_expected(option) for option in options if option is not type(None)]
    expected = words[0] if len(words) == 1 else f"one of {' or '.join(words)}"
    return wrong_type(path, expected, word_of(value))


def _expected(option: Hint) -> str:
    if is_array(option):
        return "an array"
    if origin_of(option) is typing.Literal:
        return "a string"
    return WORDS.get(option, "an object")


def _check_variant(value: Mapping[str, Any], shapes: list[type], path: str) -> None:
    named = value.get("type")
    candidates = [shape for shape in shapes if named in tags_of(shape)]
    if not candidates:
        _refuse_tag(value, shapes, path)
        candidates = [shape for shape in shapes if not tags_of(shape)] or shapes
    refusals = _refusals(candidates, lambda shape: check_shape(value, shape, path))
    if refusals:
        raise refusals[0]


def _refuse_tag(value: Mapping[str, Any], shapes: list[type], path: str) -> None:
    if any(not tags_of(shape) for shape in shapes):
        return
    if "type" not in value:
        raise missing_parameter(join(path, "type"))
    tags = [tag for shape in shapes for tag in tags_of(shape)]
    _check_literal(value["type"], tuple(dict.fromkeys(tags)), join(path, "type"))


@cache
def tags_of(shape: type) -> tuple[str, ...]:
    """Return the literal values of a shape's ``type`` field."""
    hint, _ = unwrap(fields_of(shape).get("type", str))
    options = (hint, *typing.get_args(hint))
    literals = [one for one in options if origin_of(one) is typing.Literal]
    return typing.get_args(literals[0]) if literals else ()
