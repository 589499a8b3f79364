"""Checks a request body against the types of the openai package, field by field.

Source: types of openai 3.54.0, less what recorded requests leave out or add although
the types do not allow it (`OPTIONAL_FIELDS`, `UNDOCUMENTED_PARAMETERS`). The words are
those of reports (jcode 1028, litellm 13420, new-api 1305, ai-dial-adapter-openai 511),
for other values assumed.
"""

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import openai
from openai._types import SequenceNotStr
from openai.types.responses import (
    EasyInputMessageParam,
    ResponseInputItemParam,
    ResponseOutputMessageParam,
    ResponseOutputRefusalParam,
    ResponseOutputTextParam,
    response_create_params,
    response_input_item_param,
)
from openai.types.responses.response_reasoning_item_param import Content

from simulator.fields import without_fields
from simulator.refusals import Refusal, refuse, refuse_value

HAS_THESE_TYPES = tuple(map(int, openai.__version__.split(".")[:2])) >= (3, 54)
"""The demo runs with the older package of Open WebUI, to which newer fields are unknown."""
TypeHint = Any
TYPE_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a decimal",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def _refuse_type(path: str, expected: str, value: object) -> Refusal:
    got = TYPE_WORDS.get(type(value), "something else")
    return refuse("type", path=path, expected=expected, got=got)


@cache
def read_fields(shape: type) -> Mapping[str, TypeHint]:
    """Return the fields of a TypedDict, each with its ``Required`` wrapper."""
    return typing.get_type_hints(shape, include_extras=True)


@cache
def read_origin(hint: TypeHint) -> Any:
    """Return what a hint is made from: ``list`` for ``list[int]``."""
    return typing.get_origin(hint)


@cache
def unwrap_hint(hint: TypeHint) -> tuple[TypeHint, bool]:
    """Take ``Required`` or ``Annotated`` off a hint; tell whether it was required."""
    required = False
    while read_origin(hint) in (
        typing.Required,
        typing.NotRequired,
        typing.Annotated,
    ):
        required = required or read_origin(hint) is typing.Required
        hint = typing.get_args(hint)[0]
    return hint, required


@cache
def is_shape(hint: TypeHint) -> bool:
    return typing.is_typeddict(hint) or hasattr(hint, "__required_keys__")


def check_value(value: object, hint: TypeHint, path: str) -> None:
    """Raise the API's refusal if the value does not fit the hint."""
    hint, _ = unwrap_hint(hint)
    origin = read_origin(hint)
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


def is_array(hint: TypeHint) -> bool:
    origin = read_origin(hint)
    return origin in (list, Iterable, Sequence, SequenceNotStr)


OPTIONAL_FIELDS: Mapping[str, frozenset[str]] = {
    # Strict if the schema allows it: see `simulator.strictness`.
    "FunctionToolParam": frozenset({"parameters", "strict"}),
    "ResponseInputImageParam": frozenset({"detail"}),
    "ResponseCodeInterpreterToolCallParam": frozenset({"outputs"}),
    # The server looks a drawn picture up by its id.
    "ImageGenerationCall": frozenset({"result", "status"}),
    "ResponseReasoningItemParam": frozenset({"id"}),
    "ResponseFunctionToolCallParam": frozenset({"id", "status"}),
}
"""Fields by type that `openai` requires although the API does not; all recorded."""
EXTRA_FIELDS: Mapping[str, Mapping[str, TypeHint]] = {
    # The API's own calls have them, and they may come back: read, not recorded.
    "ResponseCustomToolCallParam": {"status": str | None},
    "ResponseFunctionToolCallParam": {"status": str | None},
    # Codex sends its reasoning back with null (recorded).
    "ResponseReasoningItemParam": {"content": Iterable[Content] | None},
    # Guide "Web search" and changelog of 2026-05-11; responses echo the budget
    # (recorded, of gpt-4.1 to gpt-5.6).
    "WebSearchToolParam": {
        "return_token_budget": typing.Literal["default", "unlimited"]
    },
    "Filters": {"blocked_domains": list[str] | None},
}
"""Fields by type that `openai` does not know, or of which it knows fewer values."""
OPEN_TYPES = frozenset({"FunctionToolParam"})
"""Types whose unknown fields are ignored: `function` beside a name, as Chat Completions
has it (recorded, 25 requests)."""


def check_shape(
    value: object, shape: type, path: str, optional: frozenset[str] = frozenset()
) -> None:
    """Hold an object against a TypedDict: no unknown field, none missing.

    ``optional`` names further fields that are not required at this place.
    """
    if not isinstance(value, dict):
        raise _refuse_type(path, "an object", value)
    fields = {**read_fields(shape), **EXTRA_FIELDS.get(shape.__name__, {})}
    optional |= OPTIONAL_FIELDS.get(shape.__name__, frozenset())
    for name, hint in fields.items():
        _, is_required = unwrap_hint(hint)
        if name not in value and is_required and name not in optional:
            raise refuse("missing_parameter", path=join_path(path, name))
    for name, inner in value.items():
        if name in fields:
            check_value(inner, fields[name], join_path(path, name))
        elif shape.__name__ not in OPEN_TYPES and HAS_THESE_TYPES:
            raise refuse("unknown_parameter", path=join_path(path, name))


