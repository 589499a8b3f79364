"""The way to an MCP server over streamable HTTP (revision 2025-06-18)."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

import aiohttp

from toolbox.event_texts import EventTexts
from toolbox.json_rpc import (
    RpcMessage,
    is_answer_to,
    rpc_messages,
    rpc_reply,
    rpc_text,
)
from toolbox.mcp_wire import MOST_ASIDES, SessionExpired
from toolbox.remote_http import RemoteConnection
from toolbox.remote_tools import LARGEST_ANSWER, RemoteFailed, with_secrets_hidden
from toolbox.server_entries import ServerEntry

_SESSION = "Mcp-Session-Id"


class McpHttp:
    """One session with a server, if the server has sessions."""

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

    async def ask(self, request: RpcMessage) -> RpcMessage:
        """Post a request; its answer comes as JSON, or somewhere in a stream."""
        async with self._posted(request) as response:
            if request["method"] == "initialize":
                self._session_id = response.headers.get(_SESSION, "")
            asides = 0
            async with aclosing(self._messages(response)) as messages:
                async for message in messages:
                    if is_answer_to(message, request):
                        return message
                    asides += 1
                    if asides > MOST_ASIDES:
                        break
                    await self._reply(message)
        raise RemoteFailed(f"{self._name} gave no answer to a request.")

    async def tell(self, notification: RpcMessage) -> None:
        """Post what is not answered."""
        async with self._posted(notification):
            pass

    async def _reply(self, message: RpcMessage) -> None:
        """Answer the server, if it asked; a call that began is not begun again."""
        reply = rpc_reply(message)
        try:
            if reply is not None:
                await self.tell(reply)
        except SessionExpired:
            raise RemoteFailed(f"{self._name} has ended its session.") from None

    async def close(self) -> None:
        """Tell the server that the session is over, whatever it says to that."""
        try:
            if self._session_id:
                with suppress(RemoteFailed):
                    url, headers = self._entry.url, self._headers()
                    async with self._connection.send("DELETE", url, headers):
                        pass
        finally:
            await self._connection.close()

    @asynccontextmanager
    async def _posted(
        self, message: RpcMessage
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Post a message, lend the response that says that it was taken."""
        url, headers = self._entry.url, self._headers()
        body = rpc_text(message)
        async with self._connection.send("POST", url, headers, body) as response:
            if response.status == 404 and _SESSION in headers:
                raise SessionExpired
            self._check(response)
            yield response

    def _headers(self) -> dict[str, str]:
        ours = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if self.version:
            ours["MCP-Protocol-Version"] = self.version
        if self._session_id:
            ours[_SESSION] = self._session_id
        return {**ours, **dict(self._entry.headers)}

    def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise RemoteFailed for a response that is no success."""
        status = response.status
        if status in (401, 403):
            raise RemoteFailed(f"{self._name} does not let us in (HTTP {status}).")
        if not 200 <= status < 300:
            raise RemoteFailed(f"{self._name} refused a request (HTTP {status}).")

    async def _messages(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[RpcMessage, None]:
        """Yield what a response holds; raises RemoteFailed for what is no message."""
        async with aclosing(self._texts(response)) as texts:
            async for text in texts:
                try:
                    messages = rpc_messages(
                        with_secrets_hidden(text, self._entry.secrets)
                    )
                except ValueError:
                    raise RemoteFailed(f"{self._name} does not speak MCP.") from None
                for message in messages:
                    yield message

    async def _texts(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[str, None]:
        if response.content_type != "text/event-stream":
            body = await self._connection.body(response, LARGEST_ANSWER)
            yield body.decode("utf-8", "replace")
            return
        events = EventTexts()
        async with aclosing(
            self._connection.pieces(response, LARGEST_ANSWER)
        ) as pieces:
            async for piece in pieces:
                for text in events.feed(piece):
                    yield text
        for text in events.feed(b"", is_last=True):
            yield text
