"""What a caller may set; the rest is the administrator's (docs/parameters.md).

A body holds side by side what a client sent, what a user chose on the page, what
filters added and what is stored with the model.
"""

from collections.abc import Collection, Mapping
from typing import Any

from openai_responses.json_input import as_list, as_mapping, clamp_number
from openai_responses.requests.parameters import ADMINISTRATORS_KEYS
from openai_responses.requests.tools import CALLED_BY_NAME
from owui_manifold.config import comma_list
from owui_manifold.context import PipeCall
from owui_manifold.host import administrator_params

_LENGTHS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_TOOLS = ("tools", "extra_tools")


async def permitted_call(call: PipeCall) -> PipeCall:
    """Return the call without what its caller may not set; the log says it once."""
    caller, valves = call.caller, call.valves
    words = comma_list(valves.CALLER_MAY_SET.lower())
    words = [word for word in words if caller.is_admin or ":" not in word]
    opened = {word.removeprefix("admin:").strip() for word in words}
    most = 0 if "max_output_tokens" in opened else valves.MAX_OUTPUT_TOKENS
    if _permitted_body(call.body, opened, most, {}) == call.body:
        return call
    stored = await administrator_params(call.model_id)
    body = _permitted_body(call.body, opened, most, stored)
    lost = [k for k, v in call.body.items() if v is not None and body.get(k) != v]
    is_new = call.capabilities.first_time
    if new := [name for name in lost if is_new(f"{caller.user_id}: {name}")]:
        names = ", ".join(f"{k} ({ADMINISTRATORS_KEYS.get(k, 'in part')})" for k in new)
        told = f"left out for user {caller.user_id}, see CALLER_MAY_SET: {names}"
        call.log.line("WARNING", told)
    return call._replace(body=body)


def _permitted_body(
    body: Mapping[str, Any], opened: Collection[str], most: int, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a body with what its caller may set; an administrator's `own` holds."""
    closed = [k for k in ADMINISTRATORS_KEYS if k in body and k not in opened]
    kept = {k: v for k, v in body.items() if k not in closed}
    kept |= {k: own[k] for k in closed if k in own}
    if isinstance(given := body.get("reasoning"), Mapping):
        stored = as_mapping(own.get("reasoning")).items()
        free = {"effort", "summary", *(k for k in given if f"reasoning.{k}" in opened)}
        kept["reasoning"] = dict(
            i for i in given.items() if i[0] in free or i in stored
        )
    tools = [tool for name in _TOOLS for tool in as_list(own.get(name))]
    for name in _TOOLS:
        if isinstance(given := body.get(name), list):
            kept[name] = [t for t in given if _is_open(t, opened) or t in tools]
    for name in _LENGTHS if most else ():
        value = body.get(name)
        if clamp_number(value, 0, most + 1, 0) > most and value != own.get(name):
            kept[name] = most
    return kept


def _is_open(tool: object, opened: Collection[str]) -> bool:
    """Say whether a caller may offer a tool: it runs it, or its type is opened."""
    kind = as_mapping(tool).get("type", "function")
    return kind in CALLED_BY_NAME or str(kind) in opened
