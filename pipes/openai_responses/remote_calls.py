"""Calls of remote MCP servers, told to the model as calls with outputs.

With `store: false` the API takes an `mcp_call` back but does not show it to the model:
no token is counted for it, and what the server said is forgotten. As a function's call
with its output it is read (seen live by two users of the API in 2026). So this pair
stands for it in every later request; it is also what a host makes of the card.

A person's consent belongs to one response: the API would make a call again whose
approval comes back without it. What the model has acted on becomes such a pair, too.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from openai_responses.items import Item, content_parts, item_type, part_text
from openai_responses.tool_names import ToolNames

_REMOTE_SIGN = "mcp"
"""How the ids of remote calls begin, and no others."""

_CLIENT_ANSWERS = (
    "function_call_output",
    "custom_tool_call_output",
    "mcp_approval_response",
)


def remote_name(item: Mapping[str, Any]) -> str:
    """Return what a remote tool is called here: its server's label, then its name.

    Open WebUI names the tools of its own MCP servers alike.
    """
    return ToolNames().sent(f"{item.get('server_label')}_{item.get('name')}")


def remote_call(item: Mapping[str, Any]) -> Item:
    """Return the call that `item` made, or asked to be allowed."""
    return {
        "type": "function_call",
        "call_id": _remote_call_id(item),
        "name": remote_name(item),
        "arguments": str(item.get("arguments") or "{}"),
    }


def remote_output(item: Mapping[str, Any]) -> Item:
    """Return what came of an `mcp_call`: its output, or what went wrong."""
    return _call_output(item, _remote_error(item) or str(item.get("output") or ""))


def remote_pair(item: Mapping[str, Any]) -> list[Item]:
    """Return a whole `mcp_call` as the model is told of it later."""
    return [remote_call(item), remote_output(item)]


def refused_pair(request: Mapping[str, Any], why: str) -> list[Item]:
    """Return a call that was asked for and not allowed."""
    return [remote_call(request), _call_output(request, f"Error: {why}")]


def remote_failed(item: Mapping[str, Any]) -> bool:
    """Say whether an `mcp_call` came to nothing."""
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: Mapping[str, Any]) -> bool:
    """Say whether the API asks whether it may make a call."""
    return item_type(item) == "mcp_approval_request"


def settled(items: Sequence[Item]) -> list[Item]:
    """Return `items` without the approvals that are over.

    One that the model has not acted on yet stays, because the next response does; a
    request that nobody answered cannot be sent at all.
    """
    requests = {item["id"]: item for item in items if is_approval_request(item)}
    last = _last_act(items, {_remote_call_id(request) for request in requests.values()})
    answers = {
        item.get("approval_request_id"): (place > last, item)
        for place, item in enumerate(items)
        if _is_response(item)
    }
    kept: list[Item] = []
    for item in items:
        is_open, answer = answers.get(_asked_id(item), (False, {}))
        if is_open or _asked_id(item) is None:
            kept.append(item)
        elif is_approval_request(item) and answer.get("approve") is False:
            kept += refused_pair(item, str(answer.get("reason") or ""))
    return kept


def _last_act(items: Sequence[Item], refused: Container[str]) -> int:
    """Return the place of the last item that the model made, or -1."""
    acts = (
        place
        for place, item in enumerate(items)
        if item_type(item) not in _CLIENT_ANSWERS and item.get("call_id") not in refused
    )
    return max(acts, default=-1)


def _asked_id(item: Mapping[str, Any]) -> object:
    """Return the id of the request that `item` is or answers; None for others."""
    if is_approval_request(item):
        return item["id"]
    return item.get("approval_request_id") if _is_response(item) else None


def with_outputs_beside(items: Iterable[Item]) -> list[Item]:
    """Return `items` with the output of each remote call right behind it.

    Calls that ran at the same time stand in the host's order otherwise.
    """
    rows = list(items)
    outputs = {
        item["call_id"]: item
        for item in rows
        if _is_remote(item, "function_call_output")
    }
    told: list[Item] = []
    for item in rows:
        if _is_remote(item, "function_call") and item["call_id"] in outputs:
            told += [item, outputs[item["call_id"]]]
        elif not _is_remote(item, "function_call_output"):
            told.append(item)
    return told


def _is_response(item: Mapping[str, Any]) -> bool:
    return item_type(item) == "mcp_approval_response"


def _is_remote(item: Mapping[str, Any], kind: str) -> bool:
    return item_type(item) == kind and str(item.get("call_id")).startswith(_REMOTE_SIGN)


def _remote_call_id(item: Mapping[str, Any]) -> str:
    own = str(item.get("id") or "")
    return own if own.startswith(_REMOTE_SIGN) else f"{_REMOTE_SIGN}_{own}"


def _call_output(item: Mapping[str, Any], text: str) -> Item:
    kind = "function_call_output"
    return {"type": kind, "call_id": _remote_call_id(item), "output": text}


def _remote_error(item: Mapping[str, Any]) -> str:
    """Return what went wrong, in the words of the server or of the API."""
    error = item.get("error")
    if not error:
        return ""
    fields = error if isinstance(error, Mapping) else {"message": error}
    content = fields.get("content")
    text = fields.get("message") or content
    if isinstance(content, list):
        text = "\n".join(map(part_text, content_parts(content)))
    return f"Error: {text or 'the server did not say what went wrong.'}"
