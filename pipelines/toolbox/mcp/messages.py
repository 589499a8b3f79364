"""JSON-RPC 2.0 messages of MCP, and the transport interface that carries them."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

RpcMessage = dict[str, Any]

_METHOD_NOT_FOUND = -32601


def build_rpc_request(
    number: int, method: str, params: Mapping[str, Any]
) -> RpcMessage:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def build_rpc_notification(method: str, **params: Any) -> RpcMessage:
    """Return a message that has no answer."""
    return {
        "jsonrpc": "2.0",
        "method": method,
        **({"params": params} if params else {}),
    }


def parse_rpc_messages(text: str) -> list[RpcMessage]:
    """Return the messages of a text: one, or a list; raises ValueError."""
    try:
        given = json.loads(text)
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


def is_response_to(message: RpcMessage, request: RpcMessage) -> bool:
    """Say whether a message is the answer to a request."""
    number = message.get("id")
    is_ours = isinstance(number, int) and number == request["id"]
    return is_ours and "method" not in message


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


MAX_UNRELATED_MESSAGES = 1_000
"""How many messages a server may send that answer nothing, before it has failed."""


class SessionExpired(Exception):
    """The server has forgotten the session and did nothing of the message."""


class McpTransport(Protocol):
    """A way to one server: HTTP, or the stdin of a child process."""

    version: str
    """What was agreed on in the handshake; empty before it."""

    async def open(self) -> None:
        """Connect anew; raises RemoteError."""

    async def request(self, request: RpcMessage) -> RpcMessage:
        """Return the answer to a request; raises RemoteError, SessionExpired.

        Requests of the server are answered meanwhile.
        """

    async def notify(self, notification: RpcMessage) -> None:
        """Send a message that has no answer; raises RemoteError, SessionExpired."""

    async def close(self) -> None:
        """End the session."""
