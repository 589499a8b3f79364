"""Messages of JSON-RPC 2.0, as MCP uses them."""

import json
from collections.abc import Mapping
from typing import Any

RpcMessage = dict[str, Any]

_NO_METHOD = -32601


def rpc_request(number: int, method: str, params: Mapping[str, Any]) -> RpcMessage:
    """Return a request, which is answered under its number."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def rpc_notification(method: str, **params: Any) -> RpcMessage:
    """Return a message that nobody answers."""
    return {
        "jsonrpc": "2.0",
        "method": method,
        **({"params": params} if params else {}),
    }


def rpc_messages(text: str) -> list[RpcMessage]:
    """Return the messages of a text, which may be several in a list.

    Raises ValueError for anything else.
    """
    try:
        given = json.loads(text)
    except RecursionError:
        raise ValueError from None
    rows = given if isinstance(given, list) else [given]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError
    return rows


def rpc_text(message: RpcMessage) -> bytes:
    """Return a message as it is sent, in one line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", errors="replace")


def is_answer_to(message: RpcMessage, request: RpcMessage) -> bool:
    """Say whether a message is the answer to a request."""
    number = message.get("id")
    is_ours = isinstance(number, int) and number == request["id"]
    return is_ours and "method" not in message


def rpc_reply(message: RpcMessage) -> RpcMessage | None:
    """Return what a request of the other side is answered with; None for no request.

    We are there, which is all that we can do for it.
    """
    if "method" not in message or message.get("id") is None:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": _NO_METHOD, "message": "Method not found"}}
