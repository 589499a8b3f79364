"""What an MCP session needs of the way to its server."""

from typing import Protocol

from toolbox.json_rpc import RpcMessage

MOST_ASIDES = 1_000
"""How many messages a server may send that answer nothing, before it has failed."""


class SessionExpired(Exception):
    """The server does not know the session any more; nothing of the message was done."""


class McpWire(Protocol):
    """A way to one server: over HTTP, or to a child's stdin."""

    version: str
    """What was agreed on in the handshake; empty before it."""

    async def open(self) -> None:
        """Begin anew; raises RemoteFailed."""

    async def ask(self, request: RpcMessage) -> RpcMessage:
        """Return the answer to a request; raises RemoteFailed, SessionExpired.

        What the server asks meanwhile is answered.
        """

    async def tell(self, notification: RpcMessage) -> None:
        """Send what is not answered; raises RemoteFailed, SessionExpired."""

    async def close(self) -> None:
        """End the session; nothing is left."""
