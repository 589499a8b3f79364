"""The caller's parameters, in the names and forms of the API.

Callers use the names of Chat Completions or of the API, or `enable_stream`; null means
not given. A value that no API takes is left out, and the log says it: a chat must
not fail because of one.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from openai_responses.digest import hex_digest
from openai_responses.errors import InvalidParameter
from openai_responses.json_input import (
    JsonObject,
    JsonTooLarge,
    as_mapping,
    is_too_deep,
    json_size,
    parse_json_object,
)
from openai_responses.models.resolve import REASONING_EFFORTS

ANSWER_KEYS = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
)
"""What shapes the caller's own answer and nothing else."""

ACCOUNT_KEYS: Mapping[str, str] = {
    "access_programs": "a right of the organization",
    "cache_control": "billed",
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
"""What concerns whoever pays for the account, and why (docs/parameters.md)."""

_KeyTree = Mapping[str, Any]
"""The keys of an object, each with those of its value; none where any value passes."""

_ANY: _KeyTree = {}
_MODE: _KeyTree = {"mode": _ANY}
_CHOSEN_TOOL: _KeyTree = {"type": _ANY, "name": _ANY, "server_label": _ANY}
_KNOWN_KEYS: Mapping[str, _KeyTree] = {
    "access_programs": {"cyber": _ANY},
    "cache_control": {"type": _ANY, "ttl": _ANY},
    "context_management": {"type": _ANY, "compact_threshold": _ANY},
    "image": {"context_compression": _ANY},
    "moderation": {"model": _ANY, "policy": {"input": _MODE, "output": _MODE}},
    "prompt_cache_options": {
        "comparison_response_id": _ANY,
        "mode": _ANY,
        "prewarm": _ANY,
        "ttl": _ANY,
    },
    "reasoning": {"context": _ANY, "effort": _ANY, "mode": _ANY, "summary": _ANY},
    "text": {"format": _ANY, "verbosity": _ANY},
    "tool_choice": {**_CHOSEN_TOOL, "mode": _ANY, "tools": _CHOSEN_TOOL},
}
"""The keys that the API has inside of its parameters (types of openai-python 3.54.0).

No other key leaves: the API quotes an unknown one in its refusal, so whoever writes a
key would write a part of what is read to repair the request.
"""


def with_known_keys(name: str, value: object) -> Any:
    """Return the value of a parameter without keys that the API does not have."""
    return _only_keys(value, _KNOWN_KEYS.get(name, _ANY))


def _only_keys(value: object, known: _KeyTree) -> Any:
    """Return a value without unknown keys at any depth; each row of a list alike."""
    if not known:
        return value
    if isinstance(value, list):
        return [_only_keys(row, known) for row in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _only_keys(value[key], known[key]) for key in value if key in known}


_OBJECTS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields that Chat Completions has outside of the API's objects, and their names there."""

_MAX_FORMAT = 300_000
"""As `json_size` counts, like the schema of a tool. A user can store a format with a
model or a chat, and each short question then sends it."""
_ANSWER_FORMATS = ("text", "json_object", "json_schema")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_FORMAT_NAME = 64
"""Characters of a format's name; the API refuses longer ones, and other signs."""


def read_parameters(body: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys with the API's names, and what is wrong with others.

    `reasoning` and `text` hold what Chat Completions has next to them. Keys that the
    API does not have stay. `stop` implies `truncation: "disabled"`
    (docs/parameters.md).

    Raises InvalidParameter for a format of the answer that cannot be sent: whoever asks
    for JSON would read free text in its place.
    """
    given = given_values(body)
    errors: list[str] = []
    for name in ("max_tokens", "max_completion_tokens"):
        if name in given:
            given.setdefault("max_output_tokens", given.pop(name))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    if given.get("response_format"):
        form = given["response_format"]
        schema = given.pop("json_schema", None)  # it may be next to its format
        if isinstance(form, str):
            form = {"type": form}
        if isinstance(form, Mapping) and form.get("json_schema") is None:
            form = {**form, "json_schema": schema}
        given["response_format"] = form
    _read_values(given, "", errors)
    own_format = as_mapping(given.get("text")).get("format")
    format_name = "text.format" if own_format else "response_format"
    for key, fields in _OBJECTS.items():
        own = given_values(given.get(key, {}))
        for field, name in fields.items():
            flat = given.pop(name, None)
            value = own.pop(field, None) or flat
            if value:
                own[field] = value
        _read_values(own, key, errors)
        given[key] = own
    if "format" in given["text"]:
        given["text"]["format"] = _read_format(format_name, given["text"]["format"])
    return given, errors


def given_values(values: JsonObject) -> dict[str, Any]:
    """Return what is not null."""
    return {key: value for key, value in values.items() if value is not None}


def _read_values(values: dict[str, Any], parent: str, errors: list[str]) -> None:
    """Replace values by what they mean; those without a meaning are left out.

    `parent` is the object that holds them, like `text`; empty for the request itself.
    """
    for name, read in _VALUE_READERS.items():
        own_parent, _, key = name.rpartition(".")
        if own_parent != parent:
            continue
        value = values.pop(key, None)
        if value is None:
            continue
        try:
            values[key] = read(name, value)
        except InvalidParameter as error:
            errors.append(str(error))


def read_bool(name: str, value: object) -> bool:
    """Return the value of true, false, 1 or 0, also as text; raises InvalidParameter."""
    if isinstance(value, bool | int | str):
        if value in (True, "true", "1"):
            return True
        if value in (False, "false", "0"):
            return False
    raise InvalidParameter(name, "it must be true or false")


def _read_object(name: str, value: object) -> JsonObject:
    if not isinstance(value, Mapping):
        raise InvalidParameter(name, "it must be a JSON object")
    check_depth(name, value)
    return value


def check_depth(name: str, value: object) -> None:
    """Raise InvalidParameter for more levels than recursive code takes."""
    if is_too_deep(value):
        raise InvalidParameter(name, "it has too many levels")


def _read_word(name: str, value: object) -> str:
    """Return a word of the API, written in any case; raises InvalidParameter."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise InvalidParameter(name, f"it must be one of {words}")
    return word


def _read_format(name: str, value: object) -> dict[str, Any]:
    """Return the API's flat `text.format`; Chat Completions nests the schema."""
    form = _read_object(name, value)
    try:
        json_size(form, _MAX_FORMAT)
    except JsonTooLarge:
        raise InvalidParameter(name, "it is too large") from None
    kind = form.get("type")
    if kind not in _ANSWER_FORMATS:
        words = ", ".join(_ANSWER_FORMATS)
        raise InvalidParameter(name, f"its type is none of {words}")
    if kind != "json_schema":
        return {"type": kind}
    described: Any = form.get("json_schema")
    if described is None and "schema" in form:  # the API's own, flat form
        described = form
    if isinstance(described, str):
        described = parse_json_object(described)
    own = as_mapping(described)
    if not isinstance(own.get("schema"), Mapping):
        why = 'json_schema has to be a JSON object with the schema under "schema"'
        raise InvalidParameter(name, why)
    own_name = str(own.get("name") or "response")
    format_name = _NOT_IN_A_NAME.sub("_", own_name)[:_MAX_FORMAT_NAME]
    flat: dict[str, Any] = {"type": kind, "name": format_name, "schema": own["schema"]}
    if own.get("description"):
        flat["description"] = own["description"]
    # It is always stated: the Responses API makes a schema that does not say it strict,
    # and each of its properties required, while Chat Completions does not (recorded: 8
    # of 8).
    strict = own.get("strict")
    flat["strict"] = strict is not None and read_bool("json_schema.strict", strict)
    return flat


_WORDS: Mapping[str, tuple[str, ...]] = {
    "reasoning.effort": REASONING_EFFORTS,
    "reasoning.summary": ("auto", "concise", "detailed"),
    "text.verbosity": ("low", "medium", "high"),
}
_VALUE_READERS: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("enable_stream", "parallel_tool_calls"), read_bool),
    **dict.fromkeys(_OBJECTS, _read_object),
    **dict.fromkeys(_WORDS, _read_word),
}
"""What reads a value that more than its type is known of."""


def hash_ids(kind: str, user_id: str, chat_id: str) -> dict[str, str | None]:
    """Return the parameters that name the user and, by the kind of key, the cache."""
    cache_key = None
    if kind == "chat":
        cache_key = _hash_id("chat", chat_id)
    if cache_key is None and kind != "off":  # a chat without an id has its user's key
        cache_key = _hash_id("cache", user_id)
    return {
        "safety_identifier": _hash_id("user", user_id),
        "prompt_cache_key": cache_key,
    }


def _hash_id(kind: str, value: str) -> str | None:
    """Return a stable name for an id, which is random and cannot be guessed.

    A cache key has at most 64 characters.
    """
    if not value:
        return None
    return hex_digest(f"openai_responses:{kind}:{value}")[:48]