def join_path(path: str, name: str) -> str:
    """Append a field to a path such as ``input[0]``."""
    return f"{path}.{name}" if path else name


def _check_plain(value: object, hint: TypeHint, path: str) -> None:
    if hint is type(None):
        fits = value is None
    elif isinstance(value, bool):
        fits = hint is bool  # in Python a bool is an int, too
    elif hint is float:
        fits = isinstance(value, int | float)
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise _refuse_type(path, TYPE_WORDS.get(hint, "something else"), value)


def _check_literal(value: object, allowed: tuple[str, ...], path: str) -> None:
    if value in allowed:
        return
    if not isinstance(value, str):
        expected = f"one of {' or '.join(repr(literal) for literal in allowed)}"
        raise _refuse_type(path, expected, value)
    raise refuse_value(path, value, allowed)


def _check_map(value: object, args: tuple[TypeHint, ...], path: str) -> None:
    if not isinstance(value, dict):
        raise _refuse_type(path, "an object", value)
    for name, inner in value.items():
        check_value(inner, args[1] if args else object, join_path(path, name))


def _check_array(value: object, args: tuple[TypeHint, ...], path: str) -> None:
    if not isinstance(value, list):
        raise _refuse_type(path, "an array", value)
    for index, inner in enumerate(value):
        check_value(inner, args[0] if args else object, f"{path}[{index}]")


def _check_union(value: object, options: tuple[TypeHint, ...], path: str) -> None:
    if value is None and type(None) in options:
        return
    if isinstance(value, dict):
        shapes = [option for option in options if is_shape(option)]
        if shapes:
            _check_variant(value, shapes, path)
            return
    refusals = _collect_refusals(value, options, path)
    for refusal in refusals:
        if refusal.code != "invalid_type" or refusal.param != path:
            raise refusal
    if not refusals:
        return
    words = []
    for option in options:
        if is_array(option):
            words.append("an array")
        elif read_origin(option) is typing.Literal:
            words.append("a string")
        elif option is not type(None):
            words.append(TYPE_WORDS.get(option, "an object"))
    expected = words[0] if len(words) == 1 else f"one of {' or '.join(words)}"
    raise _refuse_type(path, expected, value)


def _collect_refusals(
    value: object, options: Sequence[TypeHint], path: str
) -> list[Refusal]:
    """Return the problems of each option; nothing if one matches."""
    refusals: list[Refusal] = []
    for option in options:
        try:
            check_value(value, option, path)
        except Refusal as refusal:
            refusals.append(refusal)
        else:
            return []
    return refusals


def _check_variant(value: Mapping[str, Any], shapes: list[type], path: str) -> None:
    named = value.get("type")
    candidates = [shape for shape in shapes if named in read_tags(shape)]
    if not candidates:
        candidates = [shape for shape in shapes if not read_tags(shape)]
    if not candidates:
        tag_path = join_path(path, "type")
        if "type" not in value:
            raise refuse("missing_parameter", path=tag_path)
        tags = dict.fromkeys(tag for shape in shapes for tag in read_tags(shape))
        _check_literal(value["type"], tuple(tags), tag_path)
    refusals = _collect_refusals(value, candidates, path)
    if refusals:
        raise refusals[0]


@cache
def read_tags(shape: type) -> tuple[str, ...]:
    """Return the literal values of a shape's ``type`` field."""
    hint, _ = unwrap_hint(read_fields(shape).get("type", str))
    options = (hint, *typing.get_args(hint))
    literals = [option for option in options if read_origin(option) is typing.Literal]
    return typing.get_args(literals[0]) if literals else ()


Body = Mapping[str, Any]
ROLES = ("assistant", "system", "developer", "user")
ROLES_WITH_ID = ("developer", "user")
"""The messages of a client that may have an id although the types say otherwise."""
USER_PARTS = ("input_text", "input_image", "input_file")
ASSISTANT_PARTS: Mapping[str, type] = {
    "output_text": ResponseOutputTextParam,
    "refusal": ResponseOutputRefusalParam,
}

UNDOCUMENTED_PARAMETERS = {
    "stream": bool | None,
    "client_metadata": dict[str, str] | None,
}
"""Parameters that the types of a plain request lack; the second is recorded."""
NULLABLE_PARAMETERS = ("tool_choice",)
"""Parameters that may be null although the types say otherwise; recorded."""
# An output that names no call cannot be paired, whatever the types allow.
REQUIRED_FIELDS = {"function_call_output": "call_id"}


