"""The caller's parameters, in the names and forms of the API.

Callers use the names of Chat Completions, of Open WebUI's controls, or of the API; null
means not given. An invalid value is refused with a sentence before anything is sent.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.json_input import parse_json_object
from openai_responses.models.resolve import REASONING_EFFORTS

CALLERS_KEYS = (
    *("max_output_tokens", "temperature", "top_p", "top_logprobs"),
    *("tool_choice", "parallel_tool_calls", "truncation"),
)
"""What shapes the caller's own answer and nothing else; the length has a limit."""

ADMINISTRATORS_KEYS: Mapping[str, str] = {
    "access_programs": "a right of the organization",
    "context_management": "billed",
    "image": "changes the cost",
    "max_tool_calls": "limits the cost",
    "metadata": "stored at OpenAI",
    "moderation": "a rule",
    "prompt_cache_key": "shared with others",
    "prompt_cache_options": "billed",
    "prompt_cache_retention": "stored at OpenAI",
    "safety_identifier": "names who is to blame",
    "service_tier": "changes the price",
}
"""What a caller does not set, and why (docs/parameters.md)."""

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
_WORD_FIELDS = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity"},
}
"""Fields that Chat Completions has beside the API's objects, and their names there."""

_BOOL_LIKE = ("enable_stream", "parallel_tool_calls")
_ANSWER_FORMATS = ("text", "json_object", "json_schema")


def read_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the caller's keys with the API's names; raises InvalidRequest.

    `reasoning` and `text` hold what Chat Completions has beside them. Keys that the API
    does not have stay. `stop` implies `truncation: "disabled"` (docs/parameters.md).
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
    given["reasoning"] = _object_parameter(given, "reasoning")
    text = _object_parameter(given, "text")
    form = _format(given.pop("response_format", None), given.pop("json_schema", None))
    given["text"] = {**form, **text}
    return given


def read_bool(name: str, value: object) -> bool:
    """Return the value of true, false, 1 or 0, also as text; raises InvalidRequest."""
    if isinstance(value, bool | int | str):
        if value in (True, "true", "1"):
            return True
        if value in (False, "false", "0"):
            return False
    raise parameter_error(name, "it must be true or false")


def _object_parameter(given: dict[str, Any], key: str) -> dict[str, Any]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise parameter_error(key, "it must be a JSON object")
    own = {name: inner for name, inner in value.items() if inner is not None}
    for field, name in _WORD_FIELDS[key].items():
        beside = given.pop(name, None)
        if word := own.pop(field, None) or beside:
            own[field] = _word(name, word)
    return own


def _word(name: str, value: object) -> str:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise parameter_error(name, f"it must be one of {words}")
    return word


def _format(asked: object, beside: object) -> dict[str, Any]:
    """Return the `format` of a text object, if one is asked for."""
    form: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {"type": asked}
    kind = form.get("type")
    if asked is None or kind == "text":
        return {}
    if kind not in _ANSWER_FORMATS:
        words = ", ".join(_ANSWER_FORMATS)
        raise parameter_error("response_format", f"it is none of {words}")
    if kind == "json_object":
        return {"format": {"type": kind}}
    nested = form.get("json_schema", beside)
    flat = form if nested is None and "schema" in form else nested
    return {"format": {"type": kind, **_schema_fields(flat)}}


def _schema_fields(value: object) -> dict[str, Any]:
    read = parse_json_object(value) if isinstance(value, str) else value
    if not isinstance(read, Mapping) or not isinstance(read.get("schema"), Mapping):
        raise InvalidRequest(
            "The answer's format cannot be sent: json_schema has to be a JSON object "
            'with the schema under "schema".'
        )
    fields = {"name": read.get("name") or "response", "schema": read["schema"]}
    if read.get("description"):
        fields["description"] = read["description"]
    if read.get("strict") is not None:
        fields["strict"] = read_bool("json_schema.strict", read["strict"])
    return fields


def parameter_error(name: str, why: str) -> InvalidRequest:
    """Return the error of a parameter that cannot be sent."""
    return InvalidRequest(f"The setting {name} cannot be sent: {why}.")
