"""The caller's parameters, translated to the names and forms of the API.

Callers use the names of Chat Completions, of Open WebUI's controls, or of the API; null
means not given. An invalid value is refused with a sentence before anything is sent.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.json_input import parse_json_object
from openai_responses.models.resolve import REASONING_EFFORTS

_RENAMED: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""The API's names, by those of Chat Completions."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "reasoning_effort": REASONING_EFFORTS,
    "reasoning_summary": ("auto", "concise", "detailed"),
    "verbosity": ("low", "medium", "high"),
}
_BOOL_LIKE = ("enable_stream", "parallel_tool_calls")
_ANSWER_FORMATS = ("text", "json_object", "json_schema")
_UNNAMED_SCHEMA = "response"
_NO_SCHEMA = (
    "The answer's format cannot be sent: json_schema has to be a JSON object with the "
    'schema under "schema".'
)


def read_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the caller's keys with the API's names; raises InvalidRequest.

    `reasoning` and `text` are objects that hold what Chat Completions has beside them.
    Keys that the API does not have are still in the result. The API has no `stop`: it
    gets `truncation: "disabled"` (docs/parameters.md).
    """
    given = {key: value for key, value in body.items() if value is not None}
    for theirs, ours in _RENAMED.items():
        if theirs in given:
            given.setdefault(ours, given.pop(theirs))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    for name in _BOOL_LIKE:
        if name in given:
            given[name] = read_bool(name, given[name])
    given["reasoning"] = _reasoning_parameter(given)
    given["text"] = _text_parameter(given)
    return given


def read_bool(name: str, value: object) -> bool:
    """Return a truth value given as true, false, 1 or 0, also as text."""
    if isinstance(value, bool | int | str):
        if value in (True, "true", "1"):
            return True
        if value in (False, "false", "0"):
            return False
    raise parameter_error(name, "it must be true or false")


def _reasoning_parameter(given: dict[str, Any]) -> dict[str, Any]:
    own = _own_object(given, "reasoning")
    for key in ("effort", "summary"):
        beside = given.pop(f"reasoning_{key}", None)
        if value := own.pop(key, None) or beside:
            own[key] = _word(f"reasoning_{key}", value)
    return own


def _text_parameter(given: dict[str, Any]) -> dict[str, Any]:
    own = _own_object(given, "text")
    beside = given.pop("verbosity", None)
    if value := own.pop("verbosity", None) or beside:
        own["verbosity"] = _word("verbosity", value)
    form = _format(given.pop("response_format", None), given.pop("json_schema", None))
    return {**({"format": form} if form else {}), **own}


def _own_object(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise parameter_error(key, "it must be a JSON object")
    return {name: inner for name, inner in value.items() if inner is not None}


def _word(name: str, value: object) -> str:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise parameter_error(name, f"it must be one of {words}")
    return word


def _format(asked: object, beside: object) -> dict[str, Any] | None:
    form: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {"type": asked}
    kind = form.get("type")
    if asked is None or kind == "text":
        return None
    if kind not in _ANSWER_FORMATS:
        words = ", ".join(_ANSWER_FORMATS)
        raise parameter_error("response_format", f"it is none of {words}")
    if kind == "json_object":
        return {"type": kind}
    nested = form.get("json_schema", beside)
    flat = form if nested is None and "schema" in form else nested
    return {"type": kind, **_schema_fields(flat)}


def _schema_fields(value: object) -> dict[str, Any]:
    read = parse_json_object(value) if isinstance(value, str) else value
    if not isinstance(read, Mapping) or not isinstance(read.get("schema"), Mapping):
        raise InvalidRequest(_NO_SCHEMA)
    fields = {"name": read.get("name") or _UNNAMED_SCHEMA, "schema": read["schema"]}
    if read.get("description"):
        fields["description"] = read["description"]
    if read.get("strict") is not None:
        fields["strict"] = read_bool("json_schema.strict", read["strict"])
    return fields


def parameter_error(name: str, why: str) -> InvalidRequest:
    """Return the error of a parameter that cannot be sent."""
    return InvalidRequest(f"The setting {name} cannot be sent: {why}.")
