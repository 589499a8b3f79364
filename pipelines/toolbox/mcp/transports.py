"""Two ways to an MCP server: streamable HTTP, and a child process.

The messages are JSON-RPC 2.0; HTTP follows protocol revision 2025-06-18. A child
process runs in a process group of its own and is ended together with all that it
started. It gets only PATH, HOME and LANG of the server's environment, because other
variables may hold keys.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from subprocess import DEVNULL, PIPE
from typing import Any

import aiohttp

from openai_responses.transport.stream import EventStreamDecoder
from toolbox.processes import ChildProcess, start_process
from toolbox.remote_tools import (
    MAX_REMOTE_BYTES,
    RemoteConnection,
    RemoteError,
    redact_secrets,
)
from toolbox.server_entries import ServerEntry

_RpcMessage = dict[str, Any]

_MAX_UNRELATED_MESSAGES = 1_000
"""How many messages a server may send that answer nothing, before it has failed."""
_METHOD_NOT_FOUND = -32601
_MAX_ID_CHARACTERS = 200
"""A server's request with a longer id is ignored: its answers would fill the memory."""


def build_rpc_message(
    method: str, params: Mapping[str, Any] | None = None, number: int | None = None
) -> dict[str, Any]:
    """Return a request; without a number, a message that has no answer."""
    return {
        "jsonrpc": "2.0",
        **({} if number is None else {"id": number}),
        "method": method,
        **({} if params is None else {"params": dict(params)}),
    }


def _encode_rpc_message(message: _RpcMessage) -> bytes:
    """Return a message as it is sent, in one line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", errors="replace")


def _build_rpc_reply(message: _RpcMessage) -> _RpcMessage | None:
    """Return the answer to a request of the server; None for any other message.

    Only `ping` is supported.
    """
    number = message.get("id")
    is_request = "method" in message and isinstance(number, int | str)
    if not is_request or len(str(number)) > _MAX_ID_CHARACTERS:
        return None
    head = {"jsonrpc": "2.0", "id": number}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}


_SESSION_HEADER = "Mcp-Session-Id"


class SessionExpired(Exception):
    """The server has forgotten the session and did nothing of the message."""


class _McpTransport:
    """What both have: `version` was agreed on in the handshake, empty before it."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet; `on_tools_changed` is called when the server says so."""
        self.version = ""
        self.on_tools_changed: Callable[[], object] = str
        self._entry = entry
        self._name = f"The MCP server {entry.label}"

    def _notice(self, message: _RpcMessage) -> None:
        if message.get("method") == "notifications/tools/list_changed":
            self.on_tools_changed()

    def _parse(self, text: str) -> list[_RpcMessage]:
        """Return the messages of a text without our secrets; raises RemoteError."""
        try:
            given = json.loads(redact_secrets(text, self._entry.secrets))
        except (ValueError, RecursionError):
            given = None
        rows = given if isinstance(given, list) else [given]
        if not all(isinstance(row, dict) for row in rows):
            raise RemoteError(f"{self._name} does not speak MCP.")
        return rows