def check_body(body: Body) -> None:
    """Raise the refusal for the first field that is unknown or mistyped."""
    known = read_fields(response_create_params.ResponseCreateParamsBase)
    for name in body:
        is_known = name in known or name in UNDOCUMENTED_PARAMETERS
        if not is_known and HAS_THESE_TYPES:
            raise refuse("unknown_parameter", path=name)
    # A stored prompt brings its own model; recorded.
    if "model" not in body and "prompt" not in body:
        raise refuse("missing_parameter", path="model")
    hints = {**known, **UNDOCUMENTED_PARAMETERS}
    for name, value in body.items():
        is_null = value is None and name in NULLABLE_PARAMETERS
        if name != "input" and not is_null:
            check_value(value, hints[name], name)
    body_input = body.get("input")
    if body_input is None and "prompt" in body:
        return
    if body_input in (None, [], "") and "prompt" not in body:
        raise refuse("no_input")
    if isinstance(body_input, list):
        for index, item in enumerate(body_input):
            check_item(item, f"input[{index}]")
    elif not isinstance(body_input, str):
        raise _refuse_type("input", "one of an array or a string", body_input)


def check_item(item: object, path: str) -> None:
    """Raise the refusal for the first invalid field of an item."""
    if not isinstance(item, dict):
        raise _refuse_type(path, "an object", item)
    default_kind = "message" if "role" in item else None
    kind = item.get("type", default_kind)
    if kind == "message":
        _check_message(item, path)
        return
    if kind is None and "id" in item:
        kind = "item_reference"
    if kind is None:
        raise refuse("missing_parameter", path=join_path(path, "type"))
    shape = _shape_of(kind, path)
    if kind == "web_search_call":
        item = _check_sources(item, path)
    required_field = REQUIRED_FIELDS.get(kind)
    if required_field and item.get(required_field) is None:
        raise refuse("missing_parameter", path=join_path(path, required_field))
    check_shape(item, shape, path)


def _shape_of(kind: object, path: str) -> type:
    shapes = typing.get_args(ResponseInputItemParam)
    for shape in shapes:
        if kind in read_tags(shape):
            fitting: type = shape
            return fitting
    if not isinstance(kind, str):
        raise _refuse_type(join_path(path, "type"), "a string", kind)
    raise refuse_value(join_path(path, "type"), kind, list_item_types())


def list_item_types() -> tuple[str, ...]:
    shapes = typing.get_args(ResponseInputItemParam)
    return tuple(dict.fromkeys(tag for shape in shapes for tag in read_tags(shape)))


def _check_sources(item: Body, path: str) -> Body:
    """Refuse the sources of a search; return the item without them if they are null.

    Source: null is recorded; of anything else pydantic-ai 2.68.0.
    """
    action = item.get("action")
    if not isinstance(action, dict) or "sources" not in action:
        return item
    if action["sources"] is not None:
        raise refuse("unknown_parameter", path=f"{path}.action.sources")
    return {**item, "action": without_fields(action, "sources")}


def _check_message(item: Body, path: str) -> None:
    role = item.get("role")
    if role is None:
        raise refuse("missing_parameter", path=join_path(path, "role"))
    if role not in ROLES:
        # The param is the message itself (reports: openai-python 2677).
        raise refuse_value(path, role, ROLES)
    if role in ROLES_WITH_ID and "id" in item:
        check_value(item["id"], str, join_path(path, "id"))
        item = without_fields(item, "id")
    content = item.get("content")
    if not isinstance(content, list):
        check_shape(item, EasyInputMessageParam, path)
    elif role == "assistant":
        for index, part in enumerate(content):
            part_path = f"{path}.content[{index}]"
            kind = _read_part_type(part, part_path, tuple(ASSISTANT_PARTS))
            shape = ASSISTANT_PARTS[kind]
            check_shape(part, shape, part_path, frozenset({"annotations"}))
        bare = {**item, "content": []}
        optional = frozenset({"id", "status", "type"})
        check_shape(bare, ResponseOutputMessageParam, path, optional)
    else:
        for index, part in enumerate(content):
            _read_part_type(part, f"{path}.content[{index}]", USER_PARTS)
        is_stored = "status" in item
        kinds = (EasyInputMessageParam, response_input_item_param.Message)
        check_shape(item, kinds[is_stored], path)


def _read_part_type(part: object, path: str, known: tuple[str, ...]) -> str:
    if not isinstance(part, dict):
        raise _refuse_type(path, "an object", part)
    if "type" not in part:
        raise refuse("missing_parameter", path=join_path(path, "type"))
    if not isinstance(part["type"], str):
        raise _refuse_type(join_path(path, "type"), "a string", part["type"])
    if part["type"] not in known:
        raise refuse_value(path, part["type"], known)
    return part["type"]
