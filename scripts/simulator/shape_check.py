"""Whether a request is made of the fields that the API has."""

import typing
from collections.abc import Mapping
from typing import Any

from openai.types.responses import (
    EasyInputMessageParam,
    ResponseInputItemParam,
    ResponseOutputMessageParam,
    ResponseOutputRefusalParam,
    ResponseOutputTextParam,
    response_create_params,
    response_input_item_param,
)

from simulator.refusals import (
    Refusal,
    missing_parameter,
    unknown_parameter,
    wrong_type,
    wrong_value,
)
from simulator.typed import (
    check,
    check_shape,
    fields_of,
    join,
    tags_of,
    word_of,
)

Body = Mapping[str, Any]
ROLES = ("assistant", "system", "developer", "user")
USER_PARTS = ("input_text", "input_image", "input_file")

# The types ask for an id here; the API does not (responses-api.md §0.4, §2.1).
UNASKED = {
    "reasoning": frozenset({"id"}),
    "function_call": frozenset({"id", "status"}),
}
# An output that names no call cannot be paired, whatever the types allow.
ASKED = {"function_call_output": "call_id"}


def check_body(body: Body) -> None:
    """Raise the refusal for the first field that is unknown or mistyped."""
    known = fields_of(response_create_params.ResponseCreateParamsBase)
    for name in body:
        if name not in known and name != "stream":
            raise unknown_parameter(name)
    if "model" not in body:
        raise missing_parameter("model")
    for name, value in body.items():
        if name == "stream":
            check(value, bool | None, name)
        elif name != "input":
            check(value, known[name], name)
    _check_input(body)


def _check_input(body: Body) -> None:
    given = body.get("input")
    if given in (None, [], "") and "prompt" not in body:
        raise Refusal(
            'One of "input" or "previous_response_id" or \'prompt\' or '
            "'conversation_id' must be provided.",
            code="missing_required_parameter",
            param="input",
        )
    if isinstance(given, list):
        for index, item in enumerate(given):
            check_item(item, f"input[{index}]")
    elif not isinstance(given, str):
        raise wrong_type("input", "one of an array or a string", word_of(given))


def check_item(item: object, path: str) -> None:
    """Raise the refusal for the first field of an item that does not fit."""
    if not isinstance(item, dict):
        raise wrong_type(path, "an object", word_of(item))
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        _check_message(item, path)
        return
    if kind is None and "id" in item:
        kind = "item_reference"
    if kind is None:
        raise missing_parameter(join(path, "type"))
    shape = _shape_of(kind, path)
    if kind == "web_search_call":
        _refuse_sources(item, path)
    asked = ASKED.get(kind)
    if asked and item.get(asked) is None:
        raise missing_parameter(join(path, asked))
    check_shape(item, shape, path, UNASKED.get(kind, frozenset()))


def _shape_of(kind: object, path: str) -> type:
    shapes = typing.get_args(ResponseInputItemParam)
    for shape in shapes:
        if kind in tags_of(shape):
            found: type = shape
            return found
    tags = dict.fromkeys(tag for shape in shapes for tag in tags_of(shape))
    if not isinstance(kind, str):
        raise wrong_type(join(path, "type"), "a string", word_of(kind))
    raise wrong_value(join(path, "type"), kind, tuple(tags))


def _refuse_sources(item: Body, path: str) -> None:
    action = item.get("action")
    if isinstance(action, dict) and "sources" in action:
        raise unknown_parameter(f"{path}.action.sources")


def _check_message(item: Body, path: str) -> None:
    role = item.get("role")
    if role is None:
        raise missing_parameter(join(path, "role"))
    if role not in ROLES:
        raise wrong_value(join(path, "role"), role, ROLES)
    content = item.get("content")
    if not isinstance(content, list):
        check_shape(item, EasyInputMessageParam, path)
    elif role == "assistant":
        _check_assistant(item, path)
    else:
        _check_user_parts(content, f"{path}.content")
        easy = "status" not in item
        message = response_input_item_param.Message
        check_shape(item, EasyInputMessageParam if easy else message, path)


def _check_assistant(item: Body, path: str) -> None:
    parts = {
        "output_text": ResponseOutputTextParam,
        "refusal": ResponseOutputRefusalParam,
    }
    for index, part in enumerate(item["content"]):
        place = f"{path}.content[{index}]"
        kind = _tag(part, place)
        if kind not in parts:
            raise wrong_value(place, kind, tuple(parts))
        check_shape(part, parts[kind], place, frozenset({"annotations"}))
    bare = {**item, "content": []}
    unasked = frozenset({"id", "status", "type"})
    check_shape(bare, ResponseOutputMessageParam, path, unasked)


def _check_user_parts(content: list[Any], path: str) -> None:
    for index, part in enumerate(content):
        place = f"{path}[{index}]"
        kind = _tag(part, place)
        if kind not in USER_PARTS:
            raise wrong_value(place, kind, USER_PARTS)


def _tag(part: object, path: str) -> Any:
    if not isinstance(part, dict):
        raise wrong_type(path, "an object", word_of(part))
    if "type" not in part:
        raise missing_parameter(join(path, "type"))
    if not isinstance(part["type"], str):
        raise wrong_type(join(path, "type"), "a string", word_of(part["type"]))
    return part["type"]