class McpHttpTransport(_McpTransport):
    """One session with a server, if the server has sessions."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        super().__init__(entry)
        self._connection = RemoteConnection(self._name, "MCP_SERVERS_JSON")
        self._session_id = ""
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Forget the session; the next answer brings another."""
        self.version = self._session_id = ""

    def listen(self) -> None:
        """Read what the server sends unasked, if it has a stream for that."""
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._read_unasked())

    async def _read_unasked(self) -> None:
        url, headers = self._entry.url, self._headers()
        with suppress(RemoteError):
            async with self._connection.send("GET", url, headers) as response:
                if response.status == 200:
                    async with aclosing(self._read_messages(response)) as messages:
                        async for message in messages:
                            self._notice(message)

    async def request(self, request: _RpcMessage) -> _RpcMessage:
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
                    if asides > _MAX_UNRELATED_MESSAGES:
                        break
                    self._notice(message)
                    await self._reply(message)
        raise RemoteError(f"{self._name} gave no answer to a request.")

    async def notify(self, notification: _RpcMessage) -> None:
        """Post a message that has no answer; raises RemoteError, SessionExpired."""
        async with self._post(notification):
            pass

    async def _reply(self, message: _RpcMessage) -> None:
        """Answer the server's request, if it is one; a running call is not repeated."""
        reply = _build_rpc_reply(message)
        try:
            if reply is not None:
                await self.notify(reply)
        except SessionExpired:
            raise RemoteError(f"{self._name} has ended its session.") from None

    async def close(self) -> None:
        """End the session at the server; errors are ignored."""
        if self._listener is not None:
            self._listener.cancel()
        try:
            if self._session_id:
                with suppress(RemoteError):
                    url, headers = self._entry.url, self._headers()
                    async with self._connection.send("DELETE", url, headers):
                        pass
        finally:
            await self._connection.close()

    @asynccontextmanager
    async def _post(
        self, message: _RpcMessage
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url, headers = self._entry.url, self._headers()
        body = _encode_rpc_message(message)
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
            "MCP-Protocol-Version": self.version,
            _SESSION_HEADER: self._session_id,
        }
        ours = {name: text for name, text in ours.items() if text}
        return {**ours, **dict(self._entry.headers)}

    async def _read_messages(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[_RpcMessage, None]:
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


_CHILD_EXIT_SECONDS = 2.0
"""How long a program may take to end by itself once its stdin is closed."""
_STDOUT_READ_BYTES = 64 * 1024
_INHERITED_VARIABLES = ("PATH", "HOME", "LANG")
"""What a program gets of our environment; the rest may hold keys."""


class _Program:
    """One running program; `is_over` says that no more output can come."""

    def __init__(
        self,
        child: ChildProcess,
        on_line: Callable[[bytes], bool],
        on_end: Callable[[], object],
    ) -> None:
        """Give each line to `on_line`, which returns False to end; call `on_end` last."""
        self.is_over = False
        self._child = child
        self._tasks = (
            asyncio.create_task(self._read(on_line, on_end)),
            asyncio.create_task(self._follow()),
        )

    async def _read(
        self, on_line: Callable[[bytes], bool], on_end: Callable[[], object]
    ) -> None:
        """Split the output into lines until it ends."""
        assert self._child.stdout
        begun = bytearray()
        while piece := await self._child.stdout.read(_STDOUT_READ_BYTES):
            *lines, rest = piece.split(b"\n")
            if lines:
                lines[0], begun = bytes(begun + lines[0]), bytearray()
            begun += rest
            # `all` stops at the first line that ends it.
            if len(begun) > MAX_REMOTE_BYTES or not all(map(on_line, lines)):
                break
        self._child.kill_group()
        self.is_over = True
        on_end()

    async def _follow(self) -> None:
        """End what it started, at once: its group number can be reused later."""
        await self._child.wait()
        self._child.kill_group()
        self.is_over = True

    def write(self, message: _RpcMessage) -> None:
        """Write a message to its stdin."""
        assert self._child.stdin
        self._child.stdin.write(_encode_rpc_message(message) + b"\n")

    async def close(self) -> None:
        """Let it end by itself, or end it."""
        assert self._child.stdin
        try:
            self._child.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHILD_EXIT_SECONDS):
                    await self._child.wait()
            self._child.kill_group()
            await self._child.wait()
        finally:
            self._child.kill_group()
            for task in self._tasks:
                task.cancel()
            self._child.close()


class McpStdioTransport(_McpTransport):
    """One program, which lives as long as the session."""

    def __init__(self, entry: ServerEntry) -> None:
        """Start nothing yet."""
        super().__init__(entry)
        self._child: _Program | None = None
        self._waiting: dict[int, asyncio.Future[_RpcMessage]] = {}
        self._unrelated_messages = 0
        self._end_reason = "has ended"

    async def open(self) -> None:
        """Start the program, end an earlier one; raises RemoteError."""
        await self.close()
        known = os.environ
        inherited = {
            name: known[name] for name in _INHERITED_VARIABLES if name in known
        }
        try:
            child = await start_process(
                *self._entry.command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={**inherited, **dict(self._entry.environment)},
            )
        except (OSError, ValueError):
            raise RemoteError(f"{self._name} cannot be started.") from None
        self._child = _Program(child, self._receive_line, self._fail_waiting)

    def listen(self) -> None:
        """Do nothing: all that the program writes is read anyway."""

    async def request(self, request: _RpcMessage) -> _RpcMessage:
        """Return the answer to a request; raises RemoteError."""
        answer: asyncio.Future[_RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[request["id"]] = answer
        try:
            await self.notify(request)
            return await answer
        finally:
            del self._waiting[request["id"]]

    async def notify(self, notification: _RpcMessage) -> None:
        """Send a message that has no answer; raises RemoteError."""
        if self._child is None or self._child.is_over:
            raise RemoteError(f"{self._name} {self._end_reason}.")
        self._child.write(notification)

    async def close(self) -> None:
        """End the program."""
        if self._child is not None:
            await self._child.close()

    def _receive_line(self, line: bytes) -> bool:
        """Read a line of the program; a line that is no message is ignored."""
        self._unrelated_messages += 1
        text = line.decode("utf-8", "replace")
        with suppress(RemoteError):
            for message in self._parse(text):
                self._receive_message(message)
        if self._unrelated_messages <= _MAX_UNRELATED_MESSAGES:
            return True
        self._end_reason = "wrote too much and was ended"
        return False

    def _receive_message(self, message: _RpcMessage) -> None:
        self._notice(message)
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        reply = _build_rpc_reply(message)
        if reply is not None and self._child is not None:
            self._child.write(reply)
        elif waiting is not None and not waiting.done():
            self._unrelated_messages = 0
            waiting.set_result(message)

    def _fail_waiting(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RemoteError(f"{self._name} {self._end_reason}."))
