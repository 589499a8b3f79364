"""What a caller may set; the rest is the administrator's (docs/parameters.md).

A body holds side by side what a client sent, what a user chose on the page, what
filters added and what is stored with the model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from openai_responses.json_input import JsonObject, as_list, as_mapping, clamp_number
from openai_responses.requests.parameters import ACCOUNT_KEYS
from openai_responses.requests.tools import CALLED_BY_NAME
from openai_responses.tool_kinds import TOOL_KINDS
from owui_manifold.call.agent import (
    COSTLY_PARAMETERS,
    stated_parameters,
    with_stated_parameters,
)
from owui_manifold.call.context import CheckedCall
from owui_manifold.call.expert import ExpertSettings
from owui_manifold.host.open_webui import administrator_params
from shells.caller_settings import left_out_line, unknown_permissions
from shells.valve_words import comma_list

_LENGTHS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_TOOLS = ("tools", "extra_tools")
_CLOSED_FIELDS = {name for kind in TOOL_KINDS.values() for name in kind.closed_fields}
"""Fields that are closed in every tool: the API may get to know one in another kind."""


def _tool_words() -> Iterator[str]:
    """Yield the words that open tools: types, and fields as `type.field`."""
    for kind in TOOL_KINDS.values():
        for name in kind.types:
            yield name
            for field in kind.closed_fields:
                yield f"{name}.{field}"


_KNOWN_WORDS = {
    "max_output_tokens",
    "reasoning.mode",
    "reasoning.context",
    *ACCOUNT_KEYS,
    *COSTLY_PARAMETERS,
    *_tool_words(),
}


class _Permission(NamedTuple):
    """What one caller may set."""

    opened: Collection[str]
    """What `caller_may_set` opens for this caller."""
    max_tokens: int
    """MAX_OUTPUT_TOKENS, or 0 for no limit."""
    stored: JsonObject
    """The parameters that an administrator stored with the model; they may be sent."""


async def drop_forbidden_keys(call: CheckedCall) -> CheckedCall:
    """Return the call without what its caller may not set; the log says it once."""
    caller = call.caller
    opened = _opened_for(call)
    is_limited = "max_output_tokens" not in opened
    max_tokens = call.valves.MAX_OUTPUT_TOKENS if is_limited else 0
    may = _Permission(opened, max_tokens, {})
    if _permitted_body(call.body, may) == call.body:
        return call
    stored = await administrator_params(call.model_id)
    body = _permitted_body(call.body, may._replace(stored=stored))
    shown: dict[str, str] = {}
    for key, value in call.body.items():
        if value is not None and body.get(key) != value:
            shown[key] = f"{key} ({ACCOUNT_KEYS.get(key, 'in part')})"
    who = f"user {caller.user_id}"
    line = left_out_line(who, shown, call.capabilities.first_time)
    if line:
        call.log.warn(line)
    return call._replace(body=body)


async def apply_stated_parameters(call: CheckedCall) -> CheckedCall:
    """Return the call with what its caller may set of an agent.

    A model of the workspace states it in its custom parameters.
    """
    if call.agent is None:
        return call
    stated = stated_parameters(call.body)
    if not stated:
        return call
    stored = stated_parameters(await administrator_params(call.model_id))
    raisable = _opened_for(call)
    for name, value in stated.items():
        if name in stored and stored[name] == value:
            raisable.add(name)
    agent = with_stated_parameters(call.agent, stated, raisable)
    return call._replace(agent=agent)


def caller_may_set_error(expert: ExpertSettings) -> str:
    """Return the message about words of `caller_may_set` that name nothing, if any."""
    words = map(_opened, comma_list(expert.caller_may_set.lower()))
    advice = "No parameter and no type of tool has such a name."
    return unknown_permissions(words, _KNOWN_WORDS, advice)


def _opened_for(call: CheckedCall) -> set[str]:
    """Return what `caller_may_set` opens for the caller."""
    words = comma_list(call.config.expert.caller_may_set.lower())
    is_admin = call.caller.is_admin
    return {_opened(word) for word in words if is_admin or ":" not in word}


def _opened(word: str) -> str:
    """Return what a word of `caller_may_set` opens."""
    return word.removeprefix("admin:").strip()


def _permitted_body(body: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return a body with what its caller may set."""
    kept = _permitted_keys(body, may)
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping):
        kept["reasoning"] = _permitted_reasoning(reasoning, may)
    for name in _TOOLS:
        given = body.get(name)
        if isinstance(given, list):
            kept[name] = _permitted_tools(given, may)
    for name in _LENGTHS:
        if _is_too_long(name, body, may):
            kept[name] = may.max_tokens
    return kept


def _permitted_keys(body: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return a body without the administrator's keys, unless the model has them."""
    kept = dict(body)
    for key in ACCOUNT_KEYS:
        if key not in body or key in may.opened:
            continue
        del kept[key]
        if key in may.stored:
            kept[key] = may.stored[key]
    return kept


def _permitted_reasoning(given: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return the reasoning settings that a caller may set."""
    stored = as_mapping(may.stored.get("reasoning"))
    kept: dict[str, Any] = {}
    for key, value in given.items():
        is_open = key in ("effort", "summary") or f"reasoning.{key}" in may.opened
        if is_open or (key in stored and stored[key] == value):
            kept[key] = value
    return kept


def _permitted_tools(given: Iterable[object], may: _Permission) -> list[object]:
    """Return the tools that a caller may offer, or that are stored with the model."""
    stored = [tool for name in _TOOLS for tool in as_list(may.stored.get(name))]
    return [tool for tool in given if _is_open(tool, may.opened) or tool in stored]


def _is_open(tool: object, opened: Collection[str]) -> bool:
    """Say whether a caller may offer a tool: it runs it, or its type is opened.

    A new container, `{"type": "auto"}`, is nobody's.
    """
    fields = as_mapping(tool)
    kind = str(fields.get("type", "function"))
    if kind in CALLED_BY_NAME:
        return True
    closed = []
    for name in _CLOSED_FIELDS:
        value = fields.get(name)
        if value and as_mapping(value).keys() != {"type"}:
            closed.append(f"{kind}.{name}")
    return all(word in opened for word in closed or [kind])


def _is_too_long(name: str, body: JsonObject, may: _Permission) -> bool:
    """Say whether a caller asks for more tokens than MAX_OUTPUT_TOKENS allows."""
    if may.max_tokens == 0:
        return False
    value = body.get(name)
    requested = clamp_number(value, 0, may.max_tokens + 1, 0)
    return requested > may.max_tokens and value != may.stored.get(name)
