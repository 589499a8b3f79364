"""JSON-RPC 2.0 messages of MCP."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolbox.remote_tools import redact_secrets

RpcMessage = dict[str, Any]

MAX_UNRELATED_MESSAGES = 1_000
"""How many messages a server may send that answer nothing, before it has failed."""
_METHOD_NOT_FOUND = -32601


def build_rpc_message(
    method: str, params: Mapping[str, Any] | None = None, number: int | None = None
) -> RpcMessage:
    """Return a request; without a number, a message that has no answer."""
    head = {"jsonrpc": "2.0", **({} if number is None else {"id": number})}
    return {
        **head,
        "method": method,
        **({} if params is None else {"params": dict(params)}),
    }


def parse_rpc_messages(text: str, secrets: Iterable[str]) -> list[RpcMessage]:
    """Return the messages of a text without our secrets: one, or a list.

    Raises ValueError.
    """
    try:
        given = json.loads(redact_secrets(text, secrets))
    except RecursionError:
        raise ValueError from None
    rows = given if isinstance(given, list) else [given]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError
    return rows


def encode_rpc_message(message: RpcMessage) -> bytes:
    """Return a message as it is sent, in one line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", errors="replace")


def build_rpc_reply(message: RpcMessage) -> RpcMessage | None:
    """Return the answer to a request of the server; None for any other message.

    Only `ping` is supported.
    """
    if "method" not in message or message.get("id") is None:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}
