"""JSON-RPC 2.0 messages of MCP, and the transport interface that carries them."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

RpcMessage = dict[str, Any]

_METHOD_NOT_FOUND = -32601


def build_rpc_request(
    number: int, method: str, params: Mapping[str, Any]
) -> RpcMessage:
    """Return a request, which is answered under its number."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def build_rpc_notification(method: str, **params: Any) -> RpcMessage:
    """Return a message that nobody answers."""
    return {
        "jsonrpc": "2.0",
        "method": method,
        **({"params": params} if params else {}),
    }


def parse_rpc_messages(text: str) -> list[RpcMessage]:
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
    """Return what a request of the other side is answered with; None for no request.

    We are there, which is all that we can do for it.
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
    """The server does not know the session any more; nothing of the message was done."""


class McpTransport(Protocol):
    """A way to one server: over HTTP, or to a child's stdin."""

    version: str
    """What was agreed on in the handshake; empty before it."""

    async def open(self) -> None:
        """Begin anew; raises RemoteError."""

    async def request(self, request: RpcMessage) -> RpcMessage:
        """Return the answer to a request; raises RemoteError, SessionExpired.

        What the server asks meanwhile is answered.
        """

    async def notify(self, notification: RpcMessage) -> None:
        """Send what is not answered; raises RemoteError, SessionExpired."""

    async def close(self) -> None:
        """End the session; nothing is left."""
