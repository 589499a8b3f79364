"""What a caller may set; the rest is the administrator's (docs/parameters.md).

A body holds side by side what a client sent, what a user chose on the page, what
filters added and what is stored with the model.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from openai_responses.json_input import JsonObject, as_list, as_mapping, clamp_number
from openai_responses.requests.parameters import ACCOUNT_KEYS
from openai_responses.tool_kinds import CALLED_BY_NAME, TOOL_KINDS
from owui_manifold.call.agent import (
    CALLER_PARAMETERS,
    COSTLY_PARAMETERS,
    RULING_PARAMETERS,
    stated_parameters,
    with_stated_parameters,
)
from owui_manifold.call.context import Call
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.host.open_webui import administrator_params
from shells.caller import MAY_SET_KEY, PERMISSION_ADVICE
from shells.valve_texts import comma_list, unknown_words

LENGTH_KEYS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_TOOL_KEYS = ("tools", "extra_tools")

_CLOSED_FIELDS = list(
    dict.fromkeys(field for kind in TOOL_KINDS.values() for field in kind.closed_fields)
)
"""Fields that are closed in every tool: the API may get to know one in another kind."""

_KNOWN_WORDS = {
    "max_output_tokens",
    "reasoning.mode",
    "reasoning.context",
    *ACCOUNT_KEYS,
    *COSTLY_PARAMETERS,
    *RULING_PARAMETERS,
    *(name for kind in TOOL_KINDS.values() for name in kind.types),
    *(
        f"{name}.{field}"
        for kind in TOOL_KINDS.values()
        for name in kind.types
        for field in kind.closed_fields
    ),
}


async def drop_forbidden_keys(call: Call) -> Call:
    """Return the call without what its caller may not set; the log says it once."""
    opened = _opened_words(call)
    is_limited = "max_output_tokens" not in opened
    most = call.valves.MAX_OUTPUT_TOKENS if is_limited else 0
    # What is stored with the model has to be read from the database, and most bodies
    # need no permission.
    if _permitted_body(call.body, opened, most, {}) == call.body:
        return call
    stored = await administrator_params(call.model_id)
    body = _permitted_body(call.body, opened, most, stored)
    call.note_left_out(_left_out(call.body, body, opened), PERMISSION_ADVICE)
    return replace(call, body=body)


def _left_out(
    body: JsonObject, kept: JsonObject, opened: Collection[str]
) -> dict[str, str]:
    """Return what a body lost, with the reasons, by names."""
    left_out: dict[str, str] = {}
    for key, value in body.items():
        # NaN, which clients may send, is not equal to itself.
        if kept.get(key) is value or kept.get(key) == value:
            continue
        if key in ACCOUNT_KEYS:
            left_out[key] = ACCOUNT_KEYS[key]
        elif key in LENGTH_KEYS:
            left_out[key] = f"MAX_OUTPUT_TOKENS is {kept[key]}"
        elif key == "reasoning":
            for field in value:
                if field not in kept[key]:
                    left_out[f"reasoning.{field}"] = "the administrator's"
        else:  # tools; callers choose how many, so each is looked up
            kept_tools = set(map(id, kept[key]))
            for tool in value:
                if id(tool) not in kept_tools:
                    word = _missing_word(tool, opened)
                    reason = "names what belongs to somebody"
                    if word == str(as_mapping(tool).get("type")):
                        reason = "a billed tool of OpenAI"
                    left_out[f"{key} {word}"] = reason
    return left_out


async def apply_stated_parameters(call: Call) -> Call:
    """Return the call with what is stored with its agent and what its caller may set.

    A model of the workspace states it in its custom parameters. Open WebUI sends them
    only where the request has no such key (utils/payload.py:89 of 0.12.4), so they are
    read: else a caller could replace them, or send null to be rid of them.
    """
    if call.agent is None:
        return call
    stored = stated_parameters(await administrator_params(call.model_id))
    stated = stated_parameters(call.body)
    left_out: dict[str, str] = {}
    for name in CALLER_PARAMETERS:
        if name not in stated and call.body.get(name) is not None:
            left_out[name] = "not a valid value"
    call.note_left_out(left_out)
    opened = _opened_words(call)
    agent, closed = with_stated_parameters(call.agent, stored, stated, opened)
    values = dict(agent.parameters)
    reasons: dict[str, str] = {}
    for name in closed:
        is_costly = name in COSTLY_PARAMETERS
        limit = f" limit is {values[name]:g}" if is_costly else ""
        reasons[name] = f"the administrator's{limit}"
    call.note_left_out(reasons, PERMISSION_ADVICE)
    return replace(call, agent=agent)


def caller_may_set_error(expert: PipeExpertKeys) -> str:
    """Return the message about words of `caller_may_set` that name nothing, if any."""
    entries = comma_list(expert.caller_may_set.lower())
    words = [_word_of_entry(entry) for entry in entries]
    advice = "No parameter and no type of tool has such a name."
    return unknown_words(MAY_SET_KEY, words, _KNOWN_WORDS, advice)


def _opened_words(call: Call) -> set[str]:
    """Return what `caller_may_set` opens for the caller."""
    opened: set[str] = set()
    for entry in comma_list(call.config.expert.caller_may_set.lower()):
        is_for_admins = ":" in entry
        if call.caller.is_admin or not is_for_admins:
            opened.add(_word_of_entry(entry))
    return opened


def _word_of_entry(entry: str) -> str:
    """Return what an entry of `caller_may_set` opens, for whomever."""
    return entry.removeprefix("admin:").strip()


def _permitted_body(
    body: JsonObject, opened: Collection[str], most: int, stored: JsonObject
) -> dict[str, Any]:
    """Return a body with what its caller may set.

    `opened` is what `caller_may_set` opens for this caller, and `most` the limit of
    MAX_OUTPUT_TOKENS, 0 for none. The parameters that an administrator `stored` with
    the model may be sent in any case.
    """
    kept = dict(body)
    for key in ACCOUNT_KEYS:
        if key not in body or key in opened:
            continue
        del kept[key]
        if key in stored:
            kept[key] = stored[key]

    # The effort and the summary are the caller's to choose.
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping):
        stored_reasoning = as_mapping(stored.get("reasoning"))
        kept_reasoning: dict[str, Any] = {}
        for key, value in reasoning.items():
            is_open = key in ("effort", "summary") or f"reasoning.{key}" in opened
            is_stored = key in stored_reasoning and stored_reasoning[key] == value
            if is_open or is_stored:
                kept_reasoning[key] = value
        kept["reasoning"] = kept_reasoning

    # A tool stays that is opened, or stored with the model just so.
    stored_tools = given_tools(stored)
    for key in _TOOL_KEYS:
        given = body.get(key)
        if isinstance(given, list):
            kept[key] = [
                tool
                for tool in given
                if not _missing_word(tool, opened) or tool in stored_tools
            ]

    for key in LENGTH_KEYS if most else ():
        value = body.get(key)
        requested = clamp_number(value, 0, most + 1, 0)
        if requested > most and value != stored.get(key):
            kept[key] = most
    return kept


def given_tools(parameters: JsonObject) -> list[Any]:
    """Return the tools of a body, or of stored parameters, then those of filters."""
    tools: list[Any] = []
    for key in _TOOL_KEYS:
        tools += as_list(parameters.get(key))
    return tools


def _missing_word(tool: object, opened: Collection[str]) -> str:
    """Return the word that a tool needs and that is not opened; empty if none is missing.

    A caller may offer what they run themselves, and tools whose type is opened. A tool
    with closed fields needs a word for each of them instead. A new container,
    `{"type": "auto"}`, needs no word.
    """
    fields = as_mapping(tool)
    kind = str(fields.get("type", "function"))
    if kind in CALLED_BY_NAME:
        return ""
    words: list[str] = []
    for name in _CLOSED_FIELDS:
        value = fields.get(name)
        if value and as_mapping(value).keys() != {"type"}:
            words.append(f"{kind}.{name}")
    for word in words or [kind]:
        if word not in opened:
            return word
    return ""
