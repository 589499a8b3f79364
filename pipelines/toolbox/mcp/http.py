"""MCP over streamable HTTP (protocol revision 2025-06-18)."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

import aiohttp

from openai_responses.transport.stream import EventStreamDecoder
from toolbox.mcp.messages import (
    MAX_UNRELATED_MESSAGES,
    RpcMessage,
    build_rpc_reply,
    encode_rpc_message,
    parse_rpc_messages,
)
from toolbox.remote_tools import RemoteConnection, RemoteError
from toolbox.server_entries import ServerEntry

_SESSION_HEADER = "Mcp-Session-Id"


class SessionExpired(Exception):
    """The server has forgotten the session and did nothing of the message."""


class McpHttpTransport:
    """One session with a server, if the server has sessions.

    `version` is what was agreed on in the handshake, empty before it.
    """

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self.version = ""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"
        self._connection = RemoteConnection(self._name)
        self._session_id = ""

    async def open(self) -> None:
        """Forget the session; the next answer brings another."""
        self.version = self._session_id = ""

    async def request(self, request: RpcMessage) -> RpcMessage:
        """Return the answer to a request; raises RemoteError, SessionExpired.

        Requests of the server are answered meanwhile.
        """
        async with self._post(request) as response:
            if request["method"] == "initialize":
                self._session_id = response.headers.get(_SESSION_HEADER, "")
            asides = 0
            async with aclosing(self._read_messages(response)) as messages:
                async for message in messages:
                    number = message.get("id")
                    is_ours = isinstance(number, int) and number == request["id"]
                    if is_ours and "method" not in message:
                        return message
                    asides += 1
                    if asides > MAX_UNRELATED_MESSAGES:
                        break
                    await self._reply(message)
        raise RemoteError(f"{self._name} gave no answer to a request.")

    async def notify(self, notification: RpcMessage) -> None:
        """Post a message that has no answer; raises RemoteError, SessionExpired."""
        async with self._post(notification):
            pass

    async def _reply(self, message: RpcMessage) -> None:
        """Answer the server's request, if it is one; a running call is not repeated."""
        reply = build_rpc_reply(message)
        try:
            if reply is not None:
                await self.notify(reply)
        except SessionExpired:
            raise RemoteError(f"{self._name} has ended its session.") from None

    async def close(self) -> None:
        """End the session at the server; errors are ignored."""
        try:
            if self._session_id:
                with suppress(RemoteError):
                    url, headers = self._entry.url, self._headers()
                    async with self._connection.send("DELETE", url, headers):
                        pass
        finally:
            await self._connection.close()

    @asynccontextmanager
    async def _post(self, message: RpcMessage) -> AsyncIterator[aiohttp.ClientResponse]:
        url, headers = self._entry.url, self._headers()
        body = encode_rpc_message(message)
        async with self._connection.send("POST", url, headers, body) as response:
            status = response.status
            if status == 404 and _SESSION_HEADER in headers:
                raise SessionExpired
            if status in (401, 403):
                raise RemoteError(f"{self._name} does not let us in (HTTP {status}).")
            if not 200 <= status < 300:
                raise RemoteError(f"{self._name} refused a request (HTTP {status}).")
            yield response

    def _headers(self) -> dict[str, str]:
        ours = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if self.version:
            ours["MCP-Protocol-Version"] = self.version
        if self._session_id:
            ours[_SESSION_HEADER] = self._session_id
        return {**ours, **dict(self._entry.headers)}

    async def _read_messages(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[RpcMessage, None]:
        if response.content_type != "text/event-stream":
            body = await self._connection.read_body(response)
            for message in self._parse(body.decode("utf-8", "replace")):
                yield message
            return
        decoder = EventStreamDecoder()
        async with aclosing(self._connection.read_chunks(response)) as chunks:
            async for chunk in chunks:
                for event in decoder.feed(chunk):
                    for message in self._parse(event.data):
                        yield message
        # The decoder is not closed: an event that the end cut off is not an answer.

    def _parse(self, text: str) -> list[RpcMessage]:
        try:
            return parse_rpc_messages(text, self._entry.secrets)
        except ValueError:
            raise RemoteError(f"{self._name} does not speak MCP.") from None
